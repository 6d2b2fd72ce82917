"""Kernels that torch's Inductor wrote: a product with a bias, attention with its mask, and its backward.

Sizes stand in their text. Of the first the repository holds the wrapper, in which the kernel's file is a string.
"""

import ast
import os
from pathlib import Path

import numpy as np

from swizzle_sim.capture import Array, Kernel

WRAPPER = Path(os.environ["FLUX_TRITON"]) / "output_code.py"
CACHE = Path(os.environ["LOGSNRCAT"])


def written(name):
    """File of a kernel beside its wrapper, as Inductor writes it."""
    calls = [n for n in ast.walk(ast.parse(WRAPPER.read_text(encoding="utf-8"))) if isinstance(n, ast.Assign)]
    text = next(n.value.args[1].value for n in calls if getattr(n.targets[0], "id", "") == name)
    path = WRAPPER.with_name(f"{name}.py")
    if not path.is_file():
        path.write_text(text, encoding="utf-8")
    return f"{path}:triton_"


def cdiv(a, b):
    return -(-a // b)


M, N, K = 40800, 9216, 3072

addmm = Kernel(
    written("triton_tem_fused_addmm_3"),
    sizes={},
    arguments=lambda s: {
        "in_ptr0": Array(shape=(N,), dtype="fp16"), "arg_A": Array(shape=(M, K), dtype="fp16"),
        "arg_B": Array(shape=(K, N), dtype="fp16", strides=(1, K)),
        "out_ptr0": Array(shape=(M, N), dtype="fp16", role="out"),
    },
    grid=lambda s: (cdiv(M, 128) * cdiv(N, 128),),
    num_warps=8,
    num_stages=2,
)  # fmt: skip

BATCH, HEADS, TOKENS, WIDTH = 256, 4, 64, 64


def of_heads(role="in"):
    return Array(shape=(BATCH, HEADS, TOKENS, WIDTH), dtype="fp32", role=role)


VALUES = Array(shape=(BATCH, TOKENS, 12, WIDTH), dtype="fp32")  # queries, keys and values side by side


def rows(role="in"):
    return Array(shape=(BATCH, HEADS, TOKENS), dtype="fp32", role=role)


def lists(*names):
    return {name: Array(shape=(1,), dtype="int32", is_index=True) for name in names}


def one_block(*names):
    return {name: np.full(1, "NUM" in name and "FULL" not in name, np.int32) for name in names}


KV = ("arg_KV_NUM_BLKS", "arg_KV_IDX", "arg_FULL_KV_NUM_BLKS", "arg_FULL_KV_IDX")
Q = ("arg_Q_NUM_BLKS", "arg_Q_IDX", "arg_FULL_Q_NUM_BLKS", "arg_FULL_Q_IDX")

flex = Kernel(
    f"{CACHE}/ok/cokx6daxp4c36uhvqkgaosec66sy7appzr5pwx6y4dyatdiymork.py"
    ":triton_tem_fused__unsafe_view_split_transpose_view_53",
    sizes={},
    arguments=lambda s: {
        "arg_Q": of_heads(), "arg_K": of_heads(), "arg_V": VALUES, "arg_M": rows("out"), "arg_L": rows("out"),
        **lists(*KV), "in_ptr9": Array(shape=(TOKENS,), dtype="int32"),
        "in_ptr10": Array(shape=(TOKENS,), dtype="bool"), "out_ptr0": of_heads("out"),
    },
    grid=lambda s: (BATCH * HEADS, 1, 1),
    make_inputs=lambda s, seed: one_block(*KV),
    num_warps=2,
    num_stages=1,
)  # fmt: skip

flex_backward = Kernel(
    f"{CACHE}/7u/c7uprriywovugd7wrab2xkhzbijsmnpuky6lcv6oxarzveomw5sw.py:triton_flex_attention_backward",
    sizes={},
    arguments=lambda s: {
        "arg_Q": of_heads(), "arg_K": of_heads(), "arg_V": VALUES, "arg_LSE": rows(), "arg_DELTA": rows(),
        "arg_DO": of_heads(), "arg_DQ": of_heads("out"), "arg_DV": of_heads("out"), **lists(*KV, *Q),
        "in_ptr16": Array(shape=(TOKENS,), dtype="int32"), "in_ptr17": Array(shape=(TOKENS,), dtype="bool"),
        "out_ptr0": of_heads("out"),
    },
    grid=lambda s: (2 * cdiv(TOKENS, 16), BATCH, HEADS),
    make_inputs=lambda s, seed: one_block(*KV, *Q),
    num_warps=4,
    num_stages=1,
)  # fmt: skip
