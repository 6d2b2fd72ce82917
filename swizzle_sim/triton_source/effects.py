"""Which workgroups of a kernel store their tile, and whether what they store to is the tile that was computed.

A workgroup stores nothing where it returns before, or where an ``if`` stands around the store: its tile is then lost.
Whether it is so is kept in `NO_TILE`, beside the statements that compute the tile. A condition that cannot be read (of
memory, threads, a flag) is assumed to leave no workgroup out, and said.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from swizzle_sim.triton_source.slices import assign, loaded, own_statements, slice_of, stored
from swizzle_sim.triton_source.source_file import SourceFile, literal_axis

NO_TILE = "no_tile"  # 1 in a workgroup that stores nothing
_GONE = "has_returned"
_LOSSY = (ast.FloorDiv, ast.Mod, ast.RShift, ast.BitAnd, ast.BitOr)
# What arrives of a source: all of it, or parts, each with its divisor where that is a number. A quotient and a
# remainder of one divisor are all of it.
_ALL = frozenset({("all", "")})
_LOSSY_CALLS = ("min", "max", "minimum", "maximum", "where", "abs", "clamp", "cdiv")
_STORES = ("store", "call", "scatter", "async_copy_local_to_global", "store_tensor_descriptor")
Flow = dict[str, frozenset[tuple[str, str]]]  # by source


class Effects:
    """Stores of one kernel."""

    def __init__(
        self, body: list[ast.stmt], answers: Sequence[str], source: SourceFile, readable: Callable[[ast.expr], bool]
    ):
        self.source, self.answers, self.readable = source, tuple(answers), readable
        self.assumed: list[int] = []  # lines of conditions that are supposed to leave no workgroup out
        self.changed = 0  # line after which less than the tile arrives at the address
        self._flows: dict[int, Flow] = {}  # by the id of a statement that stores
        self._lines: dict[str, int] = {}
        self._bounds: dict[int, Flow] = {}  # what decides how often a loop runs
        every_name = [one.id for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.Name)
                      and isinstance(one.ctx, ast.Store)]  # fmt: skip
        self._twice = {name for name in every_name if every_name.count(name) > 1}
        needed = slice_of(body, set(answers))[0]
        self._own_axes = {literal_axis(call) for stmt in needed for call in source.id_calls(stmt)}
        self._follow(body, {})
        every = [flow for flow in self._flows.values()]
        whole = [key for key, flow in self._flows.items() if set(self.answers) <= flow.keys()]
        self._stores = {*whole} or {*self._flows}
        self.changed = self._lossy([self._flows[key] for key in whole] or every)
        if self._flows and not whole:
            self.changed = self.changed or max(self._lines.values(), default=1)

    def noted(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements with the notes of `NO_TILE` between them; none where every workgroup plainly stores."""
        place = ast.Constant(0, lineno=0, col_offset=0)
        notes = self._noted(body)
        if not self._stores:  # the tile is used where the function ends
            notes = [*notes, _stores_here(place)]
        if not _may_leave(notes):
            return body
        end = next((k for k, one in enumerate(notes) if _is_note(one)), 0)
        if end and not any(_has_store(one) for one in notes[:end]):  # who returns before has no tile, and nobody else
            left = [_OneFlag().visit(one) for one in notes[:end]]
            return [assign(NO_TILE, ast.Constant(0), place), *left, *(one for one in notes[end:] if not _has_note(one))]
        first = [assign(NO_TILE, ast.Constant(1), place), assign(_GONE, ast.Constant(0), place)]
        return [*first, *notes]

    def left_after(self, body: list[ast.stmt], stores: bool = False) -> tuple[int, bool]:
        """Line of a ``return`` or ``break`` behind a store, which ends a loop over tiles, or 0; whether it stores."""
        for stmt in body:
            if isinstance(stmt, ast.Return | ast.Break) and stores:
                return stmt.lineno, stores
            for part in (getattr(stmt, "body", []), getattr(stmt, "orelse", [])):
                kept = [
                    one for one in part if not (isinstance(stmt, ast.For | ast.While) and isinstance(one, ast.Break))
                ]
                line, stores = self.left_after(kept, stores)
                if line:
                    return line, stores
            stores = stores or id(stmt) in self._stores
        return 0, stores

    def _noted(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for stmt in body:
            if isinstance(stmt, ast.Return | ast.Continue | ast.Break):
                found.append(assign(_GONE, ast.Constant(1), stmt))
            elif isinstance(stmt, ast.If):
                found += self._if(stmt)
            elif isinstance(stmt, ast.With):
                found += self._noted(stmt.body)
            elif isinstance(stmt, ast.For | ast.While):
                found.append(stmt)
                found += self._loop(stmt)
            else:
                found.append(stmt)
                if id(stmt) in self._stores:
                    tests = [one for one in _masks(stmt, body) if self.readable(one)]
                    whole = _stores_here(stmt)
                    for test in tests:  # a mask of the tile alone keeps all of it or nothing
                        whole = ast.copy_location(ast.If(test, [whole], []), stmt)
                    found.append(whole)
        return found

    def _if(self, stmt: ast.If) -> list[ast.stmt]:
        then, other = self._noted(stmt.body), self._noted(stmt.orelse)
        notes = [[one for one in part if _has_note(one)] for part in (then, other)]
        if not any(notes):
            return [stmt]
        both = all(len(part) == 1 and _is_note(part[0]) for part in notes)
        if not both and self.readable(stmt.test):
            return [ast.copy_location(ast.If(stmt.test, then or [ast.Pass()], other), stmt)]
        found: list[ast.stmt] = [stmt]
        if any(_has_store(one) for part in notes for one in part):
            found.append(_stores_here(stmt))
        if not both:
            self.assumed.append(stmt.lineno)
        return found

    def _loop(self, stmt: ast.For | ast.While) -> list[ast.stmt]:
        """A loop with a store in it: it is supposed to run where the tile does not decide how often."""
        notes = [one for one in self._noted(stmt.body) if _has_note(one)]
        if any(isinstance(one, ast.Return) for one in own_statements(stmt)):
            self.assumed.append(stmt.lineno)
        if not any(_has_store(one) for one in notes):
            return []
        bounds = stmt.iter if isinstance(stmt, ast.For) else stmt.test
        reached = self._bounds.get(id(stmt), {})
        if reached or not any(_is_note(one) for one in notes) or isinstance(stmt, ast.While):
            self.assumed.append(getattr(bounds, "lineno", stmt.lineno))
        return [_stores_here(stmt)]

    def _follow(self, body: list[ast.stmt], known: dict[str, Flow]) -> None:
        """Take note of what of the tile, and of ids of other axes, arrives at each store."""
        for stmt in body:
            match stmt:
                case ast.Assign(targets, value):
                    self._note_stores(stmt, known)
                    flow = self._flow(value, known)
                    for name in {name for target in targets for name in stored(target)}:
                        known[name] = {name: _ALL} if name in self.answers else self._axis(value) or flow
                        self._lines[name] = stmt.lineno
                case ast.AugAssign(ast.Name(name), op, value):
                    flow = self._flow(ast.BinOp(ast.Name(name, ast.Load()), op, value), known)
                    known[name] = {name: _ALL} if name in self.answers else flow
                case ast.If(_, then, other):
                    first, second = dict(known), dict(known)
                    self._follow(then, first)
                    self._follow(other, second)
                    for name in first.keys() | second.keys():
                        a, b = first.get(name, {}), second.get(name, {})
                        known[name] = {one: _in_both(a.get(one, _ALL), b.get(one, _ALL)) for one in a.keys() | b.keys()}
                case ast.For(target, over, inner):
                    self._bounds[id(stmt)] = self._flow(over, known)
                    known |= {name: self._flow(over, known) for name in stored(target)}
                    self._follow(inner, known)
                case ast.While(test, inner):
                    self._bounds[id(stmt)] = self._flow(test, known)
                    self._follow(inner, known)
                case ast.With(_, inner):
                    self._follow(inner, known)
                case ast.Expr():
                    self._note_stores(stmt, known)

    def _note_stores(self, stmt: ast.stmt, known: Mapping[str, Flow]) -> None:
        for call in (one for one in ast.walk(stmt) if isinstance(one, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else self._called(call)
            if name in _STORES or name.startswith("atomic_"):
                parts: list[ast.expr] = call.args if self.source.in_c else call.args[: 1 + ("descriptor" in name)]
                parts = [*parts, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
            elif isinstance(call.func, ast.Name) and self._stores_inside(call.func.id):
                parts = call.args
                if not self._plainly_stores(call.func.id):
                    self.assumed.append(stmt.lineno)
            else:
                continue
            flow: Flow = {}
            for part in parts:
                flow = _together(flow, self._flow(part, known))
            self._flows[id(stmt)] = self._flows.get(id(stmt), {}) | flow

    def _called(self, call: ast.Call) -> str:
        return self.source.aliases.called(call) if isinstance(call.func, ast.Name) else ""

    def _stores_inside(self, name: str) -> bool:
        function = self.source.named.get(name.rpartition(".")[2])
        return function is not None and any(
            isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
            and (one.func.attr in _STORES or one.func.attr.startswith("atomic_"))
            for part in self.source.reachable(function) for one in ast.walk(part)
        )  # fmt: skip

    def _plainly_stores(self, name: str) -> bool:
        """Whether a helper has no condition around its stores, and no early return."""
        function = self.source.named[name.rpartition(".")[2]]
        return not any(isinstance(one, ast.If | ast.Return | ast.While | ast.For) for one in own_statements(function))

    def _axis(self, value: ast.AST) -> Flow:
        """Id of an axis that the tile is not computed from."""
        if not (isinstance(value, ast.Call) and self.source.is_id(value)) or literal_axis(value) in self._own_axes:
            return {}
        name = f"program_id({literal_axis(value)})"
        self._lines[name] = getattr(value, "lineno", 1)
        return {name: _ALL}

    def _flow(self, node: ast.AST, known: Mapping[str, Flow]) -> Flow:
        """Sources that a value holds, and what of each."""
        if isinstance(node, ast.Name):
            return dict(known.get(node.id, {}))
        if axis := self._axis(node):
            return axis
        found: Flow = {}
        below = [self._flow(one, known) for one in ast.iter_child_nodes(node)]
        name = (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) if isinstance(
            node, ast.Call) else ""  # fmt: skip
        lossy = isinstance(node, ast.Compare | ast.BoolOp) or name in _LOSSY_CALLS or self._loses(name)
        lossy = lossy or (isinstance(node, ast.BinOp) and isinstance(node.op, _LOSSY))
        for flow in below:
            found = _together(found, {one: self._left(node, parts) for one, parts in flow.items()} if lossy else flow)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):  # ``a - a // n * n`` is no longer a
            a, _, b = below
            for one in a.keys() & b.keys():
                whole = _is_whole(a[one]), _is_whole(b[one])
                if any(whole) and (not all(whole) or isinstance(node.op, ast.Sub)):
                    found[one] = frozenset()
        return found

    def _loses(self, name: str) -> bool:
        """Whether a function of the file, of which an address is made, may give one number for two."""
        function = self.source.named.get(name.rpartition(".")[2])
        return function is not None and any(
            isinstance(one, ast.Compare | ast.BoolOp | ast.IfExp | ast.If | ast.Call)
            or (isinstance(one, ast.BinOp | ast.AugAssign) and isinstance(one.op, _LOSSY))
            for stmt in function.body for one in ast.walk(stmt)
        )  # fmt: skip

    def _left(self, node: ast.AST, parts: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """What a lossy operation leaves of a source: of all of it a quotient or a remainder, else nothing."""
        if not (_is_whole(parts) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod)):
            return frozenset()
        known = loaded(node.right) & self._twice  # a name that means two numbers
        by = f"{id(node)}" if known else ast.unparse(node.right)
        return frozenset({(type(node.op).__name__, by)})

    def _lossy(self, flows: list[Flow]) -> int:
        """Line before which the tile was whole, where less than it arrives at every store; else 0."""
        arrived: Flow = {}
        for flow in flows:
            arrived = _together(arrived, flow)
        for one, parts in arrived.items():
            if not _is_whole(parts):
                return max([self._lines.get(one, 0), 1])
        return 0


def _together(one: Flow, other: Flow) -> Flow:
    return {name: one.get(name, frozenset()) | other.get(name, frozenset()) for name in {**one, **other}}


def _in_both(one: frozenset[tuple[str, str]], other: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    return other if _is_whole(one) else one if _is_whole(other) else one & other


def _is_whole(parts: frozenset[tuple[str, str]]) -> bool:
    divided = {by for what, by in parts if what == "FloorDiv"} & {by for what, by in parts if what == "Mod"}
    return bool(_ALL & parts or divided)


def _masks(stmt: ast.stmt, body: list[ast.stmt]) -> list[ast.expr]:
    """Conditions that a store's mask joins."""
    values = {one.targets[0].id: one.value for one in body
              if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)}  # fmt: skip
    todo = [word.value for call in ast.walk(stmt) if isinstance(call, ast.Call)
            for word in call.keywords if word.arg == "mask"]  # fmt: skip
    todo += [call.args[2] for call in ast.walk(stmt) if isinstance(call, ast.Call) and len(call.args) > 2
             and isinstance(call.func, ast.Attribute) and call.func.attr == "store"
             and ast.unparse(call.func.value) == "tl"]  # fmt: skip
    found = []
    for one in todo:
        match one:
            case ast.BinOp(left, ast.BitAnd(), right):
                todo += [left, right]
            case ast.BoolOp(ast.And(), parts):
                todo += parts
            case ast.Name(name) if isinstance(values.get(name), ast.BinOp | ast.BoolOp):
                todo.append(values.pop(name))
            case _:
                found.append(one)
    return found


class _OneFlag(ast.NodeTransformer):
    """Puts `NO_TILE` for the flag of those that have returned."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(NO_TILE, node.ctx), node) if node.id == _GONE else node


def _stores_here(place: ast.AST) -> ast.stmt:
    test = ast.copy_location(ast.Compare(ast.Name(_GONE, ast.Load()), [ast.Eq()], [ast.Constant(0)]), place)
    found = ast.If(test, [assign(NO_TILE, ast.Constant(0), place)], [])
    return ast.copy_location(found, place)


def _is_note(stmt: ast.stmt) -> bool:
    """Whether a statement says that a workgroup stores here."""
    return isinstance(stmt, ast.If) and _GONE in {one.id for one in ast.walk(stmt.test) if isinstance(one, ast.Name)}


def _has_note(stmt: ast.stmt) -> bool:
    return bool(stored(stmt) & {NO_TILE, _GONE})


def _has_store(stmt: ast.stmt) -> bool:
    return NO_TILE in stored(stmt)


def _may_leave(notes: list[ast.stmt]) -> bool:
    """Whether a workgroup may return before the first place where it plainly stores."""
    for one in notes:
        if _is_note(one):
            return False
        if _GONE in stored(one):
            return True
    return True
