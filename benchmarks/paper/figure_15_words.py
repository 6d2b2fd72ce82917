"""What the page says of figure 15: above all the sizes where a swizzle hurts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper.drawing import one_line
from benchmarks.paper.figure_15 import LEAST
from benchmarks.paper.wording import counted, listed, pct, table


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    heads = ("kernel", "order", "hurts at", "worst loss [points]", "gains at", "best gain [points]")
    rows = [line for row in data["kernels"] for line in _lines(row)]
    return "\n\n".join(
        [
            f"Simulated, {data['kernels'][0]['replay']} replay; every order drawn is a bijection at every size. A "
            f"loss or gain is one of at least {LEAST} points of L2 hit rate against the order as launched at the same "
            "size.",
            table(heads, rows, left=2),
            "**Sizes where a swizzle hurts**\n\n" + "\n".join(_hurts(row) for row in data["kernels"]),
            "**What the paper swizzled with here**\n\n" + "\n".join(_paper(row) for row in data["kernels"]),
        ]
    )


def _lines(row: Mapping[str, Any]) -> list[list[str]]:
    lines = []
    for spec, rates in row["swizzles"].items():
        pairs = zip(row["launched"], rates, strict=True)
        gains = [100 * (rate - launched) for launched, rate in pairs if launched is not None and rate is not None]
        lost, won = [g for g in gains if g <= -LEAST], [g for g in gains if g >= LEAST]
        of = counted(len(gains), "size")
        lines.append(
            [
                one_line(row["kernel"]),
                f"`{spec}`",
                f"{len(lost)} of {of}",
                f"{min(lost):.1f}" if lost else "-",
                f"{len(won)} of {of}",
                f"{max(won):+.1f}" if won else "-",
            ]
        )
    return lines


def _hurts(row: Mapping[str, Any]) -> str:
    by_swizzle: dict[str, list[str]] = {}
    for size in row["sizes"]:
        for one in row["hurts"]:
            if one["size"] == size:
                by_swizzle.setdefault(one["swizzle"], []).append(f"{size} (-{one['points']:.1f})")
    name = one_line(row["kernel"])
    if not by_swizzle:
        return f"- {name}: none of these sizes."
    return "\n".join(f"- {name}, `{spec}`: {', '.join(sizes)}" for spec, sizes in by_swizzle.items())


def _paper(row: Mapping[str, Any]) -> str:
    printed, name = row["printed"], one_line(row["kernel"])
    if not printed["words"]:
        return f"- {name}: not in the paper's figure; its run script has it, by a {printed['pattern']}: a bijection."
    held = printed["bijection_at"]
    formula = ""
    if held is not None:
        formula = f" Its printed formula is a bijection at {len(held)} of these {len(row['sizes'])} sizes"
        formula += f" ({listed(held)})." if held else "."
    ends = [pct(row["launched"][0]), pct(row["launched"][-1])]
    return (
        f"- {name}: “{printed['words']}”. The public run script swizzles by the {printed['pattern']}, which computes "
        f"{printed['computes']}: no bijection.{formula} As launched, simulated from the smallest to the largest size: "
        f"{ends[0]} to {ends[1]} %."
    )
