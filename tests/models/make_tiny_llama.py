#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small model of the quick start and the tests: the module tree of a Llama of four layers.

usage: make_tiny_llama.py OUTFILE

The weights are pseudo-random and of realistic size; every run writes the same bytes. One projection is quantised to
F8_E4M3 and one to U8, each with its scale; there are F32 norms, an I64 and a BOOL buffer, and a scalar.
"""

import random
import struct
import sys

from refwriter import Tensor, compact, write

HIDDEN, INNER, KEYS, LAYERS, VOCABULARY, POSITIONS = 64, 160, 32, 4, 256, 64

LICENSE = """Made of pseudo-random numbers by tests/models/make_tiny_llama.py.
No rights are reserved (CC0-1.0): copy it, change it, use it for anything.

It has learned nothing. Do not ask it questions.
"""

METADATA = {
    "format": "pt",
    "title": "Tiny Llama 🦙",
    "description": "a Llama-shaped tree of four layers for trying out safetensorsfs",
    "license": LICENSE,
    "architecture": "LlamaForCausalLM",
    "config": compact(
        {
            "hidden_size": HIDDEN,
            "intermediate_size": INNER,
            "num_attention_heads": 4,
            "num_hidden_layers": LAYERS,
            "num_key_value_heads": 2,
            "vocab_size": VOCABULARY,
        }
    ),
}


class Numbers:
    """A bell curve from the one method of random whose values are promised never to change."""

    def __init__(self, seed):
        self.uniform = random.Random(seed).random

    def normal(self, count, spread=0.02, middle=0.0):
        uniform = self.uniform
        return [middle + spread * (sum(uniform() for _ in range(12)) - 6) for _ in range(count)]


def f32(values):
    return struct.pack("<%df" % len(values), *values)


def bf16(values):
    """The upper halves of F32, rounded to nearest, ties to even."""
    words = struct.unpack("<%dI" % len(values), f32(values))
    return struct.pack("<%dH" % len(words), *[(word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in words])


def f8_e4m3_values():
    """The values of the codes 0x00 to 0x7e, ascending."""
    small = [mantissa / 8 * 2.0**-6 for mantissa in range(8)]
    return small + [(1 + mantissa / 8) * 2.0 ** (power - 7) for power in range(1, 16) for mantissa in range(8)][:-1]


def quantise_f8(values):
    """Returns (F8_E4M3 bytes, scale): the largest value becomes 448, the largest of the type."""
    table = f8_e4m3_values()
    scale = max(map(abs, values)) / table[-1]
    nearest = lambda size: min(range(len(table)), key=lambda code: abs(table[code] - size))
    return bytes(nearest(abs(value) / scale) | (0x80 if value < 0 else 0) for value in values), scale


def quantise_u8(values, columns):
    """Returns (U8 bytes around 128, one scale a row)."""
    rows = [values[i : i + columns] for i in range(0, len(values), columns)]
    scales = [max(map(abs, row)) / 127 for row in rows]
    return bytes(128 + round(value / scale) for row, scale in zip(rows, scales) for value in row), scales


def projection(name, rows, columns, numbers):
    values = numbers.normal(rows * columns)
    if name == "model.layers.3.mlp.down_proj":
        data, scale = quantise_f8(values)
        yield Tensor(name + ".weight", "F8_E4M3", [rows, columns], data)
        yield Tensor(name + ".weight_scale", "F32", [1], f32([scale]))
    elif name == "model.layers.2.mlp.down_proj":
        data, scales = quantise_u8(values, columns)
        yield Tensor(name + ".weight", "U8", [rows, columns], data)
        yield Tensor(name + ".weight_scale", "F32", [rows, 1], f32(scales))
    else:
        yield Tensor(name + ".weight", "BF16", [rows, columns], bf16(values))


def norm(name, numbers):
    yield Tensor(name + ".weight", "F32", [HIDDEN], f32(numbers.normal(HIDDEN, 0.1, 1.0)))


def layer(prefix, numbers):
    yield from norm(prefix + "input_layernorm", numbers)
    for name, rows in (("q_proj", HIDDEN), ("k_proj", KEYS), ("v_proj", KEYS), ("o_proj", HIDDEN)):
        yield from projection(prefix + "self_attn." + name, rows, HIDDEN, numbers)
    yield from norm(prefix + "post_attention_layernorm", numbers)
    for name, rows, columns in (("gate_proj", INNER, HIDDEN), ("up_proj", INNER, HIDDEN), ("down_proj", HIDDEN, INNER)):
        yield from projection(prefix + "mlp." + name, rows, columns, numbers)


def model():
    numbers = Numbers(20)
    yield from projection("model.embed_tokens", VOCABULARY, HIDDEN, numbers)
    for i in range(LAYERS):
        yield from layer("model.layers.%d." % i, numbers)
    yield from norm("model.norm", numbers)
    yield from projection("lm_head", VOCABULARY, HIDDEN, numbers)
    yield Tensor("model.position_ids", "I64", [1, POSITIONS], struct.pack("<%dq" % POSITIONS, *range(POSITIONS)))
    mask = bytes(column <= row for row in range(POSITIONS) for column in range(POSITIONS))
    yield Tensor("model.causal_mask", "BOOL", [POSITIONS, POSITIONS], mask)
    yield Tensor("model.logit_scale", "F16", [], struct.pack("<e", 0.125))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1], list(model()), METADATA)


if __name__ == "__main__":
    main()
