"""The program-id prologue of a kernel or helper, read out of its file as a text of the language.

The file is parsed, never imported. The prologue is the backward slice, from the tile's coordinates to
``tl.program_id``, of the statements before the first memory access; functions that it calls, of this file or of one
that it imports, are put in place. A function that returns the tile (``remap_xcd(pid, ...)``) is its own prologue. A
kernel that loops over tiles is read with the tile's index in the id's place. What a workgroup without a tile does, an
early ``return``, is read beside it. Whatever else is needed is refused with its line.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from swizzle_sim.language.ir import COORDINATES, GRID_NAMES
from swizzle_sim.language.rules import FUNCTIONS, RANGES
from swizzle_sim.triton_source.answers import (
    CANONICAL,
    as_one_number,
    count_of,
    extents_of,
    handed_on,
    in_order,
    names_of_tile,
    own_counts,
    with_first_axis,
)
from swizzle_sim.triton_source.canonical import UNREAD, Canonical, canonical_functions
from swizzle_sim.triton_source.counts import in_grid_counts, two_quotients, without_counts_read, without_flags
from swizzle_sim.triton_source.definitions import (
    Definitions,
    Filled,
    assigned_once,
    constant_counts,
    exceeds,
    folded,
    is_arithmetic,
    reads_only,
    rounded_up,
)
from swizzle_sim.triton_source.effects import GONE, NO_TILE, OWN_ID, Effects, Facts, is_store
from swizzle_sim.triton_source.inlining import Inliner
from swizzle_sim.triton_source.loops import (
    LOOP,
    TileLoop,
    carried_by,
    loop_over_tiles,
    programs_assumed,
    unrolled,
)
from swizzle_sim.triton_source.mapped_text import MappedText, written_line
from swizzle_sim.triton_source.places import place_of
from swizzle_sim.triton_source.prologue_text import Premise, Prologue
from swizzle_sim.triton_source.slices import assign, loaded, own_statements, slice_of, stored, stored_outside_loops
from swizzle_sim.triton_source.source_file import (
    SourceFile,
    decided_names,
    defaults_of,
    is_integer,
    literal_axis,
    parameters_of,
    tuned_values,
)
from swizzle_sim.triton_source.tile_flow import TileFlow
from xcd_model.errors import LanguageError

_LATE = (
    "after the first memory access (line {line}); move what computes a tile into a function and check that, or enclose "
    "it between '# swizzle: begin' and '# swizzle: end'"
)
_IDS = ("tl.program_id", "tl.num_programs")
_OF_AN_ID = re.compile(r"(?:^|_)\w?(?:id|idx|index)$")  # parameter that is an id, where the first is none
_ARITHMETIC = (
    ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop, ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.IfExp, ast.Constant, ast.Attribute, ast.Assign, ast.AugAssign, ast.For, ast.If, ast.Tuple,
    ast.keyword, ast.Pass, ast.Expr,
)  # fmt: skip


class PrologueReader:
    """Reads the prologue of one function of a file."""

    def __init__(self, source: SourceFile, name: str, given: frozenset[str] = frozenset()):
        self.source, self.given, self.name = source, given, name
        functions = canonical_functions(source, name)
        self.function = without_flags(without_counts_read(functions[name]))
        self.returns = any(isinstance(one, ast.Return) and one.value for one in own_statements(self.function))
        self.reads_id = any(source.id_calls(one) for one in functions.values())
        self.parameters = tuple(one.arg for one in parameters_of(self.function) if one.arg != "self")
        self.inliner = Inliner(functions, source.filename, self.function)
        self.flow = TileFlow(self.function.body, source)
        self._stop = ""  # of a loop over tiles: how many there are
        self._loop = ""  # where it ends, in words
        self._place: list[ast.stmt] = []  # where it stores
        self.assumed: list[str] = []
        believed = {getattr(node, "believed", "") for one in functions.values() for node in ast.walk(one)}
        self.assumed += map(Premise, sorted(believed - {""}))
        self.strides: tuple[str, ...] = ()
        for one in functions.values():
            self.assumed += getattr(one, "assumed", ())
        if (construct := getattr(self.function, "unmodelled", None)) is not None:
            self.refuse(ast.Constant(0, lineno=construct[1], col_offset=0), f"{construct[0]!r} is not modelled")

    def prologue(self, wanted: tuple[str, ...], tiles: tuple[str, ...] = ()) -> Prologue:
        """Prologue with the names of the tile that are wanted, or the usual ones, and its coordinates' extents."""
        if self.returns:
            before, answers, spelled = self._of_function()
        else:
            before, answers = self._of_kernel(wanted)
            spelled = answers
        self._refuse_offsets(() if wanted else spelled)
        needed, _ = slice_of([*self._around(), *before], {*answers, NO_TILE})
        whole = _with_literal_axes(self.inliner.block(needed))
        wanted_last = {*answers} if tiles else {*answers, NO_TILE}
        body, _ = slice_of(whole, wanted_last)
        axes_read = {_axis(call) for stmt in body for call in self.source.id_calls(stmt)}
        if self.reads_id and len(axes_read) == 1 and axes_read != {0}:
            self.assumed.append(Premise(f"the tiles lie along axis {axes_read.pop()} of the launch"))
        body = with_first_axis(body) if self.reads_id else body
        body = slice_of(as_one_number(body, answers), wanted_last)[0] if len(answers) == 2 else body
        self._refuse_unread(body)
        axes = self._axes(body)
        if axes == 3 and len(answers) == 2 and not tiles:
            self.refuse(
                self.function,
                f"{' and '.join(spelled)} are two coordinates of a launch with three axes: say which names hold the "
                "whole tile, as answer=, and what each counts up to, as tiles=",
            )
        extents = tiles or self._extents(answers, spelled, axes, body)
        body = slice_of(body, set(answers))[0] if extents else body
        if tiles and len(tiles) != len(answers):
            self.refuse(
                self.function, f"tiles={','.join(tiles)}: {len(answers)} coordinates need {len(answers)} extents"
            )
        last = [*handed_on(answers, axes, extents), *_without_tile(body, len(answers), axes)]
        if len(extents) > 2:  # the grid has other counts under these names
            body, last = ([own_counts(stmt, extents) for stmt in part] for part in (body, last))
            extents = tuple(f"of_{side}" if side in GRID_NAMES else side for side in extents)
        launch = " * ".join(f"({side})" for side in extents) if extents else self._launch(spelled, axes, body)
        text = self._text([*self._constants(body), *body, *last], tuple(spelled))
        place = self._stored(is_flat=axes == 1 and not extents)
        fixed = constant_counts([*self._constants(body), *body])
        return Prologue(
            text,
            self.function.name,
            self.function.lineno,
            axes,
            launch,
            self.parameters,
            self._surplus(whole),
            extents,
            free=tuple(sorted(self._fields())),
            defaults=tuple(defaults_of(self.function)) if self.returns else (),
            takes_id=not self.reads_id,
            fixed=next(iter(fixed), ""),
            fixed_grid=self._fixed_grid(spelled, [*fixed.values()]) if axes == 1 and fixed else (),
            counted=self._counted(body, last, answers, spelled, launch) if axes == 1 and not extents else None,
            assumed=tuple(dict.fromkeys(self.assumed)),
            strides=self.strides,
            is_wide="int64" in ast.unparse(self.source.function(self.name)),
            unsure=self._recounted(body, answers, spelled),
            loop=self._loop,
            place=place,
        )

    def _stored(self, is_flat: bool) -> MappedText | None:
        """Text of where the kernel stores; None where it is none that can be read, or the grid is not flat."""
        with contextlib.suppress(LanguageError):  # a call in it may be none that can be put in place
            stored_at = self.inliner.block(_with_literal_axes(self._place))
            place = [*self._constants(stored_at), *stored_at]
            return self._text(place, ()) if stored_at and is_flat else None
        return None

    def _of_function(self) -> tuple[list[ast.stmt], list[str], list[str]]:
        """Statements of a function that returns its tile, the names that hold it, and those that it has in the file."""
        if self.reads_id and self.parameters[:1] == ("pid",):
            self.refuse(self.function, f"{self.function.name} takes pid and reads a program id, too: not modelled")
        before, every = self.inliner.returned(self.function)
        names = self._returned_names() or every
        # what is the same in all workgroups, such as a count returned beside the id, is no coordinate
        own = [k for k, name in enumerate(every) if self._differs(*slice_of(before, {name}))] or range(len(every))
        if {names[k] for k in own} in map(set, CANONICAL):  # ``return pid_n, pid_m``: each counts what its name says
            own = sorted(own, key=names.__getitem__)
        return before, [every[k] for k in own], [names[k] for k in own]

    def _counted(
        self, body: list[ast.stmt], last: list[ast.stmt], answers: list[str], spelled: Sequence[str], launch: str
    ) -> MappedText | None:
        """Text that reads no size of its launch, but the counts of tiles that they give."""
        found = slice_of(in_grid_counts(self.function, body, launch, self._fields()), {*answers, NO_TILE})[0]
        read = {name for stmt in found for name in loaded(stmt)}
        if not found or len(answers) != 2 or read & (loaded(ast.parse(launch)) - {"tl"}):
            return None
        return self._text([*self._constants(found), *found, *last], tuple(spelled))

    def _recounted(self, body: list[ast.stmt], answers: Sequence[str], spelled: Sequence[str]) -> str:
        """What to say where a kernel counts its tiles anew: it assigns a count, or has a stride of its own."""
        counts = {count_of(name, [*self.parameters, *GRID_NAMES]) for name in (*answers, *spelled)} | {"num_pids"}
        once = {name: one for name, one in assigned_once(self.function).items() if not rounded_up(one)}
        for one in (one for stmt in body for one in ast.walk(stmt) if isinstance(one, ast.Assign | ast.AugAssign)):
            changed = stored(one) & counts & {*self.parameters} - {ast.unparse(one.value)}
            if stored(one) & {*answers} and isinstance(one.value, ast.BinOp) and isinstance(one.value.op, ast.Mod):
                strides = {by for name in answers if name not in stored(one) for by in self.flow.strides(name)}
                changed |= strides & {ast.unparse(one.value.right)} & once.keys() - counts
            if changed:
                said = f"line {one.lineno}: {min(changed)} may count other tiles than those that were launched"
                return f"{said}: say what each coordinate counts up to, as tiles="
        return ""

    def _refuse_offsets(self, names: Sequence[str]) -> None:
        """Refuse a name of the first item of a tile: ``pid_m *= BLOCK``, where ``cdiv(M, BLOCK)`` counts tiles."""
        counted = [found for node in ast.walk(self.function) if (found := rounded_up(node)) is not None]
        items = {ast.unparse(by) for _, by in counted}
        for node in ast.walk(self.function):
            match node:
                case ast.AugAssign(ast.Name(name), ast.Mult(), by) | ast.Assign(
                    [ast.Name(name)], ast.BinOp(_, ast.Mult(), by)
                ) if name in names and ast.unparse(by) in items:
                    said = f"{name} is the first of {ast.unparse(by)} items: say which names hold the tile (answer=)"
                    self.refuse(node, said)

    def _refuse_unread(self, body: list[ast.stmt]) -> None:
        """Refuse a tile that depends on what has no counterpart in the language."""
        for node in (one for stmt in body for one in ast.walk(stmt)):
            match node:
                case ast.Call(ast.Name(name), [ast.Constant(str(text)), *_]) if name == UNREAD:
                    self.refuse(node, f"the tile depends on {text!r}, which is not read")

    def _surplus(self, whole: list[ast.stmt]) -> MappedText | None:
        """Whether a workgroup returns before it has a tile, as a text."""
        if not any(NO_TILE in stored(stmt) for stmt in whole):
            return None
        body, _ = slice_of(whole, {NO_TILE})
        return self._text([*self._constants(body), *body, *handed_on([NO_TILE], 1, ())], (NO_TILE,))

    def _differs(self, statements: list[ast.stmt], read: set[str]) -> bool:
        """Whether what a value is computed from includes an id, or a call of a function that may read one."""
        if not self.reads_id:
            first, ids = self.parameters[:1], [one for one in self.parameters if _OF_AN_ID.search(one)]
            return bool(read & {*COORDINATES, *(first if {*first} & {*ids} or not ids else ids)})
        called = read & self.inliner.functions.keys()
        return bool(called) or any(self.source.id_calls(stmt) for stmt in statements)

    def _extents(
        self, answers: Sequence[str], spelled: Sequence[str], axes: int, body: list[ast.stmt]
    ) -> tuple[str, ...]:
        """Extents of more coordinates than the launch has axes for."""
        if len(answers) in (1, axes, 2 if axes == 1 else axes):
            return ()
        found = extents_of(spelled, self.parameters, {name for stmt in body for name in stored(stmt)})
        if not found:
            self.refuse(
                self.function,
                f"{', '.join(spelled)}: {len(answers)} coordinates, and the launch's axes are {axes}: say what each "
                "counts up to, as tiles=",
            )
        return found

    def _fixed_grid(self, answers: Sequence[str], needed: Sequence[int]) -> tuple[int, ...]:
        """Tiles of the launch where the file's constants decide both counts, or the one count that there is."""
        fixed = constant_counts([*self._constants(self.function.body), *self.function.body])
        counts = [fixed[name] for one in answers if (name := count_of(one, fixed))]
        if len(answers) != 2 or len(counts) == 1 or (not counts and len(needed) != 1):
            return ()
        return tuple(counts or needed)

    def _returned_names(self) -> list[str]:
        """Names in the function's last ``return``, where it returns plain names."""
        parts = self._returned_values()
        plain = [one.id for one in parts if isinstance(one, ast.Name)]
        return plain if len(plain) == len(parts) else []

    def _returned_values(self) -> list[ast.expr]:
        """Values of the function's last ``return``."""
        values = [one.value for one in own_statements(self.function) if isinstance(one, ast.Return) and one.value]
        return values[-1].elts if isinstance(values[-1], ast.Tuple) else [values[-1]]

    def _lettered(self, answers: Sequence[str]) -> Sequence[str]:
        """Letter that each coordinate's name has, ``m_tile``; of returned values, that the names in it have."""
        unnamed = all(name.startswith("returned_") for name in answers)
        named = [loaded(one) for one in self._returned_values()] if unnamed else [{name} for name in answers]
        words = [{part for name in every for part in name.lower().split("_")} & {"m", "n"} for every in named]
        return ["".join(one) for one in words] if all(len(one) == 1 for one in words) else answers

    def _around(self) -> list[ast.stmt]:
        """Definitions of the function that encloses this one."""
        spelling = Canonical(self.source.aliases)
        own = {*self.parameters, *(name for stmt in self.function.body for name in stored(stmt)), *self.given}
        found: list[ast.stmt] = []
        outer = self.name.rpartition(".")[0]
        while outer in self.source.every_function:
            values = assigned_once(self.source.function(outer)).items()
            spelled = {name: spelling.visit(copy.deepcopy(value)) for name, value in values if name not in own}
            known = {name: value for name, value in spelled.items() if is_arithmetic(value)}
            found[:0] = [assign(name, value, value) for name, value in known.items()]
            own |= known.keys()
            outer = outer.rpartition(".")[0]
        return found

    def _axes(self, body: list[ast.stmt]) -> int:
        """Axes that the slice reads, or that the parameters of a function without program ids are named after."""
        if not self.reads_id:
            return 3 if {"pid_z", "z"} & set(self.parameters) else 2 if {"pid_y", "y"} & set(self.parameters) else 1
        return 1 + max([0, *(_axis(call) for stmt in body for call in self.source.id_calls(stmt))])

    def _launch(self, answers: Sequence[str], axes: int, body: list[ast.stmt]) -> str:
        """Launch grid in the kernel's sizes: ``num_pid_m`` and ``num_pid_n`` (x, y, z), or two quotients of sizes."""
        known = self._known()
        names = {*self.parameters, *known, *self._fields()}
        sides = {
            name: ast.unparse(Filled(known).visit(copy.deepcopy(value)))
            for name, value in assigned_once(self.function).items()
            if reads_only(value, names)
        }
        wanted = [count_of(name, sides) for name in answers]
        if not all(wanted) or len(wanted) < 2:
            counts = (self._counts_by_flow(answers) or two_quotients(self.function, body, self._fields())) * (axes == 1)
            self._refuse_more_tiles(counts, answers)
            return in_order(counts or self._stop, self._lettered(answers)) if axes == 1 else ""
        launch = (" * " if axes == 1 else ", ").join(f"({sides[name]})" for name in wanted)
        self._refuse_more_tiles(launch if axes == 1 else "", answers)
        return launch

    def _counts_by_flow(self, answers: Sequence[str]) -> str:
        """Product of the quotients that count what two coordinates run over, in parameters; empty without."""
        meaning = Definitions(self.function, self._fields())
        counts = [self.flow.count_of(name) for name in answers]
        sides = [meaning.in_parameters(ast.unparse(one)) for one in counts if one is not None]
        texts = [f"({ast.unparse(one)})" for one in sides if one is not None]
        return " * ".join(texts) if len({*texts}) == len(answers) == 2 else ""

    def _refuse_more_tiles(self, counts: str, answers: Sequence[str]) -> None:
        """Refuse a loop over more tiles than two coordinates count, such as those of every group."""
        if self._stop and counts and len(answers) == 2 and exceeds(self._stop, counts):
            self.refuse(
                self.function,
                f"the loop is over {self._stop} tiles, of which {' and '.join(answers)} count {counts}: say which "
                "names hold the whole tile, as answer=, and what each counts up to, as tiles=",
            )

    def _fields(self) -> set[str]:
        """Names that a method reads of its object, or a kernel in C of a record of arguments."""
        assigned = {name for stmt in self.function.body for name in stored(stmt)}
        read = {name for stmt in self.function.body for name in loaded(stmt)}
        return read - assigned - set(GRID_NAMES) - {"tl"}

    def _of_kernel(self, wanted: tuple[str, ...]) -> tuple[list[ast.stmt], list[str]]:
        """Statements before a kernel's tile is known, and the names of it."""
        inner = ast.FunctionDef, ast.ClassDef
        body = [
            stmt for stmt in self.function.body if not (isinstance(stmt, inner) or self.source.aliases.is_note(stmt))
        ]
        before, after = self._at_memory(body)
        answers = list(wanted) or names_of_tile(before, after, self.source)
        loop = None
        outside = {one for stmt in before for one in stored_outside_loops(stmt)}
        found_loop = loop_over_tiles(body, answers)
        if any(name not in outside for name in answers) or (found_loop is not None and found_loop.steps):
            loop = found_loop
            body = unrolled(loop) if loop is not None else body
            before, after = self._at_memory(body)
            meaning = Definitions(self.function).in_parameters(ast.unparse(loop.stop)) if loop else None
            self._stop = ast.unparse(Filled(self._known()).visit(copy.deepcopy(meaning))) if meaning is not None else ""
            answers = list(wanted) or names_of_tile(before, after, self.source)
        if not answers:
            self.refuse(
                self.function,
                f"{self.function.name} assigns neither pid, nor pid_m and pid_n, nor pid_x and pid_y: say which names "
                f"hold the tile, such as answer={','.join(self.flow.coordinates()) or 'tile_m,tile_n'}",
            )
        before, after = self._past_memory(before, after, answers)
        for name in answers:
            late = next((stmt for stmt in after if name in stored(stmt)), None)
            if late:
                self.refuse(late, f"{name!r} is assigned {_LATE.format(line=after[0].lineno)}")
            if not any(name in stored(stmt) for stmt in before):
                self.refuse(self.function, f"{name!r} is not assigned before the first memory access")
        self._refuse_twice(answers)
        before = self._with_stores(before, after, answers, loop)
        found = slice_of(before, set(answers))[0]
        if not wanted and len(answers) == 1 and found and self._hands_on(found):
            self.refuse(
                found[0],
                f"{answers[0]} is the program id as it came: say which names hold the tile, if others do (answer=)",
            )
        return before, answers

    def _hands_on(self, body: list[ast.stmt]) -> bool:
        """Whether statements give an id another name, and that is all."""
        values = [stmt.value if isinstance(stmt, ast.Assign) else stmt for stmt in body]
        plain = [isinstance(one, ast.Name) or self.source.is_id(one) for one in values]
        return all(plain) and not all(isinstance(one, ast.Name) for one in values)

    def _past_memory(
        self, before: list[ast.stmt], after: list[ast.stmt], answers: list[str]
    ) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Statements up to the tile, where it depends on nothing that those between read from memory."""
        end = max((k for k, stmt in enumerate(after, 1) if stored(stmt) & {*answers}), default=0)
        needed = slice_of([*before, *after[:end]], {*answers})[0]
        loops = [one for one in after[:end] if isinstance(one, ast.For | ast.While) and stored(one) & {*answers}]
        if not end or any(self.source.touches_memory(stmt) for stmt in (*needed, *loops)):
            return before, after
        return [*before, *after[:end]], after[end:]

    def _at_memory(self, body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Statements before the first memory access, and from there."""
        end = next((k for k, stmt in enumerate(body) if self.source.touches_memory(stmt)), len(body))
        return [stmt for stmt in body[:end] if not self.source.aliases.is_note(stmt)], body[end:]

    def _refuse_twice(self, answers: Sequence[str]) -> None:
        """Refuse a name of the tile under which the function has two variables."""
        names = {name for stmt in self.function.body for name in stored(stmt)}
        for name in answers if self.source.in_c else ():
            if any(one.rpartition("_")[0] == name and one.rpartition("_")[2].isdigit() for one in names):
                self.refuse(self.function, f"{name!r} is declared twice: say which names hold the tile (answer=)")

    def _with_stores(
        self, before: list[ast.stmt], after: list[ast.stmt], answers: list[str], loop: TileLoop | None
    ) -> list[ast.stmt]:
        """Statements with notes of the workgroups that store no tile, and what is supposed of the rest."""
        body = [*before, *after]
        once = assigned_once(self.function)
        facts = Facts(
            lambda test: not carried_by(loop, test) and self._is_readable(test, body, answers),
            lambda name, by, size: self._is_inside(name, by, size, once),
            lambda name: self._count(name, answers, once),
            _one_value(self.function),
            self.parameters,
        )
        effects = Effects(body, answers, self.source, facts)
        said = "the tile that is computed is the one that is stored"
        self.assumed += [Premise(said)] * effects.is_unfollowed + [said] * effects.is_unseen
        own = sorted(one for one in effects.arrived if one.startswith(OWN_ID))
        if len(answers) == 2 and len(self._axes_read(body, answers)) > 1 and own:
            axis = own[-1].removeprefix(OWN_ID)
            said = (
                f"{' and '.join(answers)} are made of several axes, and program_id({axis}) reaches a store beside them"
            )
            self.refuse(
                self.function, f"{said}: say which names hold the whole tile, as answer=, and its extents, as tiles="
            )
        place = ast.Constant(0, lineno=0, col_offset=0)
        found = effects.noted(body)
        if not any(NO_TILE in stored(stmt) for stmt in found):
            found = [*found, assign(NO_TILE, ast.Constant(0), place)] if loop is not None else found
        if loop is not None:
            programs = programs_assumed(loop, self.parameters, answers, self.refuse)
            self._refuse_programs(loop, found, answers, programs)
            self._refuse_other_stores(loop)
            self.assumed += [f"line {one.lineno} stores each tile once" for one in loop.steps if effects.stores(one)]
            if programs:
                self.assumed.append(f"{programs} programs are launched")
            carried = effects.carried(loop.stmt.body) - {loop.number}
            if carried:
                said = f"{', '.join(sorted(carried))}, which the loop of line {loop.stmt.lineno} changes,"
                self.assumed.append(f"{said} moves no store off its tile")
            if (end := effects.left_after(body)[0]) is not None:
                self.refuse(end, f"the loop of line {loop.stmt.lineno} may end before its last tile", LOOP)
            if self._is_readable(loop.stop, body, answers):
                test = ast.Compare(loop.stop, [ast.NotEq()], [ast.Name("num_pids", ast.Load())])
                other = assign(NO_TILE, ast.UnaryOp(ast.USub(), ast.Constant(1)), loop.stmt)
                found.append(ast.copy_location(ast.If(test, [other], []), loop.stmt))
                self._loop = f"the loop of line {loop.stmt.lineno} ends at {ast.unparse(loop.stop)}"
            else:
                self.assumed.append(f"{ast.unparse(loop.stop)} counts the tiles (line {loop.stmt.lineno})")
        lines = sorted(set(effects.assumed))
        if lines:
            self.assumed.append(f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))} "
                                f"leave{'s' * (len(lines) == 1)} no workgroup out")  # fmt: skip
        self.strides = tuple(sorted(effects.strides)) if not effects.changed else ()
        if effects.changed:
            self._place = place_of(self._around(), body, effects)
            self.assumed.append(f"what is stored to after line {effects.changed} is as distinct as the tile")
        given = [assign(name, ast.UnaryOp(ast.USub(), ast.Constant(1)), place) for name in answers
                 if name not in self.parameters]  # fmt: skip
        return [*given, *found]

    def _axes_read(self, body: list[ast.stmt], answers: Sequence[str]) -> set[int]:
        """Axes whose ids any of the coordinates is made of together with others."""
        each = [{_axis(call) for stmt in slice_of(body, {name})[0] for call in self.source.id_calls(stmt)}
                for name in answers]  # fmt: skip
        return max(each, key=len, default=set())

    def _refuse_programs(self, loop: TileLoop, noted: list[ast.stmt], answers: Sequence[str], programs: str) -> None:
        """Refuse a loop whose end, tile or stores depend on how many programs there are, or on which beside its index.

        It is read for as many programs as tiles, of which each makes one trip.
        """
        begun = {id(one) for one in (*loop.before, loop.start, loop.step)}  # how the index begins, and goes on
        rest = [stmt for stmt in noted if stored(stmt) != {loop.number} or not begun & {*map(id, ast.walk(stmt))}]
        inside = [stmt for stmt in rest if stmt.lineno >= loop.stmt.lineno]
        stop = assign(loop.number, loop.stop, loop.stmt)
        of_all = slice_of([*rest, stop], {loop.number, NO_TILE})[0]
        of_trips, given = slice_of(inside, {*answers, NO_TILE})
        given -= {loop.number, GONE}
        of_ids = {one for one in given if any(self._reads(stmt, _IDS) for stmt in slice_of(loop.before, {one})[0])}
        if of_ids or any(self._reads(stmt, (*_IDS, programs)) for stmt in of_trips):
            what = ", ".join(sorted(of_ids)) or "the program's id, or their number"
            self.refuse(loop.stmt, f"the tile, or its store, depends on {what}, beside the index of the loop", LOOP)
        if any(self._reads(stmt, (*_IDS[1:], programs)) for stmt in of_all):
            self.refuse(loop.stmt, "where the loop ends, or what is stored, depends on the number of programs", LOOP)

    def _reads(self, node: ast.AST, words: Sequence[str], seen: frozenset[str] = frozenset()) -> bool:
        """Whether a statement, or a function that it calls, has a name, or calls a function, of these words."""
        functions, unused = self.inliner.functions, set()
        calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
        for call in calls:  # the tutorials' ``_compute_pid`` takes NUM_SMS, and leaves it
            own = functions.get(ast.unparse(call.func))
            read = {name for stmt in own.body for name in loaded(stmt)} if own is not None else set()
            named = zip(parameters_of(own), call.args, strict=False) if own is not None else ()
            unused |= {id(value) for one, value in named if one.arg not in read}
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and id(one) not in unused}
        if names & {*words} or any(ast.unparse(one.func) in words for one in calls):
            return True
        return any(self._reads(functions[one], words, seen | {one}) for one in names & functions.keys() - seen)

    def _refuse_other_stores(self, loop: TileLoop) -> None:
        """Refuse a kernel that stores outside of its loop over tiles."""
        for stmt in self.function.body:
            if stmt.lineno != loop.stmt.lineno and any(map(is_store, ast.walk(stmt))):
                self.refuse(stmt, f"it stores outside of the loop of line {loop.stmt.lineno}, too", LOOP)

    def _is_inside(self, name: str, by: ast.expr, size: ast.expr, once: Mapping[str, ast.expr]) -> bool:
        """Whether a coordinate counts up to the quotient of a size by what it is multiplied by."""
        known = once.get(count_of(name, once))
        parts = rounded_up(known) if known is not None else None
        count = self.flow.count_of(name) if parts is None else None
        parts = rounded_up(count) if count is not None else parts
        meaning = Definitions(self.function, self._fields())
        texts = [tuple(one and ast.unparse(one) for one in (meaning.in_parameters(ast.unparse(part)) for part in pair))
                 for pair in (parts or (), (size, by))]  # fmt: skip
        return texts[0] == texts[1] and None not in texts[0]

    def _count(self, name: str, answers: Sequence[str], once: Mapping[str, ast.expr]) -> ast.expr | None:
        """How many values a coordinate has: by its name, by where it flows, or by its place among two."""
        known = [*once, *self.parameters, *GRID_NAMES]
        place = dict(zip(answers, CANONICAL[0], strict=False)).get(name, name) if len(answers) == 2 else name
        of_name, of_place = count_of(name, known), count_of(place, known)
        named = once.get(of_name) or self.flow.count_of(name) or once.get(of_place)
        return named or (ast.Name(of_name or of_place, ast.Load()) if of_name or of_place else None)

    def _is_readable(self, test: ast.expr, body: list[ast.stmt], answers: Sequence[str]) -> bool:
        """Whether an expression is arithmetic of what the tile is computed from, the grid, and constants."""
        around = self._around()
        read = slice_of([*around, *body], set(answers))[1] | self._sized(answers)
        known = {*read, *GRID_NAMES, *self._known(), "tl"}
        values: dict[str, list[ast.AST]] = {}
        for stmt in [*around, *body]:
            for one in ast.walk(stmt):
                if isinstance(one, ast.Assign | ast.AugAssign | ast.For):
                    for name in stored(one):
                        values.setdefault(name, []).extend(slice_of([one], {name})[0])
        seen: set[str] = set()
        todo: list[ast.AST] = [test]
        for one in todo:
            for node in ast.walk(one):
                if isinstance(node, ast.Call):
                    name = ast.unparse(node.func)
                    if name not in (*FUNCTIONS, *RANGES, "divmod") and name not in self.inliner.functions:
                        return False
                elif not isinstance(node, _ARITHMETIC):
                    return False
                elif isinstance(node, ast.Name) and node.id not in seen and isinstance(node.ctx, ast.Load):
                    seen.add(node.id)
                    if node.id in values:
                        todo += values[node.id]
                    elif node.id not in known and node.id not in FUNCTIONS and node.id not in self.inliner.functions:
                        return False
        return True

    def _sized(self, answers: Sequence[str]) -> set[str]:
        """Sizes that counts of tiles are made of."""
        once = assigned_once(self.function)
        counts = [self._count(name, answers, once) for name in answers]
        return {name for one in counts for name in slice_of(self.function.body, loaded(one))[1]}

    def _constants(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Assignments for the module's constants and the function's defaults that the slice reads."""
        read, known = {name for stmt in body for name in loaded(stmt)}, self._known()
        return [assign(name, known[name], known[name]) for name in sorted(read & known.keys())]

    def _known(self) -> dict[str, ast.expr]:
        """Integers that the file gives names to, where the caller does not."""
        spelling = Canonical(self.source.aliases)
        values = {name: spelling.visit(copy.deepcopy(value)) for name, value in self.source.constants.items()}
        constants = {name: folded(value, values) for name, value in values.items() if name not in self.parameters}
        # A default number of XCDs is one of those to try; a constant of the file is what the kernel runs with.
        decided = decided_names(self.function)
        defaults = {
            name: value
            for name, value in {**defaults_of(self.function), **tuned_values(self.function)}.items()
            if name not in GRID_NAMES and name not in decided
        }
        return {
            name: value
            for name, value in {**constants, **defaults}.items()
            if name not in self.given and is_integer(value)
        }

    def _text(self, body: list[ast.stmt], answers: tuple[str, ...]) -> MappedText:
        written: list[tuple[str, int]] = []
        for stmt in body:
            written_line(stmt, 0, written)
        name = f"{Path(self.source.filename).name}::{self.function.name}"
        text = "".join(f"{line}\n" for line, _ in written)
        lines = tuple(line for _, line in written)
        return MappedText(text, name, self.source.filename, lines, self.source.lines, answers)

    def refuse(self, node: ast.AST, message: str, code: str = "node") -> NoReturn:
        """Raise a `LanguageError` that shows the line of a node."""
        raise self.source.error(node, message, code)


def _one_value(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Value of each name that plain assignments anywhere in a function, and nothing else, give it: all the same."""
    found: dict[str, list[ast.expr]] = {}
    others = {one.arg for one in parameters_of(function)}
    for one in ast.walk(function):
        match one:
            case ast.Assign([ast.Name(name)], ast.Name(again)) if again == name:
                pass  # of a hint
            case ast.Assign([ast.Name(name)], value):
                found.setdefault(name, []).append(value)
            case ast.Assign() | ast.AugAssign() | ast.For():
                others |= stored(one.target if isinstance(one, ast.AugAssign | ast.For) else one)
    return {name: values[0] for name, values in found.items()
            if name not in others and len({ast.unparse(one) for one in values}) == 1}  # fmt: skip


def _without_tile(body: list[ast.stmt], count: int, axes: int) -> list[ast.stmt]:
    """Last statements, by which the result of a workgroup that stores nothing is outside of the grid."""
    if not any(NO_TILE in stored(stmt) for stmt in body):
        return []
    place = ast.Constant(0, lineno=0, col_offset=0)
    first = "pid" if count == 1 else "pid_m" if axes == 1 else "pid_x"
    test = ast.Compare(ast.Name(NO_TILE, ast.Load()), [ast.NotEq()], [ast.Constant(0)])
    return [
        ast.copy_location(ast.If(test, [assign(first, ast.UnaryOp(ast.USub(), ast.Constant(1)), place)], []), place)
    ]


def _with_literal_axes(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements in which ``program_id(axis)`` of a helper has the number that the helper was called with."""
    stores = [name for stmt in body for name in stored(stmt)]
    numbers: dict[str, ast.expr] = {}
    for stmt in body:
        match stmt:
            case ast.Assign([ast.Name(name)], ast.Constant(int()) as value) if stores.count(name) == 1:
                numbers[name] = value
    for node in (node for stmt in body for node in ast.walk(stmt) if isinstance(node, ast.Call)):
        if ast.unparse(node.func) in ("tl.program_id", "tl.num_programs"):
            node.args = [numbers.get(one.id, one) if isinstance(one, ast.Name) else one for one in node.args]
    return body


def _axis(call: ast.Call) -> int:
    """Axis of a call of ``tl.program_id``, 0 where it is no literal: the language refuses that by itself."""
    return literal_axis(call) or 0
