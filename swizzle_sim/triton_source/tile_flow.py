"""The coordinates of a kernel's tile by where they flow: numbers made of a program id, of which addresses are made.

A number is made of sizes, ids and other numbers by arithmetic. The first numbers on the way to a block of items, a
pointer or a store are the coordinates, whatever their names: ``tm`` in ``tm * BLOCK + tl.arange(0, BLOCK)``. A product
of a coordinate, or a sum of products, is an offset and no coordinate. What a coordinate is multiplied by is what its
size is divided by: ``cdiv(M, BLOCK)`` counts what ``tm`` runs over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from swizzle_sim.triton_source.definitions import rounded_up
from swizzle_sim.triton_source.loops import counts_tiles
from swizzle_sim.triton_source.slices import loaded, stored
from swizzle_sim.triton_source.source_file import SourceFile

# Calls that make a number of numbers.
_NUMBERS = {
    "program_id", "num_programs", "cdiv", "min", "max", "minimum", "maximum", "abs", "divmod", "swizzle2d", "to",
    "cast", "multiple_of", "max_contiguous", "int32", "int64", "constexpr", "where", "range",
}  # fmt: skip
_CASTS = ("to", "cast", "multiple_of", "max_contiguous")
_LETTERS = (("m", "n"), ("row", "col"), ("i", "j"))  # of rows and columns, as people write them
Roots = dict[str, set[str]]  # coordinates that a name is an offset of, each with what it is multiplied by


class TileFlow:
    """Coordinates of one kernel."""

    def __init__(self, body: Iterable[ast.stmt], source: SourceFile):
        self.source = source
        self._ids: set[str] = set()  # names that hold an id as it came
        self._made: dict[str, int] = {}  # names made of an id, with the line of the last statement that makes them
        self._offsets: dict[str, Roots] = {}
        self._wide: set[str] = set()  # names of blocks, pointers and what memory holds
        self._reached: Roots = {}
        body = list(body)
        self._follow(body)
        self._quotients = [(parts, node) for stmt in body for node in ast.walk(stmt)
                           if isinstance(node, ast.expr) and (parts := rounded_up(node))]  # fmt: skip

    def coordinates(self) -> list[str]:
        """Names that reach an address and are made of an id, in the order of the text; ids as they came are none."""
        return [name for name in self._made if name in self._reached]

    def is_no_number(self, name: str) -> bool:
        """Whether a name holds blocks, pointers or what was read, and never a number of an id."""
        return name in self._wide and name not in self._made and name not in self._ids

    def tile(self) -> list[str]:
        """Coordinates of the tile in the order of their counts, or of their letters; none where that is not told."""
        found = self.coordinates()
        counts = {name: ast.unparse(count) for name in found if (count := self.count_of(name)) is not None}
        if len(counts) == len(set(counts.values())) == 2:
            order = [ast.unparse(node) for _, node in self._quotients]
            found = sorted(counts, key=lambda name: order.index(counts[name]))
        elif len(found) == 2:
            pairs = (pair for pair in (found, found[::-1]) if tuple(map(_letter, pair)) in _LETTERS)
            found = next(([*pair] for pair in pairs if not any(map(counts_tiles, self._reached[pair[1]]))), [])
        return found if len(found) in (1, 2) else []

    def strides(self, name: str) -> set[str]:
        """What a coordinate is multiplied by on its way to an address."""
        return self._reached.get(name, set())

    def count_of(self, name: str) -> ast.expr | None:
        """Quotient that counts what a coordinate runs over; None where none, or more than one, does."""
        by = self._reached.get(name, set())
        found = {ast.unparse(node): node for parts, node in self._quotients if ast.unparse(parts[1]) in by}
        return next(iter(found.values())) if len(found) == 1 else None

    def _follow(self, body: Iterable[ast.stmt]) -> None:
        for stmt in body:
            match stmt:
                case ast.Assign(targets, value):
                    self._assign([name for one in targets for name in _names(one)], value, stmt)
                case ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                    self._assign([name], value, stmt)
                case ast.AugAssign(ast.Name(name), op, value):
                    self._assign([name], ast.BinOp(ast.Name(name, ast.Load()), op, value), stmt)
                case ast.If(_, then, other):
                    self._follow([*then, *other])
                case ast.For(ast.Name(name), ast.Call() as over, inner):
                    if over.args and self._is_number(over) and self._is_of_id(over.args[0]):
                        self._ids.add(name)
                    self._follow(inner)
                case ast.For(_, _, inner) | ast.While(_, inner) | ast.With(_, inner):
                    self._follow(inner)
                case ast.Expr(value):
                    self._reach(value)

    def _assign(self, names: list[str], value: ast.expr, stmt: ast.stmt) -> None:
        if not self._is_number(value):
            self._reach(value)
            self._wide |= set(names)
            return
        if not self._is_of_id(value):
            return
        plain, roots = _uncast(value), self._as_offset(value)
        for name in names:
            self._wide.discard(name)
            if self.source.is_id(plain) or (isinstance(plain, ast.Name) and plain.id in self._ids):
                self._ids.add(name)
            elif roots is not None and name not in self._made:
                self._offsets[name] = roots
            elif not (isinstance(plain, ast.Name) and plain.id == name):
                self._made[name] = stmt.lineno
                self._offsets.pop(name, None)

    def _as_offset(self, value: ast.expr) -> Roots | None:
        """Coordinates that a value is an offset of: a copy, or a sum of products with what is of no id."""
        plain = _uncast(value)
        if isinstance(plain, ast.Name):
            return self._offsets.get(plain.id) or ({plain.id: set()} if plain.id in self._made else None)
        found: Roots = {}
        for term in _terms(plain):
            if not self._is_of_id(term):
                continue
            roots = self._of_term(_uncast(term))
            if roots is None:
                return None
            for name, by in roots.items():
                found.setdefault(name, set()).update(by)
        return found

    def _of_term(self, term: ast.expr) -> Roots | None:
        """Coordinates of one product, or of a name that is an offset."""
        match term:
            case ast.Name(name):
                return self._offsets.get(name)
            case ast.BinOp(left, ast.Mult(), right):
                for one, by in ((left, right), (right, left)):
                    plain = _uncast(one)
                    if isinstance(plain, ast.Name) and self._is_of_id(plain) and not self._is_of_id(by):
                        return self._offsets.get(plain.id, {plain.id: {ast.unparse(_uncast(by))}})
        return None

    def _reach(self, value: ast.AST) -> None:
        """Take note of the numbers that a block, a pointer or a store is made of."""
        for node in ast.walk(value):
            roots: Roots = {}
            match node:
                case ast.Name(name, ast.Load()) if name in self._offsets:
                    roots = self._offsets[name]
                case ast.Name(name, ast.Load()) if name in self._made or name in self._ids:
                    roots = {name: set()}
                case ast.BinOp(_, ast.Mult(), _):
                    roots = self._of_term(node) or {}
            for name, by in roots.items():
                self._reached.setdefault(name, set()).update(by)

    def _is_number(self, value: ast.AST) -> bool:
        """Whether a value is made of numbers by arithmetic alone."""
        if self.source.in_c and isinstance(value, ast.Call) and self._makes_a_number(value, value.func):
            return all(map(self._is_number, value.args))  # by its keywords a function of C hands out what it makes
        for node in ast.walk(value):
            match node:
                case ast.Name(name) if name in self._wide or name == "unread":
                    return False
                case ast.Call(func) if not self._makes_a_number(node, func):
                    return False
                case ast.Subscript(_, index) if not isinstance(index, ast.Constant):
                    return False
        return True

    def _makes_a_number(self, call: ast.Call, func: ast.expr) -> bool:
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        language = self.source.aliases.language_name(func)
        if language or name in _NUMBERS:
            return (language or name) in _NUMBERS
        function = self.source.named.get(name)
        if function is None:
            return isinstance(func, ast.Name)  # imported: a function of numbers, as far as its arguments are
        return any(isinstance(one, ast.Return) and one.value for one in ast.walk(function)) and not any(
            self.source.aliases.language_name(one) in ("arange", "load") for one in ast.walk(function)
        )

    def _is_of_id(self, value: ast.AST) -> bool:
        known = self._ids | self._made.keys() | self._offsets.keys()
        return bool(loaded(value) & known or self.source.id_calls(value))


def _names(target: ast.expr) -> list[str]:
    """Names of a target, in the order of the text."""
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [one.id for one in parts if isinstance(one, ast.Name)] or sorted(stored(target))


def _uncast(value: ast.expr) -> ast.expr:
    """Value without casts and hints around it."""
    while isinstance(value, ast.Call):
        name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        if name not in _CASTS:
            break
        is_method = name == "to" and isinstance(value.func, ast.Attribute)
        if not is_method and not value.args:
            break
        value = value.func.value if is_method and isinstance(value.func, ast.Attribute) else value.args[0]
    return value


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """Terms of a sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _letter(name: str) -> str:
    """Part of a name that tells whether it counts rows or columns: ``m`` of ``m_block`` and of ``tm``."""
    parts = [part.rstrip("s") for part in name.lower().split("_")]
    known = [letter for pair in _LETTERS for letter in pair]
    return next((part for part in parts if part in known), name[-1] if len(name) == 2 else "")
