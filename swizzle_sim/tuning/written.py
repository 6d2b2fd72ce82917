"""`write_tuned`: the chosen instance written into a copy of the kernel's file, and compared with the original.

The order is put in as `swizzle_sim.rewrite` does. Constants become the defaults of their parameters, and the three best
configurations a list for an autotuner: in place of the list that the kernel has, else beside the kernel, as
``KERNEL_CONFIGS``. Comments and layout stay.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.capture.workload import workload
from swizzle_sim.rewrite import check_rewritten
from swizzle_sim.rewrite.source import EditableSource
from swizzle_sim.search.candidates import LAUNCH_ORDER
from swizzle_sim.triton_source.source_file import defaults_of, parameters_of
from swizzle_sim.tuning.answer import Answer
from swizzle_sim.tuning.compare import Compared, compare
from swizzle_sim.tuning.joint import Point
from swizzle_sim.tuning.levers import Levers, ordered
from swizzle_sim.tuning.template import Values
from swizzle_sim.workload.launch import Launch
from xcd_model.errors import SwizzleSimError


@dataclass(frozen=True)
class Written:
    """The file of an instance and what was checked of it, or why there is none."""

    path: Path | None
    why_not: str = ""
    compared: Compared | None = None
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """For people."""
        if self.path is None:
            return [f"no kernel is written: {self.why_not}"]
        checked = self.compared.words if self.compared else "not compared"
        return [f"written: {self.path} ({checked})", *self.notes]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        about = {"file": self.path and str(self.path), "why_not": self.why_not or None, "notes": list(self.notes)}
        return {**about, "compared": self.compared and asdict(self.compared)}


def write_tuned(answer: Answer, folder: Path) -> Written:
    """Write the instance of an answer; a kernel that cannot be written does not undo the search."""
    template = answer.tuned.levers.template
    base = template.base
    if base.launch is None:
        return Written(None, f"{base.name} has no Triton source")
    if not answer.lever:
        return Written(None, "no lever gains")
    why_not: list[str] = []
    for point in answer.to_write:
        try:
            text, notes = instance_text(answer.tuned.levers, point.values, point.order, answer.three)
            if point.order != LAUNCH_ORDER.name:
                work = template.workload(point.values)
                checked = check_rewritten(ordered(answer.tuned.levers, work, point.order), work, template.gpu.arch)
                notes.append(f"order {point.order}: {checked.words}")
            compared = compare(workload(base.file or base.name, base.problem), template.workload(point.values), text)
            path = folder / f"{base.launch.path.stem}_tuned.py"
            write_whole(path, text)
        except SwizzleSimError as error:
            why_not.append(f"{answer.change(point)}: {error}")
        else:
            notes += [f"not written: {why}" for why in why_not]
            return Written(path, "", compared, (f"it has {answer.change(point)}", *notes))
    return Written(None, "; ".join(why_not))


def instance_text(levers: Levers, values: Values, order: str, best: Sequence[Point]) -> tuple[bytes, list[str]]:
    """Text of a kernel's file with an instance in it and a list of the best, and what the launch has to do."""
    template = levers.template
    work = template.workload(values)
    launch, text = work.launch, work.launch.path.read_bytes()
    notes: list[str] = []
    if order != LAUNCH_ORDER.name:
        text = ordered(levers, work, order).text
    if template.ranges and best:
        three = [template.launch(one.values) for one in best]
        text, notes = with_configurations(launch.path, text, launch.function, template.constants, three)
    return text, notes


def with_configurations(
    path: Path, text: bytes, function: str, constants: Sequence[str], launches: Sequence[Launch]
) -> tuple[bytes, list[str]]:
    """Text whose constants are by default those of the first launch, with a list of all launches; what to do for it."""
    source = EditableSource(path, text, function)
    kernel, chosen = source.function, launches[0]
    called = [one for one in kernel.decorator_list if isinstance(one, ast.Call)]
    tuner = next((one for one in called if ast.unparse(one.func).rpartition(".")[2] == "autotune"), None)
    if tuner is not None:
        given = next((one.value for one in tuner.keywords if one.arg == "configs"), None) or tuner.args[0]
        made = [one for one in ast.walk(given) if isinstance(one, ast.Call)]
        name = next((w for one in made if (w := ast.unparse(one.func)).endswith("Config")), "triton.Config")
        source.replace(given, "[" + ", ".join(_config(name, constants, one) for one in launches) + "]")
        return source.apply(), [f"the autotuner's list is that of the {len(launches)} best configurations"]
    notes = _give_defaults(source, kernel, {name: chosen.constexprs[name] for name in constants})
    listed = source.fresh(f"{function.upper()}_CONFIGS")
    lines = [f"{listed} = [  # the best first, for @triton.autotune(configs={listed}, key=[...])"]
    lines += [f"{source.indent}{_config('triton.Config', constants, one)}," for one in launches]
    source.before(kernel, ["", "", *lines, "]"])
    options = ", ".join(f"{key}={value}" for key, value in _options(chosen).items())
    return source.apply(), [*notes, f"launch it with {options}; {listed} holds the {len(launches)} best configurations"]


def _options(launch: Launch) -> dict[str, Any]:
    return {"num_warps": launch.num_warps, "num_stages": launch.num_stages, **launch.options}


def _config(name: str, constants: Sequence[str], launch: Launch) -> str:
    """Call that makes a configuration; options that only a backend knows stand among its constants."""
    of_backend = {key: value for key, value in launch.options.items() if key not in ("num_ctas", "maxnreg")}
    values = {one: launch.constexprs[one] for one in constants} | of_backend
    options = {key: value for key, value in _options(launch).items() if key not in of_backend}
    named = ", ".join(f"{key}={value}" for key, value in options.items())
    inside = ", ".join(f'"{key}": {value}' for key, value in values.items())
    return f"{name}({{{inside}}}, {named})"


def _give_defaults(source: EditableSource, kernel: ast.FunctionDef, values: Mapping[str, Any]) -> list[str]:
    """Make values the defaults of their parameters; those that others without a default follow are named instead."""
    defaults, left = defaults_of(kernel), []
    last = True  # whether all parameters behind have a default
    for one in reversed(parameters_of(kernel)):
        if one.arg in values and one.arg in defaults:
            source.replace(defaults[one.arg], str(values[one.arg]))
        elif one.arg in values and last:
            annotated = one.annotation or one
            text = source.code(annotated) if isinstance(annotated, ast.expr) else one.arg
            equals = " = " if one.annotation else "="
            source.replace(annotated, f"{text}{equals}{values[one.arg]}")  # type: ignore[arg-type]
        elif one.arg in values:
            left.append(f"{one.arg}={values[one.arg]}")
            last = False
        else:
            last = last and one.arg in defaults
    return [f"launch it with {', '.join(reversed(left))}: parameters without a default follow"] if left else []
