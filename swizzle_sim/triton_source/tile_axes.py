"""Tile axes that a kernel hides in a one-dimensional launch: what its program id is divided by."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations

from swizzle_sim.triton_source.definitions import Definitions, Filled, evaluate
from swizzle_sim.triton_source.source_file import SourceFile, parameters_of

_NAMES = ("num_pid_m", "num_pid_n")
_MAX_CALLS = 3  # followed, one inside the other
_APART = (ast.FloorDiv, ast.Mod)
Values = Mapping[str, object]


class TileAxes:
    """Counts of tiles in one Triton function."""

    def __init__(self, source: SourceFile, name: str):
        self.function = source.kernel(name)
        self._source, self._definitions = source, Definitions(self.function)
        self._quotients = list(self._definitions.quotients())

    def counts(self, known: Values) -> list[Callable[[Values], int | None]]:
        """Each quotient of parameters in the source, as a function of their values; those not given are ``known``."""
        every = [*self._quotients, *self.divisors()]
        return [lambda values, one=one: evaluate(one, {**known, **values}) for one in every]  # type: ignore[misc]

    def divisors(self) -> list[ast.expr]:
        """What the program id of the first axis, or a remainder of it, is divided by, in parameters, in source order.

        Not what a quotient is divided by: of ``z = pid % NB; t = pid // NB; n = t % cols`` NB counts columns.
        """
        found = self._divided(self.function, self._definitions, set(), _MAX_CALLS)
        return list({ast.unparse(one): one for one in found}.values())

    def _divided(
        self, function: ast.FunctionDef, definitions: Definitions, whole: set[str], calls: int
    ) -> Iterator[ast.expr]:
        """Divisors of what is in ``whole`` or an id, those in called functions of the file too."""
        for stmt in _in_order(function):
            match stmt:
                case ast.Assign([ast.Name(name)], ast.BinOp(_, ast.FloorDiv(), _) as value) if self._holds(
                    value, whole
                ):
                    whole.discard(name)
                case ast.Assign([ast.Name(name)], value) if self._holds(value, whole):
                    whole.add(name)
            for node in ast.walk(stmt) if not hasattr(stmt, "body") else ():
                match node:
                    case ast.BinOp(left, op, right) if isinstance(op, _APART) and self._holds(left, whole):
                        meaning = definitions.in_parameters(ast.unparse(right))
                        if meaning is not None:
                            yield meaning
                    case ast.Call(ast.Name(name), given) if name in self._source.named and calls:
                        yield from self._in_call(self._source.named[name], given, definitions, whole, calls - 1)

    def _in_call(
        self, called: ast.FunctionDef, given: list[ast.expr], outer: Definitions, whole: set[str], calls: int
    ) -> Iterator[ast.expr]:
        names = [one.arg for one in parameters_of(called)]
        ids = {name for name, value in zip(names, given, strict=False) if self._holds(value, whole)}
        if not ids:
            return
        meanings = {name: outer.in_parameters(ast.unparse(value)) for name, value in zip(names, given, strict=False)}
        known = {name: value for name, value in meanings.items() if value is not None}
        for one in self._divided(called, Definitions(called), ids, calls):
            if {node.id for node in ast.walk(one) if isinstance(node, ast.Name)} & set(names) <= known.keys():
                yield Filled(known).visit(copy.deepcopy(one))

    def axes(self) -> tuple[ast.expr | None, ast.expr] | None:
        """Counts of tile rows and columns in parameters, the rows None where only columns are known; None without."""
        if len({call.axis for call in self._source.program_ids(self.function)}) > 1:
            return None
        rows, columns = (self._definitions.meaning_of(name) for name in _NAMES)
        if rows is not None and columns is not None:
            return rows, columns
        divisors = self.divisors()
        texts = [ast.unparse(one) for one in self._quotients]
        for one in divisors:  # a quotient that the id is divided by, or by a multiple of it, counts columns
            if ast.unparse(one) in texts:
                return None, one
        for one, text in zip(self._quotients, texts, strict=True):
            if any(text in ast.unparse(divisor) for divisor in divisors):
                return None, one
        return (None, divisors[-1]) if divisors else None

    def tiles(self, values: Values, grid: Sequence[int]) -> tuple[int, int] | None:
        """Rows and columns of tiles of a launch; None where the source does not give two that fit its grid."""
        if any(side > 1 for side in grid[1:]):
            return None
        total, found = grid[0], self.axes()
        if found is None:
            return None
        rows, columns = (evaluate(one, values) if one is not None else None for one in found)
        if columns and total % columns == 0 and rows in (None, total // columns):
            return total // columns, columns
        counts = [count for one in self._quotients if (count := evaluate(one, values))]
        return next(((m, n) for m, n in permutations(counts, 2) if m * n == total), None)

    def _holds(self, value: ast.AST, whole: set[str]) -> bool:
        """Whether a value is the program id, a cast or a part of it."""
        match value:
            case ast.Name(name):
                return name in whole
            case ast.Call(ast.Attribute(inner, "to")):
                return self._holds(inner, whole)
            case ast.Call(ast.Name(name)) if name in self._source.named:  # a helper that hands the id on
                body = self._source.named[name].body
                return any(isinstance(one, ast.Return) and one.value and self._holds(one.value, set()) for one in body)
            case ast.Call():
                return self._source.is_id(value) or self._source.aliases.called(value) == "program_id"
            case ast.BinOp(left, op, _):
                return isinstance(op, _APART) and self._holds(left, whole)
        return False


def _in_order(function: ast.FunctionDef) -> list[ast.stmt]:
    """Statements in the order of the text, those inside others after these."""
    found = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))
