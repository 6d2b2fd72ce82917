"""Launch one kernel of `nvidia_kernels` once an order and check each result: what the profiler is put around.

    python -m swizzle_benchmarks.lab.nvidia_launch JOB.json

The file holds ``kernel``, ``problem`` and ``orders`` (a list of names). Prints JSON lines: GPU and software first,
then each order with whether its result was right, so that a crash loses only what comes after it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import triton

from swizzle_benchmarks.validation.workloads import h200, orders

from . import nvidia_kernels

Sizes = Mapping[str, int]
Launch = Callable[..., None]  # (order of tiles, and for GEMM and attention a clock, see `nvidia_kernels`)
STEPS = 32  # times that a clock notes, evenly over the steps of a workgroup


def main() -> None:
    """Launch every order of a job file; exit with status 1 if a result is wrong."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    about = {"gpu": torch.cuda.get_device_name(), "compiler": f"triton {triton.__version__}, torch {torch.__version__}"}
    print(json.dumps(about), flush=True)
    size, shape = job["problem"], h200.KERNELS[job["kernel"]]
    torch.manual_seed(0)
    launch, output, wanted = MAKERS[job["kernel"]](size, shape.warps)
    wrong = []
    for name in job["orders"]:
        order = orders.tiles_of(name, *shape.tiles(size), 1)
        output.zero_()
        launch(torch.from_numpy(order).to("cuda", torch.int32))
        torch.cuda.synchronize()
        right = torch.allclose(output.float(), wanted, atol=0.05, rtol=0.02)
        print(json.dumps({"order": name, "right": right}), flush=True)
        wrong += [] if right else [name]
    if wrong:
        sys.exit(f"{job['kernel']}: wrong result under {', '.join(wrong)}")


def _random(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def _gemm(size: Sizes, warps: int) -> tuple[Launch, torch.Tensor, torch.Tensor]:
    m, n, k, bm, bn, bk = (size[name] for name in ("M", "N", "K", "BM", "BN", "BK"))
    a, b = _random(m, k) / math.sqrt(k), _random(k, n)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)

    def launch(tiles: torch.Tensor, clock: torch.Tensor | None = None) -> None:
        nvidia_kernels.fidelity_gemm[(tiles.numel(),)](
            tiles, a, b, c, m, n, k, clock, EVERY=max(1, k // bk // STEPS), BM=bm, BN=bn, BK=bk, num_warps=warps,
            num_stages=3,
        )  # fmt: skip

    return launch, c, (a @ b).float()


def _transpose(size: Sizes, warps: int) -> tuple[Launch, torch.Tensor, torch.Tensor]:
    m, n = size["M"], size["N"]
    x, y = _random(m, n, dtype=torch.float32), torch.empty(n, m, device="cuda")

    def launch(tiles: torch.Tensor) -> None:
        nvidia_kernels.fidelity_transpose[(tiles.numel(),)](
            tiles, x, y, m, n, BM=size["BM"], BN=size["BN"], num_warps=warps
        )

    return launch, y, x.t()


def _stencil(size: Sizes, warps: int) -> tuple[Launch, torch.Tensor, torch.Tensor]:
    m, n = size["M"], size["N"]
    x, y = _random(m, n, dtype=torch.float32), torch.empty(m, n, device="cuda")

    def launch(tiles: torch.Tensor) -> None:
        nvidia_kernels.fidelity_stencil[(tiles.numel(),)](
            tiles, x, y, m, n, BM=size["BM"], BN=size["BN"], num_warps=warps
        )

    wanted = x.clone()
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    wanted[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + around)
    return launch, y, wanted


def _layernorm(size: Sizes, warps: int) -> tuple[Launch, torch.Tensor, torch.Tensor]:
    m, n = size["M"], size["N"]
    x, w, bias, y = _random(m, n), _random(n), _random(n), torch.empty(m, n, device="cuda", dtype=torch.float16)

    def launch(tiles: torch.Tensor) -> None:
        nvidia_kernels.fidelity_layernorm[(tiles.numel(),)](
            tiles, x, w, bias, y, n, EPS=1e-5, BN=size["BN"], num_warps=warps
        )

    return launch, y, torch.nn.functional.layer_norm(x.float(), (n,), w.float(), bias.float(), 1e-5)


def _attention(size: Sizes, warps: int) -> tuple[Launch, torch.Tensor, torch.Tensor]:
    heads, s, d = size["H"], size["S"], size["D"]
    q, k, v = (_random(heads, s, d) for _ in range(3))
    o = torch.empty(heads, s, d, device="cuda", dtype=torch.float16)

    def launch(tiles: torch.Tensor, clock: torch.Tensor | None = None) -> None:
        nvidia_kernels.fidelity_attention[(tiles.numel(),)](
            tiles, q, k, v, o, s, clock, EVERY=max(1, s // size["BK"] // STEPS), SCALE=1 / math.sqrt(d), D=d,
            BQ=size["BQ"], BK=size["BK"], num_warps=warps, num_stages=3,
        )  # fmt: skip

    return launch, o, torch.nn.functional.scaled_dot_product_attention(q, k, v).float()


MAKERS = {
    "gemm": _gemm,
    "transpose": _transpose,
    "stencil": _stencil,
    "layernorm": _layernorm,
    "attention": _attention,
}

if __name__ == "__main__":
    main()
