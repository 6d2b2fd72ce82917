"""`read_table`: the tables that libraries keep, as rows: a launch, the order that it names, and others of its kind.

    aiter     CSV of tuned GEMMs; xcd_swizzle in the names of FlyDSL's kernels
    moe       fused MoE or block GEMM of vLLM and SGLang, JSON by tokens; GROUP_SIZE_M
    tensile   logic file of hipBLASLt (YAML as Tensile writes it); WorkGroupMapping and its XCC
    triton    autotuner's cache of one key, JSON; GROUP_M or GROUP_SIZE_M, and the times of all configurations

Orders are families of the language, with the signs of the library. Nothing in a file is run.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swizzle_sim.search.tables.gemm import Operand, TiledGemm
from xcd_model import gpu_names
from xcd_model.errors import SearchError, UnknownName
from xcd_model.files import read_text

MOST_BYTES = 64 << 20  # the longest seen has 4 MB
MOST_LOADS = 1_000_000  # tensor instructions of a row that is replayed: those of more take as long as all others
USUAL = 3  # orders that most rows of a file have, which its other rows try too
CHIPS = {("gfx942", 304): "mi300x", ("gfx942", 80): "mi308x", ("gfx942", 228): "mi300a", ("gfx950", 256): "mi355x"}
WHOLE = {"gfx942": 304, "gfx950": 256}  # CUs of a chip that a file names without them
BYTES = {"fp32": 4, "int32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
SWIZZLES = (0, 4, 8)  # that aiter's tuner tries
GROUPS = (1, 4, 8, 16, 32)  # that those of vLLM and SGLang try
ASSUMED = {"K": 4096, "TOPK": 8}  # of fused MoE, whose file does not say


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table."""

    line: int
    sizes: Mapping[str, int]  # as the file names them
    gpu: str  # that it was tuned for; empty where the model has none such
    letters: str  # what a copy has in common, the times where the file has some
    named: str = ""  # order that the row names, and the launch order of its library
    plain: str = ""
    others: tuple[str, ...] = ()
    launch: Mapping[str, Any] | None = None  # what is replayed: a `TiledGemm`, or a kernel of the suite
    why: str = ""  # it is not replayed
    workgroups: int = 0
    lds_bytes: int = 0
    tiles_m: float = 2.0  # of an expert; below 2 no group of rows matters
    measured: Mapping[str, float] = field(default_factory=dict)  # times by order, relative


@dataclass(frozen=True)
class Table:
    """A table: its rows, and how one of them is written with another order."""

    path: Path
    format: str
    lines: list[str]  # with their ends
    rows: tuple[Row, ...]
    # ``changed(row, order, mark)``: puts another order into ``lines``; what was changed, or empty where it cannot be
    changed: Callable[[Row, str, str], str]


def read_table(path: Path, given: Mapping[str, int], key: Sequence[str] = ("M", "N", "K")) -> Table:
    """Table of a file; ``given`` are sizes that fused MoE does not say, ``key`` names integers of a Triton cache."""
    for name in given:
        if name not in ASSUMED:
            raise UnknownName("size that a table may lack", name, ASSUMED)
    try:
        text = read_text(path, most=MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, 0, f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    lines = text.splitlines(keepends=True)
    if path.suffix == ".csv":
        return _aiter(path, lines)
    if path.suffix in (".yaml", ".yml"):
        return _tensile(path, lines)
    if path.suffix != ".json":
        raise _wrong(path, 0, "a table ends in .csv (aiter), .yaml (Tensile) or .json (fused MoE, Triton's cache)")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, getattr(error, "lineno", 0), f"is no JSON ({str(error)[:60]})") from None
    if isinstance(document, dict) and "configs_timings" in document:
        return _triton(path, lines, document, key)
    return _moe(path, lines, document, {**ASSUMED, **given})


DEVICE = re.compile("device_name=[^,]+?(?=,|[.]json)")


def siblings(path: Path, given: Mapping[str, int]) -> Iterator[Table]:
    """Tables of fused MoE beside one, of other devices."""
    alike = DEVICE.sub("device_name=*", path.name)
    for other in sorted(path.parent.glob(re.sub(r"[\[\]]", "?", alike))) if alike != path.name else ():
        with suppress(SearchError):
            if other.name != path.name and DEVICE.sub("device_name=*", other.name) == alike:
                yield read_table(other, given)


def _wrong(path: Path, line: int, why: str) -> SearchError:
    return SearchError(f"{path}{f':{line}' if line else ''}: {why}", code="table")


def _of_gemm(gemm: TiledGemm, named: str, plain: str, others: Sequence[str]) -> dict[str, Any]:
    """Fields of a row that is a GEMM, whose order is one of some."""
    rows, cols = gemm.tiles
    return {
        "named": named, "plain": plain, "others": tuple(dict.fromkeys((plain, *others))), "workgroups": rows * cols,
        "lds_bytes": gemm.lds_bytes, "launch": {"gemm": gemm.as_dict()},
        "why": f"over {MOST_LOADS:,} tensor instructions" if gemm.loads > MOST_LOADS else "",
    }  # fmt: skip


def _parameter(order: str) -> str:
    """Parameter of an order with one; 0 or 1 of the launch order."""
    return order.rstrip(")").rpartition("=")[2] if "=" in order else "1"


# aiter

FLYDSL = re.compile(r"(flydsl_bpreshuflle_(\d+)x(\d+)x(\d+)_[FI]8_[FI]8_\w?[FB]16_)((?:\d+x)+\d+)(_\w+)")


def _aiter(path: Path, lines: list[str]) -> Table:
    reader = csv.reader(lines, strict=True)
    rows, head = [], list[str]()
    try:
        for cells in filter(None, reader):
            if len(cells) > len(head) > 0:
                raise _wrong(path, reader.line_num, f"{len(cells)} cells below {len(head)} columns")
            if head:
                rows.append(_aiter_row(path, reader.line_num, dict(zip(head, cells, strict=False))))
                continue
            head = cells
            if missing := [one for one in ("cu_num", "M", "N", "K", "kernelName", "us") if one not in head]:
                raise _wrong(path, 1, f"no column {', '.join(missing)}: not a table of aiter's tuned GEMMs")
    except csv.Error as error:
        raise _wrong(path, reader.line_num, f"is no CSV ({error})") from None
    if not rows:
        raise _wrong(path, 0, "no rows; a table has a line of columns, then a line for each GEMM")

    def changed(row: Row, order: str, mark: str) -> str:
        if not lines[0].rstrip().endswith(",retune"):
            lines[:] = [line.rstrip("\r\n") + (",retune\n" if i == 0 else ",\n") for i, line in enumerate(lines)]
        text = lines[row.line - 1]
        was, numbers = FLYDSL.search(text), _numbers(text)
        assert was and numbers  # the row names an order
        numbers[_swizzle_at(numbers)] = _parameter(order)
        name = f"{was[1]}{'x'.join(numbers)}{was[6]}"
        lines[row.line - 1] = f'{text[:-1].replace(was[0], name)}"{mark}; was {was[0]}"\n'
        return name

    return Table(path, "aiter", lines, tuple(rows), changed)


def _aiter_row(path: Path, line: int, cells: Mapping[str, str]) -> Row:
    try:
        sizes = {name: int(cells[name]) for name in "MNK"}
        cus, split = int(cells["cu_num"]), int(cells.get("splitK") or 0)
        if min(sizes.values()) < 1:
            raise ValueError(f"{min(sizes.values())}")
    except (KeyError, ValueError) as error:
        raise _wrong(path, line, f"M, N, K, cu_num and splitK are integers, sizes at least 1, not {error}") from None
    arch = cells.get("gfx") or ("gfx950" if cus == WHOLE["gfx950"] else "gfx942")
    kept = {name: value for name, value in cells.items() if name not in ("gfx", "cu_num")}
    about: dict[str, Any] = {"line": line, "sizes": sizes, "gpu": CHIPS.get((arch, cus), "")}
    about["letters"] = json.dumps(kept)
    kernel = cells.get("kernelName", "")
    found, numbers = FLYDSL.fullmatch(kernel), _numbers(kernel)
    if not found or not numbers or split > 1:
        return Row(**about, why="K is split" if numbers else "its kernel names no order of workgroups")
    bm, bn, bk = (int(found[i]) for i in (2, 3, 4))
    buffers = int(numbers[3 if len(numbers) == 4 else 0]) if len(numbers) > 3 else 2
    gemm = TiledGemm(
        shape=(sizes["M"], sizes["N"]), k=sizes["K"], tile=(bm, bn), depth=bk, dtype="fp8", rows_first=True,
        operands=(Operand(along=0, item_bytes=1), Operand(along=1, item_bytes=1, together=16)),
        lds_bytes=buffers * bm * bk,  # B goes to registers
    )  # fmt: skip
    named, *others = (f"xcd_swizzle(group={one})" for one in (numbers[_swizzle_at(numbers)], *SWIZZLES))
    return Row(**about, **_of_gemm(gemm, named, others[0], others))


def _numbers(kernel: str) -> list[str]:
    """Numbers behind the types in a kernel's name; none of a version without xcd_swizzle."""
    found = FLYDSL.search(kernel)
    numbers = found[5].split("x") if found else []
    return [] if len(numbers) not in (3, 4, 5) or (len(numbers) == 4 and numbers[0] == "2") else numbers


def _swizzle_at(numbers: Sequence[str]) -> int:
    """Place of xcd_swizzle: behind async and waves, with stages last; in older names it is the last of five."""
    return 4 if len(numbers) == 5 else 2


# Fused MoE and block GEMM of vLLM and SGLang; Triton's autotuner


def _moe(path: Path, lines: list[str], document: Any, given: Mapping[str, int]) -> Table:
    named = dict(re.findall(r"(E|N|K|device_name|dtype)=([^,]+)", path.stem))
    if not isinstance(document, dict) or not {"N", "device_name"} <= named.keys() or not {"E", "K"} & named.keys():
        raise _wrong(path, 1, "is no table of fused MoE (E=..,N=..,device_name=..json) or block GEMM (N=..,K=..)")
    rows = []
    for place, config in document.items():
        if place == "triton_version":
            continue
        line = next((i for i, one in enumerate(lines, 1) if one.lstrip().startswith(f'"{place}"')), 1)
        short = _short(config)
        if not place.isdecimal() or not {"BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M"} <= short.keys():
            raise _wrong(path, line, f"{place!r}: a count of tokens with BLOCK_SIZE_M, _N, _K and GROUP_SIZE_M")
        about: dict[str, Any] = {"line": line, "letters": json.dumps(config, sort_keys=True)}
        about["gpu"] = _card(named["device_name"])
        rows.append(Row(**about, **_moe_row(int(place), short, named, given, path.stem.endswith("_down"))))
    if not rows:
        raise _wrong(path, 1, "no rows")

    def changed(row: Row, order: str, mark: str) -> str:
        at = next(i for i in range(row.line - 1, len(lines)) if '"GROUP_SIZE_M"' in lines[i])
        lines[at] = re.sub(r'("GROUP_SIZE_M"\s*:\s*)\d+', rf"\g<1>{_parameter(order)}", lines[at], count=1)
        return f"GROUP_SIZE_M {_parameter(order)}"

    return Table(path, "moe", lines, tuple(rows), changed)


def _moe_row(
    tokens: int, config: Mapping[str, int], named: Mapping[str, str], given: Mapping[str, int], is_down: bool
) -> dict[str, Any]:
    """Fields of a row: the first of two products, or the second; of a byte an item half of K stands in fp16."""
    dtype = {"fp8_w8a8": "fp8", "int8_w8a8": "int8", "": "fp16"}.get(named.get("dtype", "").removesuffix("_down"))
    columns, experts = int(named["N"]), int(named.get("E", 0))
    depth, topk = int(named.get("K", given["K"])), min(given["TOPK"], experts)
    if dtype is None or config.get("SPLIT_K", 1) > 1:
        why = "K is split" if dtype else f"{named['dtype']}: operands of two kinds, which the model has not"
        return {"sizes": {"M": tokens}, "why": why}
    wide, deep = (depth, columns) if is_down else (2 * columns if experts else columns, depth)
    blocks = max(min(experts, tokens * topk), -(-tokens * max(topk, 1) // config["BLOCK_M"]))  # with rows of an expert
    gemm = _triton_gemm((blocks * config["BLOCK_M"] if experts else tokens, wide), deep, config, dtype, k_fast=True)
    found = _of_gemm(gemm, *_grouped(config["GROUP_M"], GROUPS))
    if not experts:
        return {"sizes": {"M": tokens, "N": columns, "K": depth}, **found}
    halves = 3 - BYTES[dtype]
    problem = {"TOKENS": tokens, "EXPERTS": experts, "TOPK": topk, "N": wide, "K": deep // halves}
    problem |= {name: config[name] for name in ("BLOCK_M", "BLOCK_N")}
    problem |= {"BLOCK_K": max(16, config["BLOCK_K"] // halves), "WARPS": config.get("num_warps", 4), "K_FAST": True}
    of_expert = tokens * topk / experts / config["BLOCK_M"]
    launch = {"kernel": "moe_gemm", "problem": problem}
    return {"sizes": {"M": tokens}, **found, "tiles_m": of_expert, "launch": launch}


def _short(config: Any) -> dict[str, int]:
    """Positive integers of a configuration, BLOCK_SIZE_M as BLOCK_M."""
    values = config.items() if isinstance(config, dict) else ()
    return {str(name).replace("_SIZE", ""): value for name, value in values if type(value) is int and value > 0}


def _card(device: str) -> str:
    """GPU of a device's name; none for another board of the same chip."""
    words = re.split(r"[^a-z0-9]+", device.lower())
    return "" if {"pcie", "nvl"} & set(words) else next((name for name in gpu_names() if name in words), "")


def _grouped(group: int, others: Sequence[int]) -> tuple[str, str, list[str]]:
    """Order of a group, the launch order, and other groups."""
    named, *rest = ("row" if one < 2 else f"group_m(size={one})" for one in (group, *others))
    return named, "row", rest


def _triton_gemm(
    shape: tuple[int, int], depth: int, config: Mapping[str, int], dtype: str, *, k_fast: bool
) -> TiledGemm:
    """GEMM of a Triton kernel, B with K contiguous or N; LDS is the least that buffers of both operands take."""
    bm, bn, bk = (config[f"BLOCK_{axis}"] for axis in "MNK")
    item, ahead = BYTES[dtype], max(1, config.get("num_stages", 2) - 1)
    return TiledGemm(
        shape=shape, k=depth, tile=(bm, bn), depth=bk, dtype=dtype, waves=config.get("num_warps", 4),
        operands=(Operand(along=0, item_bytes=item), Operand(along=1, item_bytes=item, k_fast=k_fast)),
        lds_bytes=(bm + bn) * bk * item * ahead, in_flight=2 * ahead,
    )  # fmt: skip


TORCH_TYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "int8": "int8", "float8": "fp8"}


def _triton(path: Path, lines: list[str], document: Mapping[str, Any], key: Sequence[str]) -> Table:
    try:
        timed = [(_short({**one["kwargs"], **one}), float(times[0])) for one, times in document["configs_timings"]]
        best, fastest = min(timed, key=lambda one: one[1])
        sizes = dict(zip(key, (one for one in document["key"] if type(one) is int), strict=True))
        types = [short for one in document["key"] for long, short in TORCH_TYPES.items() if f"torch.{long}" in str(one)]
        shape, group = (sizes["M"], sizes["N"]), best["GROUP_M"]
        gemm = _triton_gemm(shape, sizes["K"], best, types[0] if types else "fp16", k_fast=False)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        why = f"is no cache of a GEMM with GROUP_M and the integers {','.join(key)} in its key ({error}); say --key"
        raise _wrong(path, 1, f"{why}, or `optimize KERNEL --tune configs`") from None
    alike = sorted((time, one["GROUP_M"]) for one, time in timed if {**one, "GROUP_M": group} == best)
    measured = {_grouped(one, ())[0]: time / fastest for time, one in reversed(alike)}
    found = _of_gemm(gemm, *_grouped(group, sorted({one["GROUP_M"] for one, _ in timed if "GROUP_M" in one})))
    found["workgroups"] *= (split := best.get("SPLIT_K", 1))
    found["why"] = "K is split" if split > 1 else found["why"]
    row = Row(line=1, sizes=sizes, gpu="", letters=json.dumps(best, sort_keys=True), measured=measured, **found)
    return Table(path, "triton", lines, (row,), lambda row, order, mark: "")


# Tensile

TENSILE_TYPES = {0: "fp32", 4: "fp16", 6: "int32", 7: "bf16", 8: "int8", **dict.fromkeys(range(11, 17), "fp8")}
# integers of a solution, at least so large, and those that a file may leave out
NEEDED = {"SolutionIndex": 0, "WorkGroupMapping": -(10**9), "MacroTile0": 1, "MacroTile1": 1, "DepthU": 1}
STAGGERED = {"StaggerU": 0, "StaggerUMapping": 0, "StaggerUStride": -1, "_staggerStrideShift": 0}
OPTIONAL = STAGGERED | {"LdsNumBytes": 0, "NumThreads": 0, "PrefetchGlobalRead": 0, "GlobalSplitU": 0}
LOGIC = re.compile(r"\[(\d+(?:, *\d+){3,})\]\s*")
SOLUTION = re.compile(r"\[(\d+), *[-+.\deEnainf]+\]\s*")
SPLITS = {"K is split": ("GlobalSplitU", (0, 1)), "Stream-K": ("StreamK", (0,))}


def _tensile(path: Path, lines: list[str]) -> Table:
    """A logic file by the indentation that Tensile writes: a list of which the fifth is the problem, then solutions."""
    starts = [i for i, line in enumerate(lines) if line.startswith("- ")]
    if len(starts) < 9 or not lines[starts[0]].startswith("- {MinimumRequiredVersion"):
        raise _wrong(path, 1, "is YAML, but no logic file of Tensile (which begins with MinimumRequiredVersion)")
    chip = re.search(r"gfx\w+", "".join(lines[starts[2] : starts[3]]))
    cus = re.search(r"CUCount: (\d+)", "".join(lines[starts[2] : starts[3]]))
    arch = chip[0] if chip else ""
    gpu = CHIPS.get((arch, int(cus[1]) if cus else WHOLE.get(arch, 0)), "")
    problem, solutions = _values(lines[starts[4] : starts[5]], 2), _solutions(path, lines, starts[5], starts[6])
    orders = {index: _wgm(one) for index, one in solutions.items()}
    found = list(_logic(path, lines, starts[7], starts[8], solutions))
    usual = [order for order, _ in Counter(orders[index] for _, _, index in found).most_common(USUAL)]
    rows = []
    for line, sizes, index in found:
        one, plain = solutions[index], "wgm(size=1)"
        own = {**one, "WorkGroupMappingXCC": 8, "WorkGroupMappingXCCGroup": 0}
        others = (*usual, _wgm(own), _wgm({**own, "WorkGroupMappingXCC": 1}))
        letters = str({name: value for name, value in one.items() if name != "SolutionIndex"})
        about: dict[str, Any] = {"line": line, "sizes": sizes, "gpu": gpu, "letters": letters}
        rows.append(Row(**{**about, **_tensile_gemm(one, problem, sizes, orders[index], plain, others)}))

    def changed(row: Row, order: str, mark: str) -> str:
        text = lines[row.line]  # below the sizes
        was = int(SOLUTION.search(text)[1])  # type: ignore[index]
        fits = [i for i in solutions if orders[i] == order and _kernel(solutions[i]) == _kernel(solutions[was])]
        now = text.rstrip().replace(f"[{was},", f"[{fits[0]},") if fits else text.rstrip()
        lines[row.line] = f"{now}  # retune: {mark}; {f'was {was}' if fits else 'no solution of the file has it'}\n"
        return f"solution {fits[0]}" if fits else ""

    return Table(path, "tensile", lines, tuple(rows), changed)


def _values(lines: Sequence[str], indent: int) -> dict[str, Any]:
    """Scalars of a mapping at an indentation, integers and truth as integers."""
    found = (re.fullmatch(rf"[- ]{{{indent}}}(\w+): (.*\S)\s*", line) for line in lines)
    known = {"true": 1, "false": 0}
    return {
        one[1]: int(one[2]) if re.fullmatch(r"-?\d{1,9}", one[2]) else known.get(one[2], one[2]) for one in found if one
    }


def _solutions(path: Path, lines: Sequence[str], first: int, end: int) -> dict[int, dict[str, Any]]:
    begins = [i for i in range(first, end) if re.match(r"(- | {2})- \w", lines[i])]
    found = {}
    for begin, stop in zip(begins, [*begins[1:], end], strict=True):
        one = _values(lines[begin:stop], 4)
        given = {**{name: one.get(name) for name in NEEDED}, **{k: x for k, x in one.items() if k in OPTIONAL}}
        least = NEEDED | OPTIONAL
        if wrong := [name for name, x in given.items() if type(x) is not int or x < least[name]]:
            raise _wrong(path, begin + 1, f"a solution without {', '.join(wrong)}, or not as Tensile writes it")
        found[one["SolutionIndex"]] = one
    return found


def _logic(
    path: Path, lines: Sequence[str], first: int, end: int, known: Mapping[int, Any]
) -> Iterator[tuple[int, dict[str, int], int]]:
    """Line, sizes and solution of each row."""
    rows = [i for i in range(first, end) if re.match(r"(- | {2})- - ", lines[i])]
    for i in rows:
        sizes, solution = LOGIC.search(lines[i]), SOLUTION.search(lines[i + 1])
        numbers = list(map(int, sizes[1].split(",")))[:4] if sizes else [0]
        if not solution or int(solution[1]) not in known or min(numbers) < 1:
            raise _wrong(
                path, i + 1, "a row is a list of sizes from 1, then one of a solution of the file and its speed"
            )
        yield i + 1, dict(zip("MNBK", numbers, strict=True)), int(solution[1])
    if not rows:
        raise _wrong(path, first + 1, "no rows")


def _kernel(one: Mapping[str, Any]) -> str:
    """Name of a solution without its order: solutions of one kernel."""
    return re.sub(r"_WGM[A-Za-z]*-?n?\d+", "", str(one.get("SolutionNameMin", one["SolutionIndex"])))


def _wgm(one: Mapping[str, Any]) -> str:
    """Order of a solution; 0 and 1 are the launch order, and an XCC of 1 has no group."""
    size, xcc = one["WorkGroupMapping"] or 1, one.get("WorkGroupMappingXCC", 1)
    gathered = f", xcc={xcc}, group={one.get('WorkGroupMappingXCCGroup', -1)}" if xcc > 1 else ""
    return f"wgm(size={size}{gathered})"


def _tensile_gemm(
    one: Mapping[str, Any], problem: Mapping[str, Any], sizes: Mapping[str, int], named: str, plain: str, others: Any
) -> dict[str, Any]:
    """Fields of a row: C has M contiguous, so that its rows here are N, and the columns M."""
    kinds = (problem.get(name, problem.get("DataType")) for name in ("DataTypeA", "DataTypeB", "DestDataType"))
    a, b, out = (TENSILE_TYPES.get(kind, "") for kind in kinds)
    if not (a and b and out):
        return {"why": "its types are none that the model has"}
    wide, shift = a if BYTES[a] > BYTES[b] else b, one.get("_staggerStrideShift")
    if shift is None:
        shift = max(1, one.get("StaggerUStride", 256) // (one["DepthU"] * BYTES[wide])).bit_length() - 1
    gemm = TiledGemm(
        shape=(sizes["N"], sizes["M"]), k=sizes["K"], tile=(one["MacroTile1"], one["MacroTile0"]), depth=one["DepthU"],
        operands=(
            Operand(along=1, item_bytes=BYTES[a], k_fast=bool(problem.get("TransposeA"))),
            Operand(along=0, item_bytes=BYTES[b], k_fast=not problem.get("TransposeB")),
        ),
        dtype=TENSILE_TYPES.get(problem.get("DataType", -1), wide), out_bytes=BYTES[out],
        stagger=one.get("StaggerU", 0), stagger_shift=shift, stagger_mapping=one.get("StaggerUMapping", 0),
        lds_bytes=one.get("LdsNumBytes") or one.get("LdsNumElements", 0) * BYTES[wide],  # the latter in older files
        waves=max(1, one.get("NumThreads", 256) // 64), in_flight=2 * max(1, one.get("PrefetchGlobalRead", 1)),
    )  # fmt: skip
    found = _of_gemm(gemm, named, plain, others)
    found["workgroups"] *= sizes["B"] * max(1, one.get("GlobalSplitU", 1))
    whys = ["a batch"] * (sizes["B"] > 1) + [w for w, (name, whole) in SPLITS.items() if one.get(name, 0) not in whole]
    return {**found, "why": (whys or [found["why"]])[0]}
