"""Colours for XCDs, families and the two orders of a comparison; colour-blind readers can distinguish them.

Source: Okabe and Ito, Color Universal Design, 2008.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

INK = "#222222"
OTHER = "#8a8a8a"
BEFORE = "#6b7280"
AFTER = "#0072b2"
BOUND = "#b3460b"

# One for each XCD of today's parts; grey takes the place of black, which a dark page would swallow.
XCDS = ("#7d7d7d", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")

PALER = 0.45  # share of white that XCDs 8 to 15 get, and of black XCDs 16 to 23

_FAMILIES = ("#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#a89b00")
_NAME = re.compile(r"[A-Za-z0-9_+-]{1,40}")


def family_of(name: str) -> str:
    """Family of an attempt: its name without parameters; ``other`` for a name that is no specification.

    What a proposer calls its candidate is free text, and free text has no place in a legend.
    """
    bare = re.sub(r"\([^()]*\)", "", name).replace(" ", "")
    return bare if _NAME.fullmatch(bare) else "other"


def family_colours(families: Iterable[str]) -> dict[str, str]:
    """Colours of the families met most often, by count and then by name; the rest share ``other``."""
    counts = Counter(family for family in families if family != "other")
    ordered = sorted(counts, key=lambda family: (-counts[family], family))
    return dict(zip(ordered, _FAMILIES, strict=False))


def on_colour(colour: str) -> str:
    """Black or white, whichever reads better on a colour ``#rrggbb``."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 128 else "white"


def xcd_colour(xcd: int) -> str:
    """Colour of an XCD as ``#rrggbb``: the eight of `XCDS`, then paler ones, then darker ones."""
    colour, lap = XCDS[xcd % len(XCDS)], xcd // len(XCDS) % 3
    if lap == 0:
        return colour
    to = 255 if lap == 1 else 0
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (to - part) * PALER):02x}" for part in parts)
