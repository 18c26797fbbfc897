#!/usr/bin/env python3
"""Makes tiny random models as Hugging Face folders, and what transformers, torch and tokenizers get
from them: model/src/test/resources/folders/.

    python3 -m venv /tmp/folders-venv
    /tmp/folders-venv/bin/pip install torch transformers==5.24.0 tokenizers==0.23.3 safetensors
    /tmp/folders-venv/bin/python model/src/test/reference/make_folders.py

The vocabularies are trained on the texts of folder_texts.py with the settings of the models whose
name they bear. Logits and greedy tokens are those of float32 arithmetic on the weights as stored.
"""

import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import folder_texts  # noqa: E402

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../resources/folders")
SEED = 20250103
VOCABULARY = 384
GREEDY = 16
MARGIN = 0.05

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def train(tokenizer, size, special, alphabet=pre_tokenizers.ByteLevel.alphabet()):
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(folder_texts.TRAINING, trainer)


def llama3_tokenizer():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = split(LLAMA3)
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, VOCABULARY - 8, [])
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eot_id|>x"]
    tokenizer.add_special_tokens([AddedToken(n, normalized=False) for n in names])
    bos = names[0]
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=bos + " $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
            ),
        ]
    )
    return tokenizer


def qwen_tokenizer(thinks):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split(QWEN2)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    train(tokenizer, VOCABULARY - 24, [])
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.add_special_tokens([AddedToken(n, normalized=False) for n in names])
    if thinks:
        plain = ["<think>", "</think>"]
        tokenizer.add_tokens([AddedToken(n, normalized=False) for n in plain])
        tokenizer.add_tokens([AddedToken("caf\u00e9s", normalized=True)])
    return tokenizer


def smollm_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, VOCABULARY, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return tokenizer


def sentencepiece(tokenizer):
    bytes_ = ["<0x%02X>" % b for b in range(256)]
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    train(tokenizer, 480, ["<unk>", "<s>", "</s>"] + bytes_, [])
    # As in real files: the bytes are in the vocabulary, but are no tokens of their own in a text.
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = data["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def llama2_tokenizer():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    return sentencepiece(tokenizer)


def metaspace_tokenizer():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return sentencepiece(tokenizer)


def encodings(tokenizer):
    result = []
    for text in folder_texts.TEXTS:
        ids = tokenizer.encode(text).ids
        bare = tokenizer.encode(text, add_special_tokens=False).ids
        decoded = tokenizer.decode(ids, skip_special_tokens=True)
        result.append({"text": text, "ids": ids, "bare": bare, "decoded": decoded})
    return result


def write(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=1, ensure_ascii=False)
        out.write("\n")


COMMON = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "vocab_size": VOCABULARY,
    "hidden_act": "silu",
}


def llama_config():
    return dict(
        COMMON,
        architectures=["LlamaForCausalLM"],
        model_type="llama",
        head_dim=32,
        attention_bias=False,
        mlp_bias=False,
        rms_norm_eps=1e-5,
        rope_theta=500000.0,
        rope_scaling={
            "factor": 8.0,
            "high_freq_factor": 4.0,
            "low_freq_factor": 1.0,
            "original_max_position_embeddings": 64,
            "rope_type": "llama3",
        },
        tie_word_embeddings=False,
        torch_dtype="bfloat16",
        bos_token_id=376,
        eos_token_id=[377, 378],
    )


def qwen2_config():
    return dict(
        COMMON,
        num_attention_heads=2,
        num_key_value_heads=1,
        architectures=["Qwen2ForCausalLM"],
        model_type="qwen2",
        rms_norm_eps=1e-6,
        rope_theta=1000000.0,
        sliding_window=32,
        use_sliding_window=False,
        max_window_layers=2,
        tie_word_embeddings=True,
        torch_dtype="float16",
        bos_token_id=360,
        eos_token_id=360,
    )


def qwen3_config():
    return dict(
        COMMON,
        architectures=["Qwen3ForCausalLM"],
        model_type="qwen3",
        head_dim=32,
        attention_bias=False,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
        layer_types=["full_attention"] * 2,
        sliding_window=None,
        use_sliding_window=False,
        tie_word_embeddings=False,
        dtype="float32",
        bos_token_id=360,
        eos_token_id=362,
    )


def random_weights(config, dtype):
    plain = {k: v for k, v in config.items() if k not in ("torch_dtype", "dtype")}
    kind = config["model_type"]
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(kind, **{k: v for k, v in plain.items() if k != "model_type"})
    )
    weights = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        if name.endswith("norm.weight"):
            value = 1 + 0.3 * torch.randn(tensor.shape)
        elif name.endswith("embed_tokens.weight"):
            value = torch.randn(tensor.shape)
        else:
            value = 0.25 * torch.randn(tensor.shape)
        weights[name] = value.to(dtype).contiguous()
    return weights


def save_sharded(folder, weights):
    names = sorted(weights)
    halves = [names[: len(names) // 2], names[len(names) // 2 :]]
    weight_map = {}
    for i, half in enumerate(halves):
        file = "model-%05d-of-%05d.safetensors" % (i + 1, len(halves))
        tensors = {n: weights[n] for n in half}
        safetensors.torch.save_file(tensors, os.path.join(folder, file), {"format": "pt"})
        weight_map.update({n: file for n in half})
    size = sum(t.numel() * t.element_size() for t in weights.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    write(os.path.join(folder, "model.safetensors.index.json"), index)


def answers(folder, tokenizer):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.eval()
    result = []
    smallest = float("inf")
    for text in folder_texts.PROMPTS:
        ids = tokenizer.encode(text).ids
        tokens = list(ids)
        rows = []
        with torch.no_grad():
            while len(tokens) < len(ids) + GREEDY:
                logits = model(torch.tensor([tokens])).logits[0, -1]
                best = torch.topk(logits, 2)
                smallest = min(smallest, (best.values[0] - best.values[1]).item())
                rows.append(logits)
                tokens.append(best.indices[0].item())
        result.append(
            {
                "text": text,
                "tokens": ids,
                "greedy": tokens[len(ids) :],
                "first": [round(x, 5) for x in rows[0].tolist()],
                "last": [round(x, 5) for x in rows[-1].tolist()],
            }
        )
    return result, smallest


def make_model(name, config, dtype, tokenizer, special, sharded, generation, template_file):
    folder = os.path.join(OUT, name)
    os.makedirs(folder)
    write(os.path.join(folder, "config.json"), config)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    write(os.path.join(folder, "generation_config.json"), generation)
    if template_file:
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as out:
            out.write(CHATML)
    else:
        special = dict(special, chat_template=CHATML)
    write(os.path.join(folder, "tokenizer_config.json"), special)
    for attempt in range(1000):
        torch.manual_seed(SEED + attempt)
        weights = random_weights(config, dtype)
        for file in os.listdir(folder):
            if "safetensors" in file:
                os.remove(os.path.join(folder, file))
        if sharded:
            save_sharded(folder, weights)
        else:
            path = os.path.join(folder, "model.safetensors")
            safetensors.torch.save_file(weights, path, {"format": "pt"})
        result, smallest = answers(folder, tokenizer)
        if smallest > MARGIN:
            print(name, "seed", SEED + attempt, "smallest margin", smallest)
            break
    write(os.path.join(folder, "expected.json"), {"answers": result})


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    tokenizers = {
        "llama": llama3_tokenizer(),
        "qwen2": qwen_tokenizer(False),
        "qwen3": qwen_tokenizer(True),
        "smollm": smollm_tokenizer(),
        "llama2": llama2_tokenizer(),
        "metaspace": metaspace_tokenizer(),
    }
    make_model(
        "llama",
        llama_config(),
        torch.bfloat16,
        tokenizers["llama"],
        {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        True,
        {"eos_token_id": [377, 378]},
        False,
    )
    make_model(
        "qwen2",
        qwen2_config(),
        torch.float16,
        tokenizers["qwen2"],
        {"bos_token": None, "eos_token": {"content": "<|im_end|>"}},
        False,
        {"eos_token_id": [362, 360]},
        False,
    )
    make_model(
        "qwen3",
        qwen3_config(),
        torch.float32,
        tokenizers["qwen3"],
        {"bos_token": None, "eos_token": "<|im_end|>"},
        False,
        {"eos_token_id": 362},
        True,
    )
    for name, tokenizer in tokenizers.items():
        folder = os.path.join(OUT, name)
        os.makedirs(folder, exist_ok=True)
        tokenizer.save(os.path.join(folder, "tokenizer.json"))
        write(os.path.join(folder, "encodings.json"), encodings(tokenizer))


if __name__ == "__main__":
    main()
