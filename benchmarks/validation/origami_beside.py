"""AMD's analytical model beside ours: L2 hit rates of GEMMs that give each XCD a run of tiles, grouped by G rows.

    python -m swizzle_benchmarks.validation.origami_beside

Needs ``rocm-origami`` (PyPI, 0.0.3), which no wheel brings and no test uses: its sources want HIP's headers. With
Debian's ``hipcc`` and ``libamdhip64-dev`` its build fetches what is not reachable everywhere (rocm-cmake, nanobind by
git); g++ on ``src/origami``, ``src/simulator/tensilelite``, ``python/src/origami/bindings.cpp`` and nanobind's
``nb_combined.cpp``, with ``-D__HIP_PLATFORM_AMD__`` and ``-lamdhip64``, makes the module. Rows and our predictions are
those of ``fidelity.csv``. Its estimate is of reads alone, without order but the group; ours and the counts are of
all requests. Its groups are of columns: rows and columns are exchanged here.
"""

from __future__ import annotations

import csv
import importlib
import re
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from .rows import Row, all_rows

PAGE = Path(__file__).resolve().parents[1] / "evidence/pages/fidelity.csv"
ARCHITECTURES = {"mi300x": ("gfx942", 304, 65536, 2_100_000), "mi355x": ("gfx950", 256, 163840, 2_400_000)}
L2_BYTES = 4 << 20
ORDER = re.compile(r"contiguous\+group(\d+)")


def estimated(origami: Any, row: Row) -> float:
    """Origami's L2 hit rate [%] for a GEMM row."""
    arch, cus, lds_bytes, clock_khz = ARCHITECTURES[row.gpu]
    hardware = origami.get_hardware_for_arch(getattr(origami.architecture_t, arch), cus, lds_bytes, L2_BYTES, clock_khz)
    size, found = row.problem, ORDER.fullmatch(row.order)
    problem, config = origami.problem_t(), origami.config_t()
    problem.size, problem.batch = origami.dim3_t(size["N"], size["M"], size["K"]), 1
    kind = origami.string_to_datatype("bf16")
    problem.a_dtype = problem.b_dtype = problem.c_dtype = problem.d_dtype = problem.mi_dtype = kind
    config.mt = origami.dim3_t(size["BN"], size["BM"], size["BK"])
    config.workgroup_mapping = int(found[1]) if found else 1
    return 100 * float(origami.estimate_l2_hit(problem, hardware, config, 1))


def rows() -> list[Row]:
    """Counted hit rates of GEMMs whose order the estimate knows."""
    known = [row for row in all_rows() if row.quantity == "l2_hit_pct" and row.gpu in ARCHITECTURES]
    whole = [row for row in known if row.kernel != "gemm_cut"]  # that one computes parts of tiles
    return [
        row for row in whole if ORDER.fullmatch(row.order) and {"M", "N", "K", "BM", "BN", "BK"} <= set(row.problem)
    ]


def main() -> None:
    """Print each row: counted, ours and theirs, and the mean error of both."""
    try:
        origami = importlib.import_module("origami")
    except ImportError:
        sys.exit("origami is not installed: this module says how it is built")
    with PAGE.open(encoding="utf-8", newline="") as file:
        ours = {line["id"]: float(line["predicted"]) for line in csv.DictReader(file) if line["variant"] == "timed"}
    errors = []
    for row in rows():
        theirs = estimated(origami, row)
        errors.append((abs(ours[row.id] - row.measured), abs(theirs - row.measured)))
        print(f"{row.id:70} counted {row.measured:5.1f}  ours {ours[row.id]:5.1f}  origami {theirs:5.1f}")
    print(f"mean absolute error over {len(errors)} rows [points]: ours {mean(e[0] for e in errors):.2f}", end="")
    print(f", origami {mean(e[1] for e in errors):.2f}")


if __name__ == "__main__":
    main()
