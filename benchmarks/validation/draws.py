"""Which launches are drawn: sizes and orders by kernel, and the draws whose counts are committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

ORDERS = 4  # beside the launch order
PLANE = (
    ("group_m(size=8)",),
    (
        *("row", "column", "snake", "hilbert", "morton", "group_m(size=2)", "group_m(size=4)", "group_m(size=16)"),
        *("group_n(size=2)", "group_n(size=4)", "group_n(size=16)", "blocks(rows=8,cols=8,size=4)", "reverse"),
    ),
)
BOXES = (
    ("boxes(x=4,y=4,z=4)",),
    (
        *("morton_3d", "reverse", "boxes(x=2,y=8,z=1)", "boxes(x=8,y=2,z=1)", "boxes(x=8,y=8,z=1)"),
        *("boxes(x=1,y=1,z=8)", "boxes(x=2,y=2,z=2)", "boxes(x=16,y=4,z=2)"),
    ),
)
HELD = {"B": 1, "BLOCK_M": 128, "PROGRAMS": 132}  # persistent programs, one an SM
Sizes = dict[str, int]
Between = Callable[[int, int], int]
Pool = tuple[tuple[str, ...], tuple[str, ...]]  # always taken, and to draw from


@dataclass(frozen=True)
class Drawn:
    """How the launches of one kernel are drawn: sizes, and the orders that its grid knows.

    ``declared`` is ``MODULE:VARIABLE`` of `swizzle_benchmarks.evidence.kernels_tried.declarations` for what others
    published.
    Without, it is a kernel of the suite: ``suite``, or the one by whose name it is drawn.
    """

    sizes: Callable[[Between], Sizes]
    pool: Pool = PLANE
    declared: str = ""
    suite: str = ""


def _gemm(between: Between) -> Sizes:
    tile = {"BLOCK_M": 128, "BLOCK_N": 128 * between(1, 2), "BLOCK_K": 64}
    return {"M": 128 * between(24, 96), "N": 256 * between(12, 48), "K": 64 * between(32, 240), **tile}


def _wide_gemm(between: Between) -> Sizes:
    return _gemm(between) | {"BLOCK_N": 256}


def _products(between: Between) -> Sizes:
    return {
        "BATCH": between(3, 16),
        **{side: 128 * between(8, 20) for side in "MN"},
        "K": 64 * between(8, 32),
    }


def _experts(between: Between) -> Sizes:
    return {"TOKENS": 256 * between(4, 16), "N": 128 * between(16, 40), "K": 64 * between(16, 48)}


def _scaled_gemm(between: Between) -> Sizes:
    return {"M": 128 * between(24, 64), "N": 128 * between(24, 64), "K": 128 * between(8, 32)}


def _plain_gemm(between: Between) -> Sizes:
    return {"M": 128 * between(24, 64), "N": 128 * between(24, 64), "K": 64 * between(16, 64)}


PUBLISHED = {  # by the name of their package
    "flag-gems mm": Drawn(_plain_gemm, declared="more:general_mm"),
    "torchao int8_mm": Drawn(_plain_gemm, declared="others:int8_mm"),
    "aiter gemm_a16w16": Drawn(_plain_gemm, declared="aiter:a16w16"),
    "sglang fused_moe": Drawn(_experts, declared="moe:sglang"),
    "flashinfer persistent": Drawn(
        lambda between: _plain_gemm(between) | {"PROGRAMS": HELD["PROGRAMS"]}, declared="more:persistent"
    ),
    "fla chunk_o": Drawn(
        lambda between: {"BATCH": between(2, 6), "HEADS": 8 * between(1, 4), "CONTEXT": 256 * between(8, 24)},
        declared="others:chunk_o",
    ),
    "flag-gems conv2d": Drawn(
        lambda between: {"IMAGES": between(8, 48), "SIDE": 8 * between(4, 10)}, BOXES, "others:conv2d"
    ),
    "sglang decode": Drawn(
        lambda between: {"BATCH": between(8, 48), "CONTEXT": 512 * between(2, 8)}, BOXES, "attention:decode"
    ),
    "conch unified": Drawn(
        lambda between: {"SEQUENCES": between(4, 12), "TOKENS": 128 * between(4, 10)}, declared="attention:unified"
    ),
    "applied-ai moe": Drawn(_experts, declared="moe:applied_ai"),
    "mlstm": Drawn(lambda between: {"BATCH": between(1, 6), "CONTEXT": 1024 * between(2, 12)}, BOXES, "more:mlstm"),
    "flag-gems addmm": Drawn(_plain_gemm, declared="more:addmm"),
    "sglang block_int8": Drawn(_scaled_gemm, declared="more:block_int8"),
    "torchao int_mm": Drawn(_scaled_gemm, declared="more:int_mm"),
    "flag-gems bmm": Drawn(_products, BOXES, "more:bmm"),
    "flag-gems baddbmm": Drawn(_products, BOXES, "more:baddbmm"),
    "torchao fp8_mm": Drawn(_scaled_gemm, declared="others:fp8_mm"),
    "flag-gems block_fp8": Drawn(_scaled_gemm, declared="more:block_fp8"),
    "torchao matmul": Drawn(_plain_gemm, declared="others:any_mm"),
    "aiter blockscale": Drawn(_scaled_gemm, declared="aiter:blockscale_nvidia"),
    "aiter a8w8": Drawn(_scaled_gemm, declared="aiter:a8w8"),
    "aiter gated": Drawn(_plain_gemm, declared="aiter:gated"),
    "aiter attention": Drawn(
        lambda between: {"BATCH": between(1, 4), "HEADS": 8 * between(1, 5), "CONTEXT": 256 * between(8, 24)},
        declared="aiter:attention",
    ),
    "sage attention": Drawn(
        lambda between: {"BATCH": between(1, 2), "HEADS": 8 * between(1, 5), "CONTEXT": 256 * between(8, 24)},
        BOXES,
        "more:sage",
    ),
}
KERNELS = PUBLISHED | {
    "gemm": Drawn(_gemm),
    "gemm of wide tiles": Drawn(_wide_gemm, suite="gemm"),
    "attention": Drawn(
        lambda between: {"B": 1, "H": 8 * between(2, 10), "S": 256 * between(8, 28), "CAUSAL": between(0, 1)}
    ),
    "transpose": Drawn(lambda between: {"M": 32 * between(64, 400), "N": 32 * between(64, 400)}),
    "stencil_2d": Drawn(lambda between: {"M": 32 * between(64, 400), "N": 32 * between(64, 400)}),
    "batched_gemm": Drawn(
        lambda between: {
            **{"BATCH": between(3, 24), "M": 128 * between(8, 28), "N": 128 * between(8, 28), "K": 64 * between(8, 40)}
        },
        BOXES,
    ),
    "stencil_3d": Drawn(
        lambda between: {"NX": 64 * between(3, 9), "NY": 4 * between(32, 120), "NZ": 4 * between(32, 120)}, BOXES
    ),
    "moe_gemm": Drawn(
        lambda between: {"TOKENS": 256 * between(1, 6), "N": 128 * between(8, 20), "SEED": between(2, 99)}
    ),
    "attention_gqa": Drawn(
        lambda between: {"B": 1, "H": 8 * between(3, 9), "S": 256 * between(8, 24), "CAUSAL": between(0, 1)}
    ),
    "conv_2d": Drawn(
        lambda between: (
            {"N": between(1, 3), "H": 8 * between(6, 14), "W": 16 * between(3, 7), "C": 64 * between(3, 9)}
            | {"K": 128 * between(2, 8)}
        )
    ),
    "mla_decode": Drawn(lambda between: {"B": between(2, 8), "S": 512 * between(16, 96)}, BOXES),
    "attention_varlen": Drawn(
        lambda between: {"B": between(4, 12), "H": 8 * between(2, 4), "S": 256 * between(6, 14), "SEED": between(2, 99)}
    ),
    "grouped_gemm": Drawn(
        lambda between: {"TOKENS": 512 * between(4, 12), "N": 128 * between(12, 40), "K": 64 * between(24, 80)}
    ),
    "gemm_jagged": Drawn(
        lambda between: {"GROUPS": between(40, 120), "N": 128 * between(3, 8), "K": 64 * between(6, 20)}
    ),
    "smith_waterman": Drawn(lambda between: {side: 32 * between(64, 256) for side in "MN"}),
    "attention_persistent": Drawn(
        lambda between: HELD | {"H": 8 * between(3, 8), "S": 256 * between(8, 20), "CAUSAL": between(0, 1)}
    ),
    "attention_paged": Drawn(
        lambda between: {"B": between(8, 24), "S": 512 * between(4, 10), "SEED": between(2, 99)}, BOXES
    ),
    "attention_decode": Drawn(
        lambda between: {"B": between(2, 8), "H": 8 * between(3, 9), "S": 512 * between(16, 64)}, BOXES
    ),
}


@dataclass(frozen=True)
class Draw:
    """The seed of a draw's committed launches, what it is of, and how often it launches each kernel."""

    seed: int
    what: str
    launches: dict[str, int]


DRAWS = {  # by name, which begins with the GPU's
    "h200": Draw(
        31,
        "the suite",
        {
            **{"gemm": 5, "attention": 3, "transpose": 2, "stencil_2d": 2},
            **{"batched_gemm": 2, "stencil_3d": 2, "moe_gemm": 1},
        },
    ),
    "h100": Draw(
        32, "the suite, on an H100", {"gemm": 2, "attention": 1, "transpose": 1, "stencil_2d": 1, "batched_gemm": 1}
    ),
    "h200_second": Draw(
        36,
        "after steps of copies and what it takes to remap were in the model",
        {
            **{"gemm": 4, "batched_gemm": 2, "transpose": 1},
            **{"attention_gqa": 2, "conv_2d": 2, "attention_decode": 2},
        },
    ),
    "h200_third": Draw(
        37,
        "after a step waits for what its compiled code waits for",
        {"gemm": 4, "batched_gemm": 2, "transpose": 1, "attention_gqa": 1, "conv_2d": 2},
    ),
    "h200_fourth": Draw(38, "two kernels that had never been counted", {"mla_decode": 1, "attention_varlen": 2}),
    "h200_fifth": Draw(
        39,
        "two kernels that no draw had",
        {"gemm": 7, "batched_gemm": 1, "transpose": 1, "conv_2d": 1, "grouped_gemm": 2, "gemm_jagged": 1},
    ),
    "h200_sixth": Draw(
        40,
        "after the last line of a burst is asked for late and fewer reads break a tie",
        {
            **{"gemm": 5, "batched_gemm": 2, "transpose": 1, "conv_2d": 1},
            **{"attention_gqa": 1, "smith_waterman": 1, "attention_paged": 2},
        },
    ),
    "h200_seventh": Draw(
        41,
        "after loops of a remap are counted as often as they turn",
        {
            **{"gemm": 5, "batched_gemm": 1, "grouped_gemm": 1, "gemm_jagged": 1, "conv_2d": 1},
            **{"transpose": 1, "smith_waterman": 1, "attention_persistent": 1, "mla_decode": 1},
        },
    ),
    "h200_eighth": Draw(
        42,
        "attention and decoding after loops that are not pipelined take what their code takes",
        {
            **{"attention": 2, "attention_gqa": 2, "attention_varlen": 2, "attention_persistent": 2},
            **{"mla_decode": 2, "attention_decode": 1, "attention_paged": 1, "gemm": 1},
        },
    ),
    "h200_ninth": Draw(
        43,
        "decoding after lanes that meet on a bank take turns",
        {"attention_decode": 2, "attention_paged": 2, "mla_decode": 2, "attention": 1, "attention_gqa": 1},
    ),
    "h200_tenth": Draw(
        44,
        "products that others published",
        {"flag-gems mm": 2, "torchao int8_mm": 2, "aiter gemm_a16w16": 2, "sglang fused_moe": 2},
    ),
    "h200_eleventh": Draw(
        45,
        "what else others published",
        {
            **{"flashinfer persistent": 1, "fla chunk_o": 1, "flag-gems conv2d": 1},
            **{"sglang decode": 1, "conch unified": 1, "sage attention": 1},
        },
    ),
    "h200_twelfth": Draw(
        46,
        "after workgroups that load the same are in step",
        {"gemm": 7, "batched_gemm": 1, "grouped_gemm": 1, "conv_2d": 1, "attention_gqa": 1, "transpose": 1},
    ),
    "h200_thirteenth": Draw(
        47,
        "what others published, of which two no draw had",
        {"applied-ai moe": 2, "mlstm": 1, "flag-gems mm": 1, "flashinfer persistent": 1},
    ),
    "h200_fourteenth": Draw(48, "GEMM in tiles of 128 x 256", {"gemm of wide tiles": 8}),
    "h200_fifteenth": Draw(
        49,
        "after reads of a GPC that meet go to its L2 as one",
        {"gemm": 4, "gemm of wide tiles": 1, "batched_gemm": 1, "grouped_gemm": 1, "conv_2d": 1},
    ),
    "h200_sixteenth": Draw(
        50,
        "what others published, of which two no draw had",
        {
            **{"flag-gems mm": 2, "sglang fused_moe": 1, "applied-ai moe": 1, "aiter gemm_a16w16": 1},
            **{"torchao int8_mm": 1, "flag-gems addmm": 2, "sglang block_int8": 2},
        },
    ),
    "h200_seventeenth": Draw(
        51,
        "other kernels of the suite",
        {
            **{"gemm": 2, "attention": 1, "attention_gqa": 1, "transpose": 1},
            **{"stencil_2d": 1, "batched_gemm": 1, "mla_decode": 1},
        },
    ),
    "h200_eighteenth": Draw(
        52,
        "other published kernels, of which two no draw had",
        {
            **{"torchao int_mm": 2, "flag-gems bmm": 2, "flashinfer persistent": 1},
            **{"conch unified": 1, "sage attention": 1, "flag-gems conv2d": 1},
        },
    ),
    "h200_nineteenth": Draw(
        53,
        "after loads pass its L1 by banks",
        {
            **{"gemm": 3, "gemm of wide tiles": 1, "batched_gemm": 1, "attention": 1},
            **{"stencil_2d": 3, "transpose": 1, "mla_decode": 1, "smith_waterman": 1},
        },
    ),
    "h200_twentieth": Draw(
        54,
        "what others published, of which two no draw had",
        {
            **{"torchao fp8_mm": 2, "torchao matmul": 2, "flag-gems mm": 1, "flag-gems addmm": 1},
            **{"aiter gemm_a16w16": 1, "sglang fused_moe": 1, "torchao int8_mm": 1, "flag-gems bmm": 1},
        },
    ),
    "h200_twentyfirst": Draw(
        55,
        "after no option is offered that spills",
        {
            **{"torchao fp8_mm": 2, "torchao matmul": 1, "flag-gems mm": 1, "flag-gems bmm": 1},
            **{"sage attention": 1, "applied-ai moe": 1, "aiter gemm_a16w16": 1, "gemm": 2, "stencil_2d": 1},
        },
    ),
    "h200_twentysecond": Draw(
        56,
        "after a loop counts as pipelined only where its own loads are sent ahead",
        {
            **{"gemm": 2, "gemm of wide tiles": 1, "batched_gemm": 1, "attention_gqa": 1},
            **{"transpose": 1, "stencil_2d": 1, "torchao fp8_mm": 1, "sglang block_int8": 1},
            **{"sglang decode": 1, "mlstm": 1, "applied-ai moe": 1},
            **{"flag-gems block_fp8": 2, "flag-gems baddbmm": 2},
        },
    ),
    "h200_twentythird": Draw(
        57,
        "after workgroups of an SM wait for each other in its queues",
        {
            **{"gemm": 2, "batched_gemm": 2, "conv_2d": 1, "moe_gemm": 1, "attention": 1},
            **{"torchao fp8_mm": 2, "aiter gemm_a16w16": 1, "flag-gems mm": 1, "flag-gems block_fp8": 1},
            **{"aiter blockscale": 2, "aiter a8w8": 2},
        },
    ),
    "h200_twentyfourth": Draw(
        58,
        "after code that a step's next loads wait for is timed as such",
        {
            **{"gemm": 2, "gemm of wide tiles": 1, "batched_gemm": 1, "grouped_gemm": 1, "attention_varlen": 1},
            **{"transpose": 1, "torchao fp8_mm": 1, "aiter blockscale": 1, "flag-gems block_fp8": 1},
            **{"flag-gems mm": 1, "torchao matmul": 1, "aiter gated": 2, "aiter attention": 2},
        },
    ),
}


def drawn(name: str, seed: int) -> Iterator[tuple[str, Sizes, list[str]]]:
    """Kernel, sizes and orders of each launch of a draw; the same for the same seed."""
    rng = np.random.default_rng(seed)
    for one, times in DRAWS[name].launches.items():
        for _ in range(times):
            sizes = KERNELS[one].sizes(lambda low, high: int(rng.integers(low, high + 1)))
            always, others = KERNELS[one].pool
            picked = rng.choice(len(others), ORDERS - len(always), replace=False)
            yield one, sizes, [*always, *(others[place] for place in picked)]
