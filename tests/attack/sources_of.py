"""`Source`: one random source of the attack."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A source, the function in it that is read, and values of its names."""

    text: str
    function: str
    kind: str  # "c": a function of an id; "kernels": stores tiles
    suffix: str
    sizes: dict[str, int | str] = field(default_factory=dict)
    is_persistent: bool = False
