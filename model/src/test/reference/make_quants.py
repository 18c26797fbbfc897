#!/usr/bin/env python3
"""Makes model/src/test/resources/reference/quants.json: random blocks of each quantised type, with
the values that the gguf package gives for them.

    python3 -m venv /tmp/quants-venv
    /tmp/quants-venv/bin/pip install gguf==0.19.0 numpy
    /tmp/quants-venv/bin/python model/src/test/reference/make_quants.py
"""

import base64
import json
import os

import gguf
import numpy

SEED = 20250102
ROWS = 2
WIDTH = 256
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../resources/reference/quants.json")

# Where the half-precision numbers of a block are: anything may stand elsewhere.
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
}


def main():
    random = numpy.random.default_rng(SEED)
    result = {}
    for name, halves in HALVES.items():
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (ROWS * WIDTH // elements, size), dtype=numpy.uint8)
        for at in halves:
            values = random.normal(0, 0.05, len(blocks)).astype("<f2")
            blocks[:, at : at + 2] = values.view(numpy.uint8).reshape(-1, 2)
        rows = blocks.reshape(ROWS, -1)
        values = gguf.quants.dequantize(rows, kind)
        assert values.shape == (ROWS, WIDTH)
        result[name] = {
            "rows": ROWS,
            "width": WIDTH,
            "bytes": base64.b64encode(rows.tobytes()).decode(),
            "values": base64.b64encode(values.astype("<f4").tobytes()).decode(),
        }
    with open(OUT, "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
