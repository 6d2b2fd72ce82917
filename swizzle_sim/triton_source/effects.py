"""Which workgroups of a kernel store their tile, and whether what they store to is the tile that was computed.

A workgroup stores nothing where it returns before, or where an ``if`` stands around the store: its tile is then lost.
Whether it is so is kept in `NO_TILE`, beside the statements that compute the tile. A condition that cannot be read (of
memory, threads, a flag) is assumed to leave no workgroup out, and said.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from swizzle_sim.language.ir import GRID_NAMES
from swizzle_sim.triton_source.definitions import rounded_up
from swizzle_sim.triton_source.imports import Imports
from swizzle_sim.triton_source.slices import assign, loaded, own_statements, slice_of, stored
from swizzle_sim.triton_source.source_file import SourceFile, defaults_of, literal_axis, parameters_of

NO_TILE = "no_tile"  # 1 in a workgroup that stores nothing
OWN_ID = "own id "  # before an axis: an id that the tile is computed from, where it arrives at a store by itself
MOVED = "moved"  # beside a coordinate that is moved by a number of tiles
SHIFTED = "shifted"  # beside an address to which a number is added
UNFOLLOWED = "unfollowed"  # beside what a call of C hands on that is not read: how is not known
GONE = "has_returned"
# What arrives of a source: all of it, or parts, each with its divisor and a star where it has been multiplied. A
# quotient and a remainder of one divisor, one of them multiplied, are all of it. All of it has its factors there.
_ALL = frozenset({("all", "")})
_NONE: frozenset[tuple[str, str]] = frozenset()
# Calls that hand on all of their arguments at these places, or under these names.
_KEEP: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    **dict.fromkeys(("multiple_of", "max_contiguous", "max_constancy", "expand_dims", "broadcast_to", "reshape", "view",
                     "make_tensor_descriptor", "assume"), ((0,), ("base", "input"))),
    "make_block_ptr": ((0, 3), ("base", "offsets")),
    "advance": ((0, 1), ("base", "offsets")),
    "range": ((0, 1, 2), ()),
}  # fmt: skip
_STRIDES = "strides"  # of a block of memory, beside the sources of its place
_ITEMS = "#"  # among factors: from here on it is the place of an item, not of a tile
_NUMBERS_OF_NONE = ("arange", "zeros", "full", "num_programs")
_STORES = ("store", "call", "scatter", "async_copy_local_to_global", "store_tensor_descriptor")
_LOSSY_CALLS = ("min", "max", "minimum", "maximum", "where", "abs", "clamp", "cdiv")  # of C
_MADE_OF = ("unread", "range")  # what a place or a loop of C is made of
_MOST_CALLS = 4  # followed, one inside the other
Flow = dict[str, frozenset[tuple[str, str]]]  # by source
Parts = frozenset[tuple[str, str]]


class Facts(NamedTuple):
    """What the reader of a kernel knows of it."""

    readable: Callable[[ast.expr], bool]  # whether a condition is arithmetic of what the tile is computed from
    is_inside: Callable[[str, ast.expr, ast.expr], bool]  # whether a coordinate times a block is below a size
    extent: Callable[[str], ast.expr | None]  # how many values a coordinate has
    values: Mapping[str, ast.expr]  # of names that are assigned once
    given: Collection[str]  # parameters: one that is assigned means two numbers


class Effects:
    """Stores of one kernel."""

    def __init__(self, body: list[ast.stmt], answers: Sequence[str], source: SourceFile, facts: Facts):
        self.source, self.answers, self.facts = source, tuple(answers), facts
        self._depth = 0  # of helpers that are followed
        self._meant: dict[str, str] = {}  # by the names of a helper's parameters
        self.assumed: list[int] = []  # lines of conditions that are supposed to leave no workgroup out
        self.changed = 0  # line after which less than the tile arrives at the address
        self._flows: dict[int, Flow] = {}  # by the id of a statement that stores
        self._lines: dict[str, int] = {}
        self._bounds: dict[int, Flow] = {}  # what decides how often a loop runs
        self._masks: dict[int, list[ast.expr]] = {}  # of a statement that stores
        self._addressed: dict[int, set[str]] = {}  # names that a statement's stores are to
        self._bases: dict[int, str] = {}  # pointer that a statement stores to
        self._places: dict[int, list[ast.expr]] = {}  # of a statement that plainly stores: what says where
        self._adds = False  # whether it adds to memory, as programs that share a tile do
        plain = [name for stmt in body if isinstance(stmt, ast.Assign) for name in stored(stmt)]
        every = [one.id for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.Name)
                 and isinstance(one.ctx, ast.Store)]  # fmt: skip
        self._lengths = {name for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.Call)
                         and ast.unparse(one.func) == "tl.arange" for name in loaded(one)}  # fmt: skip
        texts = {*map(ast.unparse, body)}  # with hints, ``M = M``
        self._twice = {name for name in every if every.count(name) > 1 or name not in plain
                       or (name in facts.given and f"{name} = {name}" not in texts)}  # fmt: skip
        self._counts = {text for one in answers for text in self._sizes(one)} - {"?"}
        needed = slice_of(body, set(answers))[0]
        self.own_axes = {literal_axis(call) for stmt in needed for call in source.id_calls(stmt)}
        self._follow(body, {})
        whole = [key for key, flow in self._flows.items() if set(self.answers) <= flow.keys()]
        self._stores = {*whole} or {*self._flows}
        stored_to = [self._flows[key] for key in whole or self._flows]
        self.changed = self._lossy(stored_to)
        last = [self._flows[key] for key in whole]
        # whether something that is not read, or not seen, stores the tile
        self.is_unfollowed = source.in_c and any(UNFOLLOWED in flow for flow in last)
        self.is_unseen = source.in_c and not self._flows
        self.strides: set[str] = set()  # arguments that have to keep tiles apart
        if not self.changed and not all(map(self._keeps_apart, stored_to)):
            self.changed = max(self._lines.values(), default=1)
        less = {self._bases[key] for key in self._flows.keys() - {*whole}} - {""}
        if (self._flows and not whole) or any(map(_is_moved, last)) or less & {self._bases[key] for key in whole}:
            self.changed = self.changed or max(self._lines.values(), default=1)
        self.arrived = arrived = {one for flow in self._flows.values() for one in flow}
        missing = [line for one, line in self._lines.items() if one.startswith("program_id") and one not in arrived]
        if self._flows and missing and not self._adds:
            self.changed = self.changed or missing[0]

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
        first = [assign(NO_TILE, ast.Constant(1), place), assign(GONE, ast.Constant(0), place)]
        return [*first, *notes]

    def left_after(self, body: list[ast.stmt], stores: bool = False) -> tuple[ast.stmt | None, bool]:
        """The ``return`` or ``break`` behind a store that ends a loop over tiles, if any, and whether it stores."""
        for stmt in body:
            if isinstance(stmt, ast.Return | ast.Break) and stores:
                return stmt, stores
            is_loop = isinstance(stmt, ast.For | ast.While)
            for part in (getattr(stmt, "body", []), getattr(stmt, "orelse", [])):
                end, stores = self.left_after(part, stores)
                if end is not None and not (is_loop and isinstance(end, ast.Break)):  # of that loop alone
                    return end, stores
            stores = stores or id(stmt) in self._stores
        return None, stores

    def stores(self, stmt: ast.stmt) -> bool:
        """Whether a statement stores something, however deep."""
        return any(id(one) in self._flows for one in ast.walk(stmt))

    def places(self, body: Sequence[ast.stmt]) -> list[tuple[ast.stmt, ast.expr]]:
        """What says where each statement stores; none where one of them may not be reached, adds, or is not plain."""
        found = [(stmt, one) for stmt in body for one in self._places.get(id(stmt), ())]
        tests = [(stmt, one) for stmt in body for one in _masks(self._masks.get(id(stmt), []), self.facts.values)]
        found += [
            (stmt, one) for stmt, test in tests for one in ast.iter_child_nodes(test) if isinstance(one, ast.expr)
        ]
        unsure = {*self.assumed} - {stmt.lineno for stmt, _ in tests}  # a mask is the same where what it compares is
        odd = self._flows.keys() - self._places or self._flows.keys() - {*map(id, body)} or unsure or self._adds
        return [] if odd or not all(isinstance(test, ast.Compare) for _, test in tests) else found

    def carried(self, body: list[ast.stmt]) -> set[str]:
        """Names that a store in a loop's body is to, and that an earlier trip may have changed."""
        found: set[str] = set()
        for k, stmt in enumerate(body):
            names = {name for one in ast.walk(stmt) for name in self._addressed.get(id(one), ())}
            found |= slice_of(body[: k + 1], names)[1]
        return found & {name for stmt in body for name in stored(stmt)}

    def _noted(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for stmt in body:
            if isinstance(stmt, ast.Return | ast.Continue | ast.Break):
                found.append(assign(GONE, ast.Constant(1), stmt))
            elif isinstance(stmt, ast.If):
                found += self._if(stmt)
            elif isinstance(stmt, ast.With):
                found += self._noted(stmt.body)
            elif isinstance(stmt, ast.Raise):
                self.assumed.append(stmt.lineno)
            elif isinstance(stmt, ast.For | ast.While):
                found.append(stmt)
                found += self._loop(stmt)
            else:
                found.append(stmt)
                if id(stmt) in self._stores:
                    found.append(self._stored(stmt))
        return found

    def _stored(self, stmt: ast.stmt) -> ast.stmt:
        """Note of a store, under those parts of its mask that can be read and do not plainly hold."""
        whole = _stores_here(stmt)
        for test in _masks(self._masks.get(id(stmt), []), self.facts.values):
            if self._holds(test):
                continue
            if self.facts.readable(test):
                whole = ast.copy_location(ast.If(test, [whole], []), stmt)
            else:
                self.assumed.append(stmt.lineno)
        return whole

    def _holds(self, test: ast.expr) -> bool:
        """Whether a mask holds for the first item of every tile, as ``pid_m * BLOCK + arange < M`` does."""
        test = self._meaning(test)
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Lt)):
            return False
        first = _first_item(self._meaning(test.left))
        first = self._meaning(first) if first is not None else None
        match first:
            case None:  # of the block alone, the same in all workgroups
                return True
            case ast.BinOp(one, ast.Mult(), other):
                pairs = ((self._meaning(one), other), (self._meaning(other), one))
                return any(
                    isinstance(name, ast.Name) and name.id in self.answers
                    and self.facts.is_inside(name.id, by, test.comparators[0]) for name, by in pairs
                )  # fmt: skip
        return False

    def _meaning(self, node: ast.expr) -> ast.expr:
        """What a name that is assigned once stands for, without ``[:, None]`` around it."""
        for _ in range(_MOST_CALLS):
            if isinstance(node, ast.Subscript) and not loaded(node.slice):
                node = node.value
            elif isinstance(node, ast.Name) and node.id in self.facts.values and node.id not in self.answers:
                node = self.facts.values[node.id]
        return node

    def _if(self, stmt: ast.If) -> list[ast.stmt]:
        then, other = self._noted(stmt.body), self._noted(stmt.orelse)
        notes = [[one for one in part if _has_note(one)] for part in (then, other)]
        if not any(notes):
            return [stmt]
        both = all(len(part) == 1 and _is_note(part[0]) for part in notes)
        partial = self._flows.keys() - self._stores  # what stores less than the tile may be all that there is of it
        has_store = any(_has_store(one) for part in notes for one in part)
        less = has_store and any(id(one) in partial for one in own_statements(stmt))
        if not both and not less and self.facts.readable(stmt.test):
            return [ast.copy_location(ast.If(stmt.test, then or [ast.Pass()], other), stmt)]
        found: list[ast.stmt] = [stmt]
        if not both:
            self.assumed.append(stmt.lineno)
        # of ``if a and b: store``, or ``if a or b: return``, that which can be read alone leaves some out
        plain = [one for one in getattr(stmt.test, "values", ()) if self.facts.readable(one)]
        is_needed = isinstance(getattr(stmt.test, "op", None), ast.And) == has_store
        if plain and is_needed and not less and not stmt.orelse:
            test = ast.BoolOp(stmt.test.op, plain) if len(plain) > 1 else plain[0]  # type: ignore[attr-defined]
            return [ast.copy_location(ast.If(test, then or [ast.Pass()], []), stmt)]
        return [*found, _stores_here(stmt)] if has_store else found

    def _loop(self, stmt: ast.For | ast.While) -> list[ast.stmt]:
        """A loop with a store in it: it is supposed to run where the tile does not decide how often."""
        notes = [one for one in self._noted(stmt.body) if _has_note(one)]
        if any(isinstance(one, ast.Return) for one in own_statements(stmt)):
            self.assumed.append(stmt.lineno)
        if not any(_has_store(one) for one in notes):
            return []
        bounds = stmt.iter if isinstance(stmt, ast.For) else stmt.test
        reached = self._bounds.get(id(stmt), {})
        if reached or not any(_is_note(one) for one in notes) or not (self.source.in_c or _runs(stmt)):
            self.assumed.append(getattr(bounds, "lineno", stmt.lineno))
        return [_stores_here(stmt)]

    def _follow(self, body: list[ast.stmt], known: dict[str, Flow]) -> None:
        """Take note of what of the tile, and of ids of other axes, arrives at each store."""
        for stmt in body:
            match stmt:
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                    self._note_stores(stmt, known)
                    for target, flow in zip(targets, [self._flow(one, known) for one in values], strict=True):
                        self._set(known, stored(target), flow, stmt)
                case ast.Assign(targets, value):
                    self._note_stores(stmt, known)
                    flow = self._flow(value, known)
                    self._set(known, {name for target in targets for name in stored(target)}, flow, stmt)
                case ast.AugAssign(ast.Name(name), op, value):
                    flow = self._flow(ast.BinOp(ast.Name(name, ast.Load()), op, value), known)
                    self._set(known, {name}, flow, stmt)
                case ast.If(test, then, other):
                    self._note_stores(ast.Expr(test), known)
                    first, second, by_tile = dict(known), dict(known), self._flow(test, known)
                    self._follow(then, first)
                    self._follow(other, second)
                    for name in {one for part in (*then, *other) for one in stored(part)}:
                        either = _of_either(first.get(name, {}), second.get(name, {}))
                        self._set(known, {name}, dict.fromkeys(either, _NONE) if by_tile else either, stmt)
                case ast.For() | ast.While():
                    bounds = self._bounds[id(stmt)] = self._flow(
                        getattr(stmt, "iter", getattr(stmt, "test", stmt)), known
                    )
                    known |= {
                        name: dict.fromkeys(bounds, _NONE) for name in stored(getattr(stmt, "target", ast.Pass()))
                    }
                    for _ in range(2):  # what one trip computes, the next one reads
                        self._follow(stmt.body, known)
                case ast.With(_, inner):
                    self._follow(inner, known)
                case ast.Expr():
                    self._note_stores(stmt, known)

    def _set(self, known: dict[str, Flow], names: Collection[str], flow: Flow, stmt: ast.stmt) -> None:
        for name in names:
            known[name] = {name: _ALL} if name in self.answers and not self._depth else flow
            self._lines[name] = stmt.lineno

    def _note_stores(self, stmt: ast.stmt, known: Mapping[str, Flow]) -> None:
        maybe = ast.IfExp | ast.BoolOp | ast.Lambda | ast.ListComp
        within = {id(one) for node in ast.walk(stmt) if isinstance(node, maybe) for one in ast.walk(node)}
        for call in (one for one in ast.walk(stmt) if isinstance(one, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else self._called(call)
            if name in _STORES or name.startswith("atomic_"):
                self._adds = self._adds or name.startswith("atomic_")
                parts = call.args if self.source.in_c else _address(call, name)
                in_one = len(parts) == 1 or not self.source.in_c
                flow = _together(*(self._flow(one, known) for one in parts)) if in_one else self._each(parts, known)
                if name == "call":
                    flow[UNFOLLOWED] = _NONE
                if not self.source.in_c:
                    self._masks.setdefault(id(stmt), []).extend(_mask_of(call))
                    if any(word.arg is None for word in call.keywords):
                        self.assumed.append(call.lineno)
            elif (home := self._storing(call)) is not None:
                parts, flow = call.args, self._of_helper(call, home, known)
            elif self._is_unknown(stmt, call) and any(
                isinstance(call.func, ast.Call) or self._flow(one, known) for one in call.args
            ):
                self.assumed.append(call.lineno)  # it may be the store
                continue
            else:
                continue
            if id(call) in within:
                self.assumed.append(call.lineno)
            elif name == "store" and isinstance(stmt, ast.Expr) and stmt.value is call:
                exact = [word.value for word in call.keywords if word.arg == "exact"] if self.source.in_c else parts
                each = [one for part in exact for one in getattr(part, "elts", [part]) if ast.unparse(one) != "tl"]
                self._places |= {id(stmt): each} if exact else {}
            self._flows[id(stmt)] = _together(self._flows.get(id(stmt), {}), flow)
            self._addressed.setdefault(id(stmt), set()).update(*map(loaded, parts))
            first = next((one for one in parts if not isinstance(one, ast.Constant)), None)
            self._bases[id(stmt)] = self._base(first) if first is not None and name != "call" else ""

    def _base(self, node: ast.expr) -> str:
        """Pointer that an address begins with."""
        node = self._meaning(node)
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            node = self._meaning(node.left)
        return ast.unparse(node)

    def _is_unknown(self, stmt: ast.stmt, call: ast.Call) -> bool:
        """Whether a statement is a call of what is neither Triton's nor seen."""
        is_alone = isinstance(stmt, ast.Expr) and stmt.value is call and not self.source.in_c
        return is_alone and not self.source.aliases.language_name(call.func)

    def _called(self, call: ast.Call) -> str:
        return self.source.aliases.called(call) if isinstance(call.func, ast.Name) else ""

    def _storing(self, call: ast.Call) -> ast.FunctionDef | None:
        """Function of the file, or of another that it imports, in which something is stored."""
        name = ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""
        function, source = self.source.named.get(name.rpartition(".")[2]), self.source
        if function is None and not self.source.in_c and (home := Imports.of(self.source).resolve(name)) is not None:
            source, function = home[0], home[0].function(home[1])
        if function is None or not any(is_store(one) for part in source.reachable(function) for one in ast.walk(part)):
            return None
        return function

    def _of_helper(self, call: ast.Call, function: ast.FunctionDef, known: Mapping[str, Flow]) -> Flow:
        """What of the arguments of a call arrives at the stores of a helper; its conditions are supposed to hold."""
        inside = [one for one in own_statements(function) if not isinstance(one, ast.FunctionDef)]
        stores = [one for stmt in inside for one in ast.walk(stmt) if isinstance(one, ast.Call) and is_store(one)]
        if any(isinstance(one, ast.If | ast.Return | ast.While | ast.For | ast.Try | ast.Match) for one in inside) or (
            any(_mask_of(one) for one in stores) and not self.source.in_c
        ):
            self.assumed.append(call.lineno)
        if self._depth >= _MOST_CALLS:
            flows = [self._flow(one, known) for one in call.args]
        else:
            kept, self._flows, meant = self._flows, {}, self._meant
            given = self._given(call, function, known)
            self._depth += 1
            self._follow(function.body, {**(known if getattr(function, "is_lambda", False) else {}), **given})
            self._depth -= 1
            flows, self._flows, self._meant = [*self._flows.values()], kept, meant
        return _together(*flows)

    def _given(self, call: ast.Call, function: ast.FunctionDef, known: Mapping[str, Flow]) -> dict[str, Flow]:
        """What the parameters of a function hold in a call."""
        names = [one.arg for one in parameters_of(function)]
        values = {**defaults_of(function), **dict(zip(names, call.args, strict=False))}
        values |= {one.arg: one.value for one in call.keywords if one.arg}
        self._meant = {name: self._name_meant(ast.unparse(one)) for name, one in values.items()}
        return {name: self._flow(values[name], known) if name in values else {} for name in names}

    def _axis(self, value: ast.AST) -> Flow:
        """Id of an axis that the tile is not computed from."""
        if not (isinstance(value, ast.Call) and self.source.is_id(value)):
            return {}
        if literal_axis(value) in self.own_axes:
            return {f"{OWN_ID}{literal_axis(value)}": _ALL}
        name = f"program_id({literal_axis(value)})"
        self._lines[name] = getattr(value, "lineno", 1)
        return {name: _ALL}

    def _flow(self, node: ast.AST, known: Mapping[str, Flow]) -> Flow:  # noqa: PLR0911 - one a kind
        """Sources that a value holds, and what of each: nothing of what is not known to keep it apart."""
        match node:
            case ast.Name(name):
                return dict(known.get(name, {}))
            case ast.Call() if axis := self._axis(node):
                return axis
            case ast.Call():
                return self._of_call(node, known)
            case ast.BinOp(left, op, right):
                return self._of_binary(node, self._flow(left, known), op, self._flow(right, known))
            case ast.UnaryOp(ast.USub() | ast.Invert() | ast.UAdd(), operand):
                return self._flow(operand, known)
            case ast.Subscript(value, index) if not self._flow(index, known):
                return self._flow(value, known)
            case ast.Tuple(parts) | ast.List(parts):
                return self._each(parts, known)
            case ast.IfExp(test, yes, no) if not self._flow(test, known):
                return _of_either(self._flow(yes, known), self._flow(no, known))
        return dict.fromkeys(_together(*(self._flow(one, known) for one in ast.iter_child_nodes(node))), _NONE)

    def _each(self, parts: Sequence[ast.expr], known: Mapping[str, Flow]) -> Flow:
        """Sources of several values, each with a place of its own."""
        return _together(*(_multiplied(self._flow(one, known), "", (f"[{k}]",)) for k, one in enumerate(parts)))

    def _of_binary(self, node: ast.BinOp, left: Flow, op: ast.operator, right: Flow) -> Flow:
        both = _together(left, right)
        lost = dict.fromkeys(both, _NONE)
        if isinstance(op, ast.Add | ast.Sub):  # ``a - a // n * n`` is no longer a
            length = self._length(node)
            if any(what.startswith("all") and not self._strides(of := by.split("|")[1:]) and not length <= {*of}
                   for parts in both.values() for what, by in parts):  # fmt: skip
                return lost  # the items of one tile, and of the next
            both = {one: frozenset((what, f"{by}|{_ITEMS}" if length and what == "all*" else by) for what, by in parts)
                    for one, parts in both.items()}  # fmt: skip
            for one in left.keys() & right.keys():
                if _is_whole(left[one]) or _is_whole(right[one]):
                    both[one] = _NONE
            for one, parts in both.items():  # a quotient and a remainder, neither with a place of its own
                clash = {by for what, by in parts if what == "FloorDiv"} & {by for what, by in parts if what == "Mod"}
                both[one] = frozenset(part for part in parts if part[1] not in clash)
            sides = [{one for one, parts in side.items() if _ALL & parts} for side in (left, right)]
            if bool(left) != bool(right):
                by, every = (node.left if right else node.right), [part for parts in both.values() for part in parts]
                is_plain = any(what[-1] != "*" for what, _ in every)
                counts = self._counts | {divisor.partition("|")[0] for _, divisor in every} - {""}
                is_number, turned = self._is_number(by), bool(right) and isinstance(op, ast.Sub)
                if is_number or (is_plain and turned) or {*self._factors(by)} & counts:
                    both[SHIFTED if is_number and not is_plain else MOVED] = _NONE
            return lost if any(one != other for one in sides[0] for other in sides[1]) else both  # neither has a stride
        if isinstance(op, ast.Mult):
            factor = node.right if left else node.left
            factors = self._factors(factor)
            is_odd = "0" in factors or (isinstance(factor, ast.Constant) and not isinstance(factor.value, int))
            return lost if (left and right) or is_odd else _multiplied(both, ast.unparse(factor), factors)
        if isinstance(op, ast.FloorDiv | ast.Mod) and not right:
            return {one: self._left(node, parts) for one, parts in left.items()}
        return both if isinstance(op, ast.LShift) and not right else lost

    def _is_number(self, node: ast.expr) -> bool:
        """Whether what is added is plainly a number other than 0, and no pointer and no block."""
        node = self._meaning(node)
        plain = isinstance(node, ast.UnaryOp) or (isinstance(node, ast.Constant) and node.value != 0)
        return plain or (isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add))

    def _factors(self, node: ast.expr, depth: int = 0) -> tuple[str, ...]:
        """Factors of a product in names that the kernel does not assign; ``?`` for what is no product of such."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return (*self._factors(node.left, depth), *self._factors(node.right, depth))
        if isinstance(node, ast.Constant) or rounded_up(node):
            return (ast.unparse(node),)
        if not isinstance(node, ast.Name) or depth > _MOST_CALLS:
            return ("?",)
        meant = ast.parse(self._name_meant(node.id), mode="eval").body
        value = self.facts.values.get(node.id) or self.source.constants.get(node.id)
        if value is not None or ast.unparse(meant) != node.id:
            return self._factors(meant if value is None else value, depth + 1)
        return ("?",) if node.id in self._twice else (node.id,)

    def _keeps_apart(self, flow: Flow) -> bool:
        """Whether no two coordinates of an address plainly have one stride; strides that are arguments are noted.

        Two strides differ by a factor that one of them alone has: an argument, or what counts the other coordinate.
        """
        sides: dict[str, tuple[list[str], Sequence[str]]] = {}  # factors of each, and what counts it
        for one, parts in flow.items():
            for what, by in sorted(parts):
                divisor, *factors = by.split("|")
                part = what.rstrip("*") if not divisor.isdigit() else "FloorDiv" if what[0] == "F" else "all"
                if one == _STRIDES:
                    self.strides |= {text for text in factors if text.isidentifier()}
                elif part == "all" and sides.get(one, (factors,))[0] != factors and not self.source.in_c:
                    return False
                elif part == "all":
                    sides[one] = factors, self._sizes(one)
                elif divisor and not divisor.isdigit():
                    counted = self._factors(ast.parse(divisor, mode="eval").body) if part == "Mod" else ()
                    sides[f"{one} {part} {divisor}"] = factors, counted
        return all(self._differ(*pair) for pair in combinations(sides.values(), 2))

    def _differ(self, one: tuple[list[str], Sequence[str]], other: tuple[list[str], Sequence[str]]) -> bool:
        """Whether two parts of an address do not plainly have one stride."""
        (more, own), (less, across) = sorted((one, other), key=lambda side: -len(self._strides(side[0])))
        extra, alone = self._strides(more) - self._strides(less), self._strides(less) - self._strides(more)
        is_sized = not alone and extra.keys() & {*across}
        if not extra or "?" in extra or "?" in alone or (not alone and extra.keys() <= {*own} - {*across}):
            return False
        items = more[more.index(_ITEMS) + 1 :] if _ITEMS in more else []
        if is_sized:  # but as many as there are tiles are too few for several items of each
            return not items or not {*items} <= {*across[:1]}
        names = {text for text in (*extra, *alone) if text.isidentifier() and text not in GRID_NAMES}
        self.strides |= names
        return bool(names) or any(text[0] == "[" for text in (*extra, *alone))

    def _length(self, node: ast.BinOp) -> set[str]:
        """Factors of the length of a block that is added to something; none where there is none, or no product."""
        for one in (self._meaning(node.left), self._meaning(node.right)):
            if isinstance(one, ast.Call) and ast.unparse(one.func) == "tl.arange":
                return {*self._factors(one.args[-1])} - {"?"}
        return set()

    def _strides(self, factors: Collection[str]) -> Counter[str]:
        """Factors without numbers and the lengths of blocks."""
        return Counter(one for one in factors if not one.isdigit() and one not in (*self._lengths, _ITEMS))

    def _sizes(self, name: str) -> list[str]:
        """What counts a coordinate, and the sizes that this is made of."""
        count = self.facts.extent(name)
        parts = rounded_up(count) if count is not None else None
        known = [count, *(ast.Name(one, ast.Load()) for one in loaded(parts[0]))] if count and parts else [count]
        return [text for one in known if one is not None for text in self._factors(one)]

    def _name_meant(self, name: str) -> str:
        """Name of the kernel that a helper's parameter or a copy has the value of."""
        name = self._meant.get(name, name)
        for _ in range(_MOST_CALLS):
            name = one.id if isinstance(one := self.facts.values.get(name), ast.Name) else name
        return name

    def _of_call(self, call: ast.Call, known: Mapping[str, Flow]) -> Flow:
        """What a call hands on of its arguments."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        every = _together(*(self._flow(one, known) for one in [*call.args, *(word.value for word in call.keywords)]))
        function = self.source.named.get(name.rpartition(".")[2])
        if function is not None and self._depth < _MOST_CALLS:
            return {**dict.fromkeys(every, _NONE), **self._returned(call, function, known)}
        if self.source.in_c and name not in _LOSSY_CALLS and not name.startswith("refused_"):  # of the file, not read
            given = [*call.args[name == "unread" :], *(word.value for word in call.keywords)]  # without its text
            handed = self._each(given, known) if len(given) > 1 else every
            return {**handed, UNFOLLOWED: _NONE} if handed and name not in _MADE_OF else handed
        places, words = _KEEP.get(name, ((), ()))
        given = [call.args[k] for k in places if k < len(call.args)]
        given += [word.value for word in call.keywords if word.arg in words]
        kept = _together(*(self._flow(one, known) for one in given))
        if name in _NUMBERS_OF_NONE and not every:
            return {}
        if name in ("make_block_ptr", "make_tensor_descriptor"):
            strides = [*call.args[2:3], *(word.value for word in call.keywords if word.arg == "strides")]
            texts = [self._factors(one) for part in strides for one in getattr(part, "elts", ())]
            apart = len({*texts}) == len(texts) and ("0",) not in texts
            names = "|".join(("", *(one for text in texts for one in text)))
            kept[_STRIDES] = frozenset({("all*", names)} if apart else ())
        return {**dict.fromkeys(every, _NONE), **kept}

    def _returned(self, call: ast.Call, function: ast.FunctionDef, known: Mapping[str, Flow]) -> Flow:
        """What a function of the file, of plain assignments and one ``return``, hands on of its arguments."""
        *before, last = function.body
        plain = isinstance(last, ast.Return) and last.value is not None
        if not plain or not all(isinstance(one, ast.Assign | ast.AugAssign | ast.Expr) for one in before):
            return {}
        meant, inner = self._meant, self._given(call, function, known)
        self._depth += 1
        self._follow(before, inner)
        found = self._flow(last.value, inner)  # type: ignore[attr-defined]
        self._depth, self._meant = self._depth - 1, meant
        return found

    def _left(self, node: ast.BinOp, parts: Parts) -> Parts:
        """What a quotient or a remainder of all of a source leaves of it."""
        if not _is_whole(parts):
            return _NONE
        known = loaded(node.right) & self._twice  # a name that means two numbers
        by = f"{id(node)}" if known else ast.unparse(node.right)
        return frozenset({(type(node.op).__name__, by)})

    def _lossy(self, flows: list[Flow]) -> int:
        """Line before which the tile was whole, where less than it arrives at every store; else 0."""
        for one, parts in ((one, parts) for flow in flows for one, parts in flow.items()):
            if not _is_whole(parts) and not one.startswith((OWN_ID, UNFOLLOWED, MOVED, SHIFTED)):
                return max([self._lines.get(one, 0), 1])
        return 0


def _together(*flows: Flow) -> Flow:
    found: Flow = {}
    for flow in flows:
        for name, parts in flow.items():
            found[name] = found.get(name, _NONE) | parts
    return found


def _of_either(one: Flow, other: Flow) -> Flow:
    """What arrives of each source on both of two ways."""
    found = {}
    for name in one.keys() | other.keys():
        a, b = one.get(name, _NONE), other.get(name, _NONE)
        found[name] = b if _is_whole(a) else a if _is_whole(b) else a & b
    return found


def _is_whole(parts: Parts) -> bool:
    if any(what.startswith("all") for what, _ in parts):
        return True
    quotients, rests = (
        {(by.partition("|")[0], what[-1] == "*") for what, by in parts if what.startswith(kind)}
        for kind in ("Floor", "Mod")
    )
    return any(by == other and (one or two) for by, one in quotients for other, two in rests)


def _is_moved(flow: Flow) -> bool:
    """Whether an address is moved by tiles, or by a number where all of a source arrives without a stride."""
    every = [(what, by.split("|")[1:]) for parts in flow.values() for what, by in parts]
    plain = any(what[:3] == "all" and all(one[0] == "[" for one in factors) for what, factors in every)
    return MOVED in flow or (SHIFTED in flow and plain)


def _multiplied(flow: Flow, factor: str, factors: Sequence[str]) -> Flow:
    """A flow after a product, in which a quotient is above the remainder; lost by a factor that is too small."""
    found = {}
    for one, parts in flow.items():
        small = {(what, by) for what, by in parts if what == "FloorDiv" and factor.isdigit()
                 and not (by.isdigit() and int(factor) >= int(by))}  # fmt: skip
        small |= {(what, by) for what, by in parts if what == "Mod" and factor.isdigit()}
        found[one] = frozenset((f"{what.rstrip('*')}*", "|".join((by, *factors))) for what, by in parts - small)
    return found


def _address(call: ast.Call, name: str) -> list[ast.expr]:
    """What a store is to: its pointer, or its descriptor and offsets."""
    words = [one.value for one in call.keywords if one.arg in ("pointer", "desc", "offsets")]
    own = call.func.value if isinstance(call.func, ast.Attribute) else None
    return [*call.args[: 1 + ("descriptor" in name)], *words, *([own] if own is not None else [])]


def _mask_of(call: ast.Call) -> list[ast.expr]:
    """Mask of a store: by its name, or the third argument of a function of Triton's."""
    found = [word.value for word in call.keywords if word.arg == "mask"]
    is_function = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "tl"
    place = 4 if ast.unparse(call.func) == "tl.atomic_cas" else 2
    if is_function and len(call.args) > place and "descriptor" not in ast.unparse(call.func):
        found.append(call.args[place])
    return found


def is_store(node: ast.AST) -> bool:
    """Whether a node is a call that stores, of a method or of Triton's."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
        node.func.attr in _STORES or node.func.attr.startswith("atomic_")
    )  # fmt: skip


def _runs(stmt: ast.For | ast.While) -> bool:
    """Whether a loop plainly runs once or more."""
    match stmt:
        case ast.For(_, ast.Call(_, bounds)):
            values = [one.value for one in bounds if isinstance(one, ast.Constant) and isinstance(one.value, int)]
            return len(values) == len(bounds) and len(range(*values[:3])) > 0 if 0 < len(values) < 4 else False
    return False


def _first_item(node: ast.expr) -> ast.expr | None:
    """A sum without its ``tl.arange(0, n)``; None where nothing else is in it."""
    match node:
        case ast.Call(func, [ast.Constant(0), *_]) if ast.unparse(func) == "tl.arange":
            return None
        case ast.BinOp(left, ast.Add(), right):
            first, second = _first_item(left), _first_item(right)
            return second if first is None else first if second is None else node
    return node


def _masks(masks: list[ast.expr], values: Mapping[str, ast.expr]) -> list[ast.expr]:
    """Conditions that masks join."""
    todo, found = [*masks], []
    for one in todo:
        match one:
            case ast.BinOp(left, ast.BitAnd(), right):
                todo += [left, right]
            case ast.BoolOp(ast.And(), parts):
                todo += parts
            case ast.Name(name) | ast.Subscript(ast.Name(name)) if isinstance(
                values.get(name), ast.BinOp | ast.BoolOp | ast.Compare
            ):
                todo.append(values[name])
            case ast.Constant(None | True):
                pass
            case _:
                found.append(one)
    return found


class _OneFlag(ast.NodeTransformer):
    """Puts `NO_TILE` for the flag of those that have returned."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(NO_TILE, node.ctx), node) if node.id == GONE else node


def _stores_here(place: ast.AST) -> ast.stmt:
    test = ast.copy_location(ast.Compare(ast.Name(GONE, ast.Load()), [ast.Eq()], [ast.Constant(0)]), place)
    found = ast.If(test, [assign(NO_TILE, ast.Constant(0), place)], [])
    return ast.copy_location(found, place)


def _is_note(stmt: ast.stmt) -> bool:
    """Whether a statement says that a workgroup stores here."""
    return isinstance(stmt, ast.If) and GONE in {one.id for one in ast.walk(stmt.test) if isinstance(one, ast.Name)}


def _has_note(stmt: ast.stmt) -> bool:
    return bool(stored(stmt) & {NO_TILE, GONE})


def _has_store(stmt: ast.stmt) -> bool:
    return NO_TILE in stored(stmt)


def _may_leave(notes: list[ast.stmt]) -> bool:
    """Whether a workgroup may return before the first place where it plainly stores."""
    for one in notes:
        if _is_note(one):
            return False
        if GONE in stored(one):
            return True
    return True
