"""llama.cpp's half: prints tokens per second as JSON, by variant and workload.

Workloads are named as ``dormouse bench engine`` names them: ``prefill 512``, ``decode 8``, ``decode
1 after 960``. It does the same: random tokens in chunks of 512, then single ones, greedily.
"""

import argparse
import json
import random
import re
import statistics
import sys
import time

import llama_cpp
import numpy

CHUNK_TOKENS = 512
DECODE_STEPS = 64
LOG_LEVEL_ERROR = 4  # GGML_LOG_LEVEL_ERROR in ggml.h
WORKLOAD = re.compile(r"(prefill|decode) (\d+)(?: after (\d+))?")
VARIANTS = {
    "without flash attention": llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED,
    "with flash attention": llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED,
}


class Sequences:
    """Sequences of random tokens, each with room for ``tokens``."""

    def __init__(self, model, count, tokens, threads, flash_attention):
        self._count = count
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = count * tokens
        params.n_batch = params.n_ubatch = CHUNK_TOKENS
        params.n_seq_max = count
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = flash_attention
        params.no_perf = True
        self._context = llama_cpp.llama_init_from_model(model, params)
        if not self._context:
            raise RuntimeError(f"no context for {count} sequences of {tokens} tokens")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(CHUNK_TOKENS, 0, 1)

    def close(self):
        llama_cpp.llama_batch_free(self._batch)
        llama_cpp.llama_free(self._context)

    def forget(self, depth):
        """Leaves each sequence its first tokens."""
        for sequence in range(self._count):
            llama_cpp.llama_memory_seq_rm(self._memory, sequence, depth, -1)

    def prefill(self, tokens):
        """Gives every sequence a prompt, one sequence after the other."""
        for sequence in range(self._count):
            for start in range(0, tokens, CHUNK_TOKENS):
                end = min(tokens, start + CHUNK_TOKENS)
                rows = [
                    (self._random(), position, sequence, position == tokens - 1)
                    for position in range(start, end)
                ]
                self._decode(rows)
        llama_cpp.llama_synchronize(self._context)

    def decode(self, depth):
        """Goes on from a random token each, all sequences at once."""
        tokens = [self._random() for _ in range(self._count)]
        for position in range(depth, depth + DECODE_STEPS):
            self._decode([(token, position, i, True) for i, token in enumerate(tokens)])
            tokens = [self._likeliest(i) for i in range(self._count)]

    def _random(self):
        return random.randrange(self._vocabulary)

    def _decode(self, rows):
        batch = self._batch
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, logits) in enumerate(rows):
            batch.token[i] = token
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = logits
        status = llama_cpp.llama_decode(self._context, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode answers {status} to {len(rows)} tokens")

    def _likeliest(self, row):
        logits = llama_cpp.llama_get_logits_ith(self._context, row)
        return int(numpy.ctypeslib.as_array(logits, (self._vocabulary,)).argmax())


def measure(model, workload, threads, repetitions, flash_attention):
    """Tokens per second, the median; the first run does not count."""
    kind, number, depth = WORKLOAD.fullmatch(workload).groups(default="0")
    number, depth = int(number), int(depth)
    prefill = kind == "prefill"
    count = 1 if prefill else number
    room = number if prefill else depth + DECODE_STEPS
    sequences = Sequences(model, count, room, threads, flash_attention)
    sequences.prefill(depth)
    seconds = []
    for _ in range(repetitions + 1):
        sequences.forget(depth)
        start = time.perf_counter()
        if prefill:
            sequences.prefill(number)
        else:
            sequences.decode(depth)
        seconds.append(time.perf_counter() - start)
    sequences.close()
    return (number if prefill else count * DECODE_STEPS) / statistics.median(seconds[1:])


@llama_cpp.llama_log_callback
def log_errors(level, text, _):
    if level == LOG_LEVEL_ERROR:
        sys.stderr.write(text.decode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--repetitions", type=int, required=True)
    parser.add_argument("workloads", nargs="+")
    options = parser.parse_args()
    random.seed(1)
    llama_cpp.llama_log_set(log_errors, None)
    llama_cpp.llama_backend_init()
    info = llama_cpp.llama_print_system_info().decode()
    if "AMX_INT8 = 1" in info:
        raise RuntimeError(f"llama.cpp was built with AMX tiles, which Java cannot use: {info}")
    model = llama_cpp.llama_model_load_from_file(
        options.model.encode(), llama_cpp.llama_model_default_params()
    )
    if not model:
        raise RuntimeError(f"llama.cpp cannot load {options.model}")
    rates = {
        name: {
            workload: measure(model, workload, options.threads, options.repetitions, variant)
            for workload in options.workloads
        }
        for name, variant in VARIANTS.items()
    }
    llama_cpp.llama_model_free(model)
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
