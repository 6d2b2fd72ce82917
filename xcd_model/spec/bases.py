"""Descriptions upon descriptions: a file with ``base = "mi300x"`` states only what differs from that description.

    base = "mi300x"                 base = "h200"
    xcds = 4                        other_chip = true
    [l2]                            without = ["l2_partitions", "hbm.turnaround_ns"]
    size_bytes = 8_388_608          arch = "sm_121a"

On the left the base with some numbers changed, each of which may be written alone. On the right another chip: what was
measured on the base, or fitted to it, is only assumed of this one; so is what is documented of another architecture.
Each such fact says where it was taken from. ``without`` leaves out tables and facts that the other chip lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xcd_model.errors import SpecError

TAKEN = "taken from the {title}, where it is {status}: {source}"
OWN_KEYS = ("base", "other_chip", "without")


def laid_on_base(data: dict[str, Any], under: Mapping[str, Any], file: str, modes: Sequence[str]) -> dict[str, Any]:
    """Parsed TOML of a description laid upon that of its base."""
    base, other, without = (data.get(key) for key in OWN_KEYS)
    own = {key: item for key, item in data.items() if key not in OWN_KEYS}
    if other is not None and not isinstance(other, bool):
        raise SpecError(f"other_chip = {other!r} must be true or false")
    lower = _left_out(under, without or [], str(base))
    if "xcds" in own:
        lower = {key: item for key, item in lower.items() if key not in modes}
    title = str(under.get("title", base))
    if other:
        lower = _of_another(lower, title, same=own.get("arch", under.get("arch")) == under.get("arch"))
    names = {"name": Path(file).stem, "title": f"{title}, changed by {file}"}
    return _laid_upon(lower, names | own, f"{file}, in place of the {base}'s")


def _laid_upon(under: Mapping[str, Any], over: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Tables of ``under`` with what ``over`` says in its place; a number alone is a fact, assumed for ``source``."""
    laid = dict(under)
    for key, item in over.items():
        was = under.get(key)
        if isinstance(was, dict) and not isinstance(item, dict) and "value" in was:
            span = {"low": item, "high": item} if "low" in was else {}
            laid[key] = {"value": item, **span, "status": "assumed", "source": f"{source} {was['value']}"}
        elif isinstance(was, dict) and isinstance(item, dict) and "value" not in was:
            laid[key] = _laid_upon(was, item, source)
        else:
            laid[key] = item
    return laid


def _of_another(table: Mapping[str, Any], title: str, *, same: bool) -> dict[str, Any]:
    """The facts of a base as those of another chip; ``same`` is whether its architecture is the same."""
    unsure = ("measured", "fitted") if same else ("measured", "fitted", "documented")
    out: dict[str, Any] = {}
    for key, item in table.items():
        if isinstance(item, dict) and "value" not in item:
            out[key] = _of_another(item, title, same=same)
        elif isinstance(item, dict) and item.get("status") in unsure:
            source = TAKEN.format(title=title, status=item["status"], source=item.get("source"))
            kept = {one: value for one, value in item.items() if one != "fitted_to"}
            out[key] = kept | {"status": "assumed", "source": source}
        else:
            out[key] = item
    return out


def _left_out(under: Mapping[str, Any], without: object, base: str) -> dict[str, Any]:
    """``under`` less the tables and facts that ``without`` names by dotted key."""
    if not isinstance(without, list) or not all(isinstance(key, str) for key in without):
        raise SpecError(f"without = {without!r} must be a list of keys such as 'mall' or 'hbm.turnaround_ns'")
    out = {key: dict(item) if isinstance(item, dict) else item for key, item in under.items()}
    for key in without:
        table, _, name = key.rpartition(".")
        place = out.get(table, {}) if table else out
        if not isinstance(place, dict) or name not in place:
            raise SpecError(f"without = {without!r}: the {base} has no {key}")
        del place[name]
    return out
