"""GPU descriptions from TOML: the shipped ones by name and mode, or a file at a path.

A shipped description is one file in ``xcd_model/spec/gpus``. Everything in it but five plain strings is a *fact*, an
inline table ``{ value, status, source }``; the facts stay with the ``Gpu`` under their dotted keys, so that any
number in a result can be traced to a document, a measurement, the rows it was fitted to, or an assumption. The tables
``partitions`` and ``memory_modes`` give the other modes of the chip, of which `xcd_model.spec.modes` derives a device.

A file with a ``base`` states only what differs from that description:

    base = "mi300x"                 base = "h200"
    xcds = 4                        other_chip = true
    [l2]                            without = ["l2_partitions", "hbm.turnaround_ns"]
    size_bytes = 8_388_608          arch = "sm_121a"

On the left the base with some numbers changed, each of which may be written alone. On the right another chip: what was
measured on the base, or fitted to it, is only assumed of this one; so is what is documented of another architecture.
Each such fact says where it was taken from. ``without`` leaves out tables and facts that the other chip lacks.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcd_model.errors import SpecError, UnknownName
from xcd_model.files import read_text
from xcd_model.spec.facts import RANGE_FORM, Fact, check_keys, check_table, take_facts, take_values
from xcd_model.spec.gpu import MEMORY_MODES, PARTITIONS, SECTIONS, EnergyRates, Gpu
from xcd_model.spec.modes import TABLES, Modes, device_of, read_modes

if TYPE_CHECKING:
    from importlib.abc import Traversable

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_STRINGS = ("name", "title", "arch", "partition", "memory_mode")
_TABLES = (*SECTIONS, "peak_tflops", "energy")
_DEEPEST = 8  # files upon files
TAKEN = "taken from the {title}, where it is {status}: {source}"
OWN_KEYS = ("base", "other_chip", "without")
_FORMS = {key: f'{key} = "..."' for key in _STRINGS} | {key: f"a table [{key}]" for key in _TABLES}


def gpu_names() -> list[str]:
    """Names of the shipped descriptions, sorted."""
    return sorted(entry.name[: -len(".toml")] for entry in _shipped().iterdir() if entry.name.endswith(".toml"))


def gpu_modes(name: str) -> tuple[tuple[str, str], ...]:
    """Legal pairs of partition and memory mode of a shipped description, or of the file at a path.

    Parameters
    ----------
    name : str
        As for `gpu`.

    Raises
    ------
    UnknownName, SpecError
        As `gpu`.
    """
    chip, modes = _read(_find(_split(name)[0]))
    return modes.legal or ((chip.partition, chip.memory_mode),)


def gpu(name: str, *, partition: str | None = None, memory_mode: str | None = None) -> Gpu:
    """Load a shipped description by name, in any case, or the file at a path that ends in ``.toml``.

    Parameters
    ----------
    name : str
        One of `gpu_names`, optionally with the mode: ``mi300x``, ``mi300x-cpx``, ``mi300x-cpx-nps4``.
    partition, memory_mode : str, optional
        In any case; by default those of the name, or else of the file (SPX and NPS1).

    Returns
    -------
    device : Gpu
        One device of that mode; `xcd_model.spec.modes` states what it shares with the others.

    Raises
    ------
    UnknownName
        If there is no such name; the message lists the known ones.
    SpecError
        If the description breaks a rule, or the chip lacks the mode; the message lists its modes.
    """
    base, given = _split(name)
    for key, value in (("partition", partition), ("memory_mode", memory_mode)):
        if value is not None and given.setdefault(key, value.upper()) != value.upper():
            raise SpecError(f"{key} = {value!r} contradicts the name {name!r}; leave one of them out")
    chip, modes = _read(_find(base))
    mode = {"partition": chip.partition, "memory_mode": chip.memory_mode} | given
    return device_of(chip, modes, **mode)


def load_gpu(source: str | Path | Traversable) -> Gpu:
    """Read one TOML description.

    Parameters
    ----------
    source : str, Path or Traversable

    Raises
    ------
    SpecError
        Names the file, the key, the value and the rule that it breaks.
    """
    return _read(source)[0]


def load_modes(source: str | Path | Traversable) -> Modes:
    """Read the modes of one TOML description; raises as `load_gpu`."""
    return _read(source)[1]


def _read(source: str | Path | Traversable) -> tuple[Gpu, Modes]:
    path = Path(source) if isinstance(source, str) else source
    try:
        data = _data_of(path)
        chip = _build({key: value for key, value in data.items() if key not in TABLES})
        return chip, read_modes(data, chip.xcds)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: is not UTF-8 text, so not TOML: {error.reason}") from error
    except SpecError as error:
        raise SpecError(f"{path.name}: {error}") from error
    except RecursionError as error:
        raise SpecError(f"{path.name}: is not read: brackets nest too deep") from error
    except ValueError as error:  # tomllib's own, and int's of a number with thousands of digits
        raise SpecError(f"{path.name}: is not TOML: {error}") from error


def _data_of(path: Path | Traversable, depth: int = 0) -> dict[str, Any]:
    """Parsed TOML of a description, laid upon that of its base."""
    data = tomllib.loads(read_text(path) if isinstance(path, Path) else path.read_text(encoding="utf-8"))
    if "base" not in data:
        return data
    base = data["base"]
    if not isinstance(base, str):
        raise SpecError(f"base = {base!r} must be the name of a GPU, or a file that ends in .toml")
    if depth == _DEEPEST:
        raise SpecError(f"base = {base!r}: bases lie more than {_DEEPEST} deep, perhaps in a circle")
    below = _find(base)
    below = Path(str(path)).parent / below if isinstance(below, str) else below
    try:
        under = _data_of(below, depth + 1)
    except OSError as error:
        raise SpecError(f"base = {base!r} cannot be read: {error.strerror}") from error
    return laid_on_base(data, under, path.name, TABLES)


def base_of(name: str) -> str:
    """Name of the description that a shipped one lies upon, or empty."""
    return str(tomllib.loads(shipped(name).read_text(encoding="utf-8")).get("base", ""))


def shipped(name: str) -> Traversable:
    """Path of a shipped description."""
    return _shipped() / f"{name.lower()}.toml"


def _shipped() -> Traversable:
    return resources.files("xcd_model") / "spec" / "gpus"


def _find(name: str) -> str | Traversable:
    """Path of the description that ``name`` means."""
    if name.endswith(".toml"):
        return name
    if name.lower() not in gpu_names():
        raise UnknownName("GPU", name, gpu_names())
    return shipped(name)


def _split(name: str) -> tuple[str, dict[str, str]]:
    """Split a name into chip and mode: ``mi300x-cpx-nps4`` is the mi300x in CPX and NPS4."""
    base, *words = name.split("-")
    if name.endswith(".toml") or base.lower() not in gpu_names():
        return name, {}
    given = {"partition" if word.upper() in PARTITIONS else "memory_mode": word.upper() for word in words}
    if len(given) < len(words) or not set(given.values()) <= {*PARTITIONS, *MEMORY_MODES}:
        legal = ["-".join([base, *pair]).lower() for pair in gpu_modes(base)]
        raise UnknownName("GPU", name, [*gpu_names(), *legal])
    return base, given


def _build(data: Mapping[str, Any]) -> Gpu:
    """Turn parsed TOML into a Gpu, collecting the facts on the way."""
    facts: dict[str, Fact] = {}
    plain = {key: data[key] for key in _STRINGS if key in data}
    tables = {key: data[key] for key in _TABLES if key in data}
    scalars = {key: value for key, value in data.items() if key not in plain and key not in tables}
    check_keys("", data, Gpu, _FORMS)
    values = plain | take_values("", scalars, facts)
    for key, table in tables.items():
        check_table(key, table)
        values[key] = _energy(table, facts) if key == "energy" else _section(key, table, facts)
    return Gpu(**values, facts=facts)


def _section(key: str, table: Mapping[str, Any], facts: dict[str, Fact]) -> Any:
    part = SECTIONS.get(key, dict)
    if key in SECTIONS:
        check_keys(f"{key}.", table, part)
    inner = take_values(f"{key}.", table, facts)
    try:
        return part(**inner)
    except SpecError as error:
        raise SpecError(f"{key}.{error}") from error


def _energy(table: Mapping[str, Any], facts: dict[str, Fact]) -> EnergyRates:
    check_keys("energy.", table, EnergyRates, {"flop_pj": "a table [energy.flop_pj]"})
    check_table("energy.flop_pj", table["flop_pj"])
    single = {key: item for key, item in table.items() if key != "flop_pj"}
    rates = take_facts("energy.", single, facts, RANGE_FORM)
    flops = take_facts("energy.flop_pj.", table["flop_pj"], facts, RANGE_FORM)
    try:
        pj = {key: fact.range() for key, fact in flops.items()}
        return EnergyRates(flop_pj=pj, **{key: fact.range() for key, fact in rates.items()})
    except SpecError as error:
        raise SpecError(f"energy.{error}") from error


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
