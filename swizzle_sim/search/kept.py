"""Kept orders: the winner of a run as a template, whose literals are parameters, and what it gives to the next kernel.

Templates lie as text in the folder `KEPT` of the working directory, one a file, to be read and edited. A run of the
families tries them first, unless the launch order leaves nothing to gain; as all candidates each is proved at the
kernel's grid before it has a score.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.templates import Template, TemplateSpace, load_templates, read_template
from swizzle_sim.search.templates.space import Values
from swizzle_sim.search.templates.template import ParameterRange
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import LanguageError, NotBijective, SearchError

KEPT = Path("kept")
FACTORS = (1, 2, 4)  # by which a literal becomes smaller and larger
MOST_LISTED = 4096  # combinations of a template that are put in order
MOST_TRIED = 16  # combinations of a kept template on the next kernel, those nearest the literals first
LEAST = 2  # literals below say first, next and none, and are no sizes


def keep(best: Attempt, scorer: Scorer, name: str) -> Template:
    """Template of an order: a searched template as it is, else the text with its literals as parameters.

    ``num_xcds`` stands for the number of XCDs where the id itself is divided by it. A literal is a parameter with those
    values at which the text, its other literals unchanged, is a bijection of the kernel's grid: each is tried.
    """
    if (text := str(best.verdict.get("template", "")).lstrip()).startswith("template"):
        return replace(read_template(text), name=name)
    body = _with_xcds(best.source, scorer)
    values = {literal: _values(body, literal, scorer) for literal in sorted(_literals(ast.parse(body)))}
    kept = {literal: f"n{i}" for i, literal in enumerate((one for one in values if len(values[one]) > 1), 1)}
    ranges = tuple(
        ParameterRange(kept[value], tuple(values[value]), "{" + ", ".join(map(str, values[value])) + "}")
        for value in kept
    )
    text = ast.unparse(_Named(kept).visit(ast.parse(body))) + "\n"
    as_found = ", ".join(f"{name} = {value}" for value, name in kept.items()) or "no literal"
    return Template(name, ranges, (), f"# kept from {best.name}; as found: {as_found}\n{text}")


def _literals(tree: ast.AST) -> set[int]:
    """Integers of a text that say how large or how many; the arguments of ``range`` must stay literal."""
    ranges = {id(part) for node in ast.walk(tree) if isinstance(node, ast.For) for part in ast.walk(node.iter)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in ranges]
    return {node.value for node in constants if type(node.value) is int and node.value >= LEAST}


class _Named(ast.NodeTransformer):
    """Puts names in place of integers."""

    def __init__(self, names: Mapping[int, str]):
        self.names = names

    def visit_For(self, node: ast.For) -> ast.For:
        """Leave the range as it is."""
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A name, or the integer where it has none."""
        name = self.names.get(node.value) if type(node.value) is int else None
        return node if name is None else ast.Name(name, ast.Load())


def _with_xcds(source: str, scorer: Scorer) -> str:
    """Text with ``num_xcds`` where the hardware's id is divided by as many; as it is where that changes the order."""
    tree, xcds = ast.parse(source), scorer.gpu.xcds
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(ast.Name("pid" | "num_pids"), ast.Mod() | ast.FloorDiv(), ast.Constant(value)) if (
                value == xcds > 1
            ):
                node.right = ast.Name("num_xcds", ast.Load())
    found = ast.unparse(tree)
    same = (scorer.permutation(Swizzle.parse(one)) for one in (source, found))
    return found if (next(same) == next(same)).all() else source


def _values(body: str, literal: int, scorer: Scorer) -> list[int]:
    """Values of a literal at which a text is a bijection here, among those near it."""
    near = {literal // f for f in FACTORS if literal // f >= 1} | {literal * f for f in FACTORS}
    return [value for value in sorted(near) if value == literal or _holds(_at(body, {literal: value}), scorer)]


def _at(body: str, values: Mapping[int, int]) -> str:
    """Text with other integers in place of its own."""
    tree = _Named({literal: f"value_{value}" for literal, value in values.items()}).visit(ast.parse(body))
    given = "".join(f"value_{value} = {value}\n" for value in values.values())
    return given + ast.unparse(tree)


def _holds(text: str, scorer: Scorer) -> bool:
    try:
        scorer.permutation(Swizzle.parse(text))
    except (LanguageError, NotBijective):
        return False
    return True


def write_kept(template: Template, folder: Path = KEPT) -> Path:
    """Write a template into the folder of those kept; one of this name is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{template.name}.txt"
    write_whole(path, template.text.encode())
    return path


def read_kept(folder: Path = KEPT) -> list[Template]:
    """Templates kept in a folder, by name; none where there is no folder."""
    return [one for path in sorted(folder.glob("*.txt")) for one in load_templates(path)]


def kept_candidates(templates: Sequence[Template], kernel: Kernel, gpu: Gpu) -> Iterator[Candidate]:
    """Candidates of kept templates for a kernel: of each the values nearest the middle of its ranges first."""
    for template in templates:
        try:
            space = TemplateSpace(template, [kernel], gpu)
        except (LanguageError, SearchError):  # a size that this kernel has under that name, or conditions it fails
            continue
        points = itertools.islice(space.points(), MOST_LISTED)
        for values in sorted(points, key=partial(_steps, space=space))[:MOST_TRIED]:
            told = {"template": template.name, "parameters": dict(values)}
            yield Candidate(template.title(values), template.source(values), "families", told)


def _steps(values: Values, space: TemplateSpace) -> int:
    """How many values away a combination is from the middle of each range."""
    return sum(abs(one.values.index(values[one.name]) - one.values.index(one.middle)) for one in space.ranges)
