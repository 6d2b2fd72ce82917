"""What the page says of figure 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.paper.wording import pct, points, table


def words(data: Mapping[str, Any]) -> str:
    """Section of the page."""
    rows = []
    for row in data["rows"]:
        for one in row["maps"]:
            rate = pct(one.get("l2_hit_rate"))
            speedup = f"{one['speedup']:.3f}" if "speedup" in one else "-"
            rows.append([row["title"], one["label"], f"{one['panels_per_xcd']:.1f}", rate, speedup])
    first = data["rows"][0]["maps"]
    heads = ("GEMM", "order", "panels an XCD", "L2 hit rate [%]", "predicted speedup")
    found = [_verdict(row) for row in data["rows"][1:]]
    return "\n\n".join(
        [
            "Panels an XCD: row panels of A and column panels of B that its tiles need, on average. In the paper's "
            f"example a contiguous range of tiles an XCD takes them from {first[0]['panels_per_xcd']:.1f} to "
            f"{first[1]['panels_per_xcd']:.1f}. {' '.join(found)}",
            table(heads, rows, left=2),
            "The paper's code is a picture. Its text speaks of a ceiling division for the workgroups of an XCD; the "
            f"plain reading, `{data['by_ceiling']}`, is a bijection where `{data['by_ceiling_domain']}`. The maps use "
            f"`contiguous`, the same on such grids and a bijection {_where(data['contiguous_domain'])}. Maps and hit "
            "rates are simulated; for what was counted on hardware see figure 2.",
        ]
    )


def _where(domain: str) -> str:
    return domain if domain == "everywhere" else f"where `{domain}`"


def _verdict(row: Mapping[str, Any]) -> str:
    launched, contiguous, best = row["maps"]
    gain = 100 * (contiguous["l2_hit_rate"] - launched["l2_hit_rate"])
    what = "takes" if abs(gain) >= 0.05 else "leaves"
    more = 100 * (best["l2_hit_rate"] - max(launched["l2_hit_rate"], contiguous["l2_hit_rate"]))
    end = f"the best found is {more:.1f} points better" if more >= 0.05 else "nothing found beats the better of both"
    return (
        f"On {row['title']}, `contiguous` {what} the simulated hit rate "
        + (f"from {pct(launched['l2_hit_rate'])} to " if abs(gain) >= 0.05 else "at ")
        + f"{pct(contiguous['l2_hit_rate'])} % ({points(gain)} points); {end}."
    )
