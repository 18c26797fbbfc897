#!/usr/bin/env python3
"""Makes the reference data of the model tests with llama.cpp and jinja2.

The Java tokenizer, chat template and forward pass are tested against what this script writes to
model/src/test/resources/reference/. It needs about 3 GiB of memory, 1 GiB of disk and a few minutes:

    python3 -m venv /tmp/reference-venv
    /tmp/reference-venv/bin/pip install llama-cpp-python==0.3.36 jinja2==3.1.6
    /tmp/reference-venv/bin/python model/src/test/reference/make_reference.py MODEL.gguf

The logits come from the model's own weights in float32: llama.cpp multiplies 4-bit weights with
activations that it rounds to 8 bits, so the weights are first expanded to float32 (which is exact),
and the KV cache is float32 too. What is left is the rounding of float32 sums.

With --compare the same prompts also run on the file as it is, and the script reports how often
llama.cpp agrees with itself: that is the noise a test has to allow for.
"""

import argparse
import ctypes
import json
import os
import random
import sys
import tempfile

import jinja2
import jinja2.ext
import jinja2.sandbox
import llama_cpp
import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import prompts  # noqa: E402
import templates  # noqa: E402

CONTEXT = 1024
CONTINUATION = 32
TOP = 20
SEED = 20250101
PRE_TOKENIZERS = ["gpt-2", "default", "llama-bpe", "qwen2"]


def load(path):
    return llama_cpp.Llama(
        path,
        n_ctx=CONTEXT,
        n_batch=512,
        n_threads=1,
        n_threads_batch=1,
        logits_all=True,
        flash_attn=False,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
        verbose=False,
    )


def expand_to_float32(source, target):
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.nthread = 1
    parameters.ftype = llama_cpp.LLAMA_FTYPE_ALL_F32
    parameters.allow_requantize = True
    status = llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(parameters))
    if status != 0:
        raise SystemExit(f"expanding {source} failed with status {status}")


def forward(model, tokens, continuation):
    """Logits of all positions of `tokens`, then of the greedy continuation."""
    model.reset()
    model.eval(tokens)
    out = []
    while len(out) < continuation:
        following = int(model.scores[model.n_tokens - 1].argmax())
        out.append(following)
        if len(out) < continuation:
            model.eval([following])
    return model.scores[: len(tokens)].copy(), out


def prompt_entry(model, name, text, special):
    tokens = model.tokenize(text.encode(), add_bos=True, special=special)
    logits, continuation = forward(model, tokens, CONTINUATION)
    # Ties go to the lower id, as in argmax.
    order = numpy.argsort(-logits[-1], kind="stable")[:TOP]
    sorted_logits = numpy.sort(logits, axis=1)
    return {
        "name": name,
        "text": text,
        "parseSpecial": special,
        "tokens": tokens,
        "continuation": continuation,
        "top1": [int(t) for t in logits.argmax(axis=1)],
        "margin": [round(float(m), 3) for m in sorted_logits[:, -1] - sorted_logits[:, -2]],
        "lastLogits": [[int(t), round(float(logits[-1][t]), 4)] for t in order],
    }


def random_strings(count):
    """Strings of random letters, digits, spaces and symbols from several scripts."""
    generator = random.Random(SEED)
    alphabets = [
        "abcdefghijklmnopqrstuvwxyz",
        "ABCXYZ",
        "0123456789",
        "    \t\n\r",
        "'\"!?.,;:-_()[]{}<>/\\|@#$%^&*+=~`",
        "äöüßéèçñøåœ",
        "абвгдежзийклмн",
        "的一是不了人我在有他这",
        "あいうえおカキクケコ",
        "😀🎉🚀👍🏽‍♀️☀",
        "\u00a0\u2003\u200d\u0301½²٣",
    ]
    words = ["'s", "'re", "'ll", " the", " of", "ing", "tion", "<|", "|>", "<|im_end|>", "  ", "\n\n"]
    out = []
    for _ in range(count):
        parts = []
        for _ in range(generator.randint(1, 14)):
            if generator.random() < 0.3:
                parts.append(generator.choice(words))
            else:
                alphabet = generator.choice(alphabets)
                parts.append("".join(generator.choice(alphabet) for _ in range(generator.randint(1, 6))))
        out.append("".join(parts))
    return out


def tokenizer_entries(model):
    entries = []
    for text in prompts.STRINGS + random_strings(120):
        plain = model.tokenize(text.encode(), add_bos=True, special=False)
        special = model.tokenize(text.encode(), add_bos=True, special=True)
        entries.append([text, plain] if plain == special else [text, plain, special])
    return entries


def pre_tokenizer_entries(path, smollm):
    """For each other pre-tokenizer the strings that it encodes differently, by their index."""
    entries = {}
    for name in PRE_TOKENIZERS:
        model = llama_cpp.Llama(
            path, vocab_only=True, verbose=False, kv_overrides={"tokenizer.ggml.pre": name}
        )
        different = {}
        for index, entry in enumerate(smollm):
            tokens = model.tokenize(entry[0].encode(), add_bos=True, special=False)
            if tokens != entry[1]:
                different[index] = tokens
        entries[name] = different
        model.close()
    return entries


def template_entries(default_template):
    """Renders as transformers' apply_chat_template does: the same environment and functions."""

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    entries = []
    for name, template in [("default", default_template)] + templates.TEMPLATES:
        compiled = environment.from_string(template)
        for messages in templates.CONVERSATIONS:
            for prompt in (False, True):
                entry = {"template": name, "messages": messages, "addGenerationPrompt": prompt}
                try:
                    entry["text"] = compiled.render(
                        messages=messages,
                        add_generation_prompt=prompt,
                        bos_token="<|im_start|>",
                        eos_token="<|im_end|>",
                    )
                except jinja2.exceptions.TemplateError as e:
                    entry["error"] = str(e)
                entries.append(entry)
    layouts = [
        [layout, environment.from_string(layout).render(messages=True)]
        for layout in templates.random_layouts(150)
    ]
    return {"templates": dict(templates.TEMPLATES), "renderings": entries, "layouts": layouts}


def write(directory, name, value, per_line):
    """One entry a line, so that a changed entry shows as one changed line."""
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as out:
        if per_line:
            lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in value)
            out.write("[\n" + lines + "\n]\n")
        else:
            json.dump(value, out, separators=(",", ":"))
            out.write("\n")
    print(f"{path}: {os.path.getsize(path)} bytes")


def compare(entries, other):
    agreeing = positions = chains = 0
    for entry in entries:
        logits, continuation = forward(other, entry["tokens"], CONTINUATION)
        top1 = logits.argmax(axis=1).tolist()
        agreeing += sum(a == b for a, b in zip(top1, entry["top1"]))
        positions += len(top1)
        chains += continuation[:16] == entry["continuation"][:16]
    print(f"file as it is: top-1 agrees at {agreeing} of {positions} positions,")
    print(f"the first 16 greedy tokens for {chains} of {len(entries)} prompts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the GGUF file of the default model")
    parser.add_argument("--only", choices=["prompts", "tokenizer", "chat"], help="make only these files")
    parser.add_argument("--compare", action="store_true", help="also run the prompts on the file as it is")
    arguments = parser.parse_args()
    directory = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "resources", "reference")
    os.makedirs(directory, exist_ok=True)
    vocabulary = llama_cpp.Llama(arguments.model, vocab_only=True, verbose=False)
    if arguments.only in (None, "tokenizer"):
        encodings = tokenizer_entries(vocabulary)
        write(directory, "tokenizer.json", encodings, per_line=True)
        pre = pre_tokenizer_entries(arguments.model, encodings)
        write(directory, "pretokenizers.json", pre, per_line=False)
    if arguments.only in (None, "chat"):
        template = vocabulary.metadata["tokenizer.chat_template"]
        write(directory, "chat.json", template_entries(template), per_line=False)
    if arguments.only in (None, "prompts"):
        with tempfile.TemporaryDirectory() as scratch:
            expanded = os.path.join(scratch, "float32.gguf")
            expand_to_float32(arguments.model, expanded)
            model = load(expanded)
            entries = [prompt_entry(model, *prompt) for prompt in prompts.PROMPTS]
            write(directory, "prompts.json", entries, per_line=True)
            model.close()
        if arguments.compare:
            compare(entries, load(arguments.model))


if __name__ == "__main__":
    main()
