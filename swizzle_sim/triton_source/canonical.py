"""Functions in the spelling of the closed language: ``tl.name``, without integer casts and hints, builders resolved."""

from __future__ import annotations

import ast
import copy
import re
from pathlib import Path
from typing import Any

from swizzle_sim.language.rules import RESERVED
from swizzle_sim.triton_source.aliases import LANGUAGES, Aliases, top_level
from swizzle_sim.triton_source.bindings import ANYTHING, IMPORTS, bound, changed_inside, local_names
from swizzle_sim.triton_source.builders import as_expression
from swizzle_sim.triton_source.definitions import rounded_up
from swizzle_sim.triton_source.imports import Imports
from swizzle_sim.triton_source.prologue_text import Premise
from swizzle_sim.triton_source.slices import assign, loaded
from swizzle_sim.triton_source.source_file import SourceFile, is_integer, parameters_of
from swizzle_sim.triton_source.wrapped import TUNERS
from xcd_model.errors import LanguageError

CEIL = re.compile(
    r"^(ceil_?div|div_?up|cdiv|ceil_div_(constexpr|up|u?int\w*)|div_round_up|divup|integer_divide_ceil)$", re.IGNORECASE
)
_HINTS = ("multiple_of", "max_contiguous", "max_constancy")
_INTEGERS = ("int32", "int64")  # narrower ones wrap, unsigned ones too
_NARROW = re.compile(r"\b(u?int(1|8|16)|uint\d+|[iu](1|8|16)|u32|u64|bool|half|float\w*)\b")
_BUILDERS = ("triton", "flydsl", "mlir", "tilelang", "math", "builtins")  # whose min and cdiv are these
# Decorators that leave what a function computes as it is.
_DECORATORS = {
    "jit", "autotune", "heuristics", "staticmethod", "classmethod", "cache", "lru_cache", "constexpr_function",
    "libentry", "libtuner", "triton_autotune", "kernel", "prim_func", "macro", "traceable", "inline_always",
}  # fmt: skip
_ODD = tuple(vars(ast)[name] for name in ("Match", "Try", "TryStar", "AsyncFor", "AsyncWith", "Delete")
             if name in vars(ast))  # statements that are not modelled  # fmt: skip
_OF_ANOTHER = ("type", "dtype")  # ``x.type``: an integer's, as everything that a tile is computed from is an integer
UNREAD = "unread"  # the call that stands for what C has and Python has not, see `c_expressions`
OWN = "own_"  # before the name of a field that a name of its function hides
# tl.swizzle2d as Triton's documentation defines it: groups of size_g rows, a group column by column.
_BUILTIN = """
def swizzle2d(i, j, size_i, size_j, size_g):
    linear = i * size_j + j
    group = linear // (size_g * size_j)
    first = group * size_g
    rows = min(size_i - first, size_g)
    within = linear % (size_g * size_j)
    return first + within % rows, within // rows
"""


def canonical_functions(source: SourceFile, root: str) -> dict[str, ast.FunctionDef]:
    """Copies in canonical spelling of the functions that one function may call, however deep, and of itself.

    Functions of the file go by their own name; those of files that it imports, by the name that the call has. The lines
    of these are 0, as they are no lines of this file.
    """
    builtin = ast.parse(_BUILTIN).body[0]
    assert isinstance(builtin, ast.FunctionDef)
    found = {"swizzle2d": builtin}
    _add(root, source.function(root), source, found, foreign=False)
    return found


def _add(
    key: str, function: ast.FunctionDef, source: SourceFile, found: dict[str, ast.FunctionDef], *, foreign: bool
) -> None:
    """Add one function and what it calls."""
    _refuse_odd(function, source)
    spelling = Canonical(
        source.aliases, own=key.rpartition(".")[0], taken=_own_values(function), function=function, source=source
    )
    copied = found[key] = copy.copy(function)
    body = [copy.deepcopy(stmt) for stmt in function.body]
    if not source.in_c:
        doubts = Doubts(function, source)
        body = doubts.visit(ast.Module(body, [])).body
        copied.assumed = [*map(Premise, sorted(doubts.supposed))]  # type: ignore[attr-defined]
    copied.body = [spelling.visit(stmt) for stmt in body]
    if foreign:
        copied.is_of_header = source.in_c  # type: ignore[attr-defined]
        _fill_constants(copied, source)
    for call in [node for stmt in copied.body for node in ast.walk(stmt) if isinstance(node, ast.Call)]:
        name = _called(call)
        if name and name != key and not name.startswith(("tl.", "triton.")) and not getattr(call, "is_builtin", False):
            try:
                _add_called(call, name, function, source, found, foreign=foreign)
            except LanguageError as error:  # refused where a tile needs it
                call.func = ast.copy_location(ast.Name(f"refused_{len(found)}", ast.Load()), call)
                refused = found[call.func.id] = ast.FunctionDef(name, function.args, [ast.Pass()], [])
                refused.refusal = error  # type: ignore[attr-defined]


class Doubts(ast.NodeTransformer):
    """Puts `UNREAD` for names of a function of Python that may mean something else than they seem to."""

    def __init__(self, function: ast.FunctionDef, source: SourceFile):
        self.source, self.local, self.changed = source, local_names(function), changed_inside(function)
        self.supposed: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name that is changed from inside another function, or bound more than once."""
        self._refuse_own_id(node, node.id)
        why = f"{node.id}, which a function inside changes," if node.id in self.changed else self._doubt(node.id)
        return _unread(why, node) if why and isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A name of a module in which something is changed, or that is no module of Triton's."""
        whole = ast.unparse(node)
        root = whole.partition(".")[0]
        self._refuse_own_id(node, whole)
        if root in ("tl", "triton"):
            given = self.source.aliases.names.get(root, "").partition(".")[0] != "triton" and [
                one for one in self.source.bindings.get(root, ()) if not IMPORTS.match(one)
            ]
            why = f"{root}, which is no module here," if root in self.local or given else ""
            why = why or self.source.doubt(whole) or self._of_another(root, whole)
            if why:
                raise self.source.error(node, f"{why} is not modelled")
        elif root not in self.local and (why := self.source.doubt(whole)):
            return _unread(why, node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call of what a function itself defines, or takes."""
        if isinstance(node.func, ast.Name) and node.func.id in self.local:
            node.func = _unread(f"{node.func.id}, which the function itself binds,", node.func)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Functions inside are read where they are called: nowhere."""
        return node

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> Any:
        """An import that gives a name of the function another meaning."""
        names = {one.asname or one.name.partition(".")[0] for one in node.names} & self.local
        return [assign(name, _unread(f"{name}, which is imported here,", node), node) for name in sorted(names)] or node

    visit_ImportFrom = visit_Import
    visit_ClassDef = visit_Lambda = visit_FunctionDef  # type: ignore[assignment]

    def _refuse_own_id(self, node: ast.expr, whole: str) -> None:
        """Refuse what goes by a name of Triton's and is a function of the user's tree."""
        if self.source.aliases.language_name(node) and not whole.startswith(("tl.", "triton.")):
            home = Imports.of(self.source).resolve(whole)
            if home is not None:
                raise self.source.error(node, f"{whole} of {home[0].stem} is not modelled")

    def _doubt(self, name: str) -> str:
        if name in self.local:
            return ""
        said = self.source.bindings.get(name, ())
        if _comes_twice(self.source, name):
            return f"{name}, which another file binds, too,"
        value = self.source.constants.get(name)
        known = (
            (value is not None and not any(map(self.source.doubt, loaded(value))))
            or name in self.source.named
            or any(map(IMPORTS.match, said))
        )
        return self.source.doubt(name) or ("" if known or not said else f"{name}, which is bound otherwise,")

    def _of_another(self, name: str, whole: str) -> str:
        """Why ``tl``, which a file imports from another of its own tree, is not Triton's."""
        home = Imports.of(self.source).file_of(name)
        if home is None:
            return ""
        said = home.bindings.get(name, [f"from {home.stem} import {name}"])
        plain = len(said) == 1 and IMPORTS.match(said[0])
        if whole in home.bindings or ANYTHING in home.bindings:
            return f"{whole}, which {home.stem} changes,"
        if not plain and _stands_with_triton(home, name):
            self.supposed.add(f"{name} of {Path(home.filename).parent.name} is Triton's")
            return ""
        return "" if plain else f"{name} of {home.stem}, which is no module there,"

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A statement that is not modelled gives the names that it binds no value; none may return, or call, in it."""
        odd = isinstance(node, _ODD)
        if not odd and not (isinstance(node, ast.For | ast.While) and node.orelse):
            return super().generic_visit(node)
        what = f"{type(node).__name__.lower()}{' with else' if getattr(node, 'orelse', None) else ''}"
        for one in ast.walk(node):
            if isinstance(one, ast.Return | ast.Continue | ast.Break | ast.Raise | ast.Expr):
                raise self.source.error(node, f"{what!r} is not modelled")
        place = ast.parse("if 0:\n    pass").body[0]
        names = sorted({name for name, _ in bound([node])})  # type: ignore[list-item]
        assert isinstance(place, ast.If)
        place.body = [assign(name, _unread(what, node), node) for name in names] or place.body
        place.test = _unread(what, node)
        return ast.fix_missing_locations(ast.copy_location(place, node))


def _stands_with_triton(home: SourceFile, name: str) -> bool:
    """Whether a file imports a name of Triton's, and Triton, in one branch of an ``if``, and stands in for both else.

    Where the stand-ins are taken, what their ``jit`` makes is no kernel of Triton's.
    """
    for one in (one for one in home.tree.body if isinstance(one, ast.If)):
        meant, branches = (
            Aliases(ast.Module(one.body, [])).names,
            [dict(bound(part)) for part in (one.body, one.orelse)],
        )
        if meant.get("triton") == "triton" and meant.get(name) in ("triton", *LANGUAGES):
            return all(home.bindings[each] == [part.get(each) for part in branches] for each in ("triton", name))
    return False


def _unread(why: str, node: ast.AST) -> ast.expr:
    found = ast.Call(ast.Name(UNREAD, ast.Load()), [ast.Constant(why)], [])
    return ast.fix_missing_locations(ast.copy_location(found, node))


def _add_called(
    call: ast.Call,
    name: str,
    function: ast.FunctionDef,
    source: SourceFile,
    found: dict[str, ast.FunctionDef],
    *,
    foreign: bool,
) -> None:
    """Add the function that a call names."""
    home = Imports.of(source).resolve(name)
    if home is None:
        module = source.aliases.names.get(name, "").partition(".")[0]
        if name == "swizzle2d":
            raise source.error(call, "swizzle2d is not tl.swizzle2d here, and not found: not modelled")
        meant = source.aliases.names.get(name, name).rpartition(".")[2]
        if name in RESERVED and name in _bound(source, function) and (module not in _BUILDERS or meant != name):
            raise source.error(call, f"{name} is no builtin here: the file gives the name another meaning")
        if source.in_c and CEIL.match(name):  # of a header that is not here: by its name
            call.func = ast.copy_location(ast.Name("cdiv", ast.Load()), call)
            call.believed = f"{name} rounds a quotient up"  # type: ignore[attr-defined]
        return
    other, its_name = home
    own = other is source
    is_one = not getattr(other.function(its_name), "is_one_of_several", False)
    if source.in_c and CEIL.match(name) and is_one and _rounds_up(other.function(its_name)):  # of any types
        call.func = ast.copy_location(ast.Name("cdiv", ast.Load()), call)
        return
    _refuse_several(call, other, its_name, source)
    known = name if own and not foreign else f"{other.stem}.{its_name}" if foreign else name
    if known in (*RESERVED, "swizzle2d"):  # the file's own function, not the language's
        known = f"own_{known}"
    if not isinstance(call.func, ast.Name) or known != name:
        call.func = ast.copy_location(ast.Name(known, ast.Load()), call)
    if known not in found:
        _add(known, other.function(its_name), other, found, foreign=foreign or not own)


def _rounds_up(function: ast.FunctionDef) -> bool:
    """Whether a function of a template's types returns its first parameter by its second, rounded up."""
    names = [one.arg for one in function.args.args]
    match function.body:
        case [ast.Return(ast.expr() as value)] if len(names) == 2:
            said = re.sub(rf"{UNREAD}\('(\w+)'\)", r"\1", ast.unparse(value))
            said = re.sub(rf"{UNREAD}\('(?:\w+::)*[Nn]umber<1>{{}}'\)", "1", said)
            parts = rounded_up(ast.parse(said, mode="eval").body)
            return parts is not None and [ast.unparse(one) for one in parts] == names
    return False


def _refuse_odd(function: ast.FunctionDef, source: SourceFile) -> None:
    """Refuse a function under a decorator that may make another of it, and one with a narrow parameter."""
    for one in function.decorator_list:
        made = one.func if isinstance(one, ast.Call) else one
        last = source.aliases.dotted(made).rpartition(".")[2]
        is_jit = source.aliases.jit_decorator(ast.FunctionDef(function.name, function.args, [], [one])) is not None
        root = next((node.id for node in ast.walk(made) if isinstance(node, ast.Name)), "")
        is_own = (
            not source.aliases.dotted(made).startswith("triton.")
            and any(not IMPORTS.match(said) for said in source.bindings.get(root, ()))
        ) or source.doubt(root)
        home = Imports.of(source).resolve(_called(ast.Call(made, [], []))) if last not in TUNERS else None
        if is_own or home is not None or (not is_jit and last not in _DECORATORS):
            raise source.error(one, f"@{ast.unparse(made)} may make another function of {function.name}: not modelled")
    for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        said = ast.unparse(parameter.annotation) if parameter.annotation is not None else ""
        if "*" not in said and _NARROW.search(said) and not re.search(r"bool|float|half", said):
            raise source.error(parameter, f"{parameter.arg}: {said} is narrow or unsigned: not modelled")


def _refuse_several(call: ast.Call, other: SourceFile, name: str, source: SourceFile) -> None:
    """Refuse a call of a name that its file gives to several functions."""
    function = other.function(name)
    if getattr(function, "is_one_of_several", False) or other.doubt(name) or _comes_twice(other, name):
        raise source.error(call, f"{name}, of which there are several, is called: not modelled")
    if (construct := getattr(function, "unmodelled", None)) is not None:
        raise source.error(call, f"{name} is called, whose line {construct[1]}, {construct[0]!r}, is not modelled")


def _comes_twice(source: SourceFile, name: str) -> bool:
    """Whether a name that a file binds comes from another of which it takes every name, too."""
    said = source.bindings.get(name)
    return said is not None and any(one.bindings.get(name, said) != said for one in Imports.of(source).star_files)


def _bound(source: SourceFile, function: ast.FunctionDef) -> set[str]:
    """Names that a file or a function of it binds."""
    if not source.in_c:
        return {*source.bindings, *local_names(function)}
    names = {one.arg for one in parameters_of(function)} | {name for name, _ in bound([*top_level(source.tree.body)])}
    return names | {name for name, _ in bound(function.body)}


def _own_values(function: ast.FunctionDef) -> frozenset[str]:
    """Names that a function assigns, but those that it only takes out of a record: ``size = self.size``."""
    found = set()
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Name(name)], ast.Attribute(attr=field)) if field == name:
                continue
            case ast.Assign(targets):
                found |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
            case ast.AugAssign(ast.Name(name)) | ast.AnnAssign(ast.Name(name)):
                found.add(name)
    return frozenset(found)


def _fill_constants(function: ast.FunctionDef, source: SourceFile) -> None:
    """Put the integers of a file's constants into a function that leaves the file, and take its lines away."""
    constants = {name: value for name, value in source.constants.items() if is_integer(value)}
    for stmt in function.body:
        for node in ast.walk(stmt):
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.Name) and isinstance(value.ctx, ast.Load) and value.id in constants:
                    setattr(node, field, constants[value.id])
            if hasattr(node, "lineno"):
                node.lineno = 0


def _called(call: ast.Call) -> str:
    """Dotted name of a called function as it is written."""
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


class Canonical(ast.NodeTransformer):
    """Respells a tree in place."""

    def __init__(
        self,
        aliases: Aliases,
        own: str = "",
        taken: frozenset[str] = frozenset(),
        function: ast.FunctionDef | None = None,
        source: SourceFile | None = None,
    ):
        self.source = source
        self.aliases, self.own, self.taken, self.function = aliases, own, taken, function

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Leave out casts between integers and hints; spell the rest as the language does."""
        called = self.aliases.language_name(node.func)
        if called in _HINTS or (called == "cast" and self._is_integer(node.args[1:2], node.keywords)):
            return self.visit(node.args[0]) if node.args else node
        if called == "constexpr" and len(node.args) == 1:
            return self.visit(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and self._is_integer(node.args[:1], []):
            return self.visit(node.func.value)
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self":
            node.func = ast.copy_location(ast.Name(f"{self.own}.{node.func.attr}", ast.Load()), node)
            node.args = [self.visit(one) for one in node.args]
            return node
        own = self.source is not None and Imports.of(self.source).resolve(_called(node)) is not None
        built = as_expression(node, self.aliases) if not own else None
        if built is not None:
            return self.visit(built)
        stores = isinstance(node.func, ast.Attribute) and node.func.attr == "store" and not called
        descriptor = node.func if stores and not (self.source is not None and self.source.in_c) else None
        self.generic_visit(node)
        node.func = descriptor or node.func  # what is stored to
        if called == "swizzle2d":  # put in place as the file's own functions are
            node.func = ast.copy_location(ast.Name(called, ast.Load()), node)
        if called:
            node.is_builtin = True  # type: ignore[attr-defined]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Spell whatever is of the language's module as ``tl.name``; a field of a record by its own name."""
        built = as_expression(node, self.aliases)
        known = built or self._respelled(node, node.ctx)
        if known is None and isinstance(node.ctx, ast.Load) and self._is_record(node.value):
            name = f"{OWN}{node.attr}" if node.attr in self.taken else node.attr
            return ast.copy_location(ast.Name(name, node.ctx), node)
        return known or self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Refuse arithmetic of two truths, which are of one bit in Triton."""
        bits = isinstance(node.op, ast.Add | ast.Sub | ast.LShift | ast.FloorDiv | ast.Mod)
        if (
            bits
            and self.source is not None
            and not self.source.in_c
            and all(map(self._is_truth, (node.left, node.right)))
        ):
            raise self.source.error(node, f"{ast.unparse(node)} is of one bit, as both sides are truths: not modelled")
        return self.generic_visit(node)

    def _is_truth(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name) and self.function is not None:
            values = [one.value for one in ast.walk(self.function) if isinstance(one, ast.Assign)
                      and any(isinstance(part, ast.Name) and part.id == node.id for part in one.targets)]  # fmt: skip
            return bool(values) and all(isinstance(one, ast.Compare | ast.BoolOp) for one in values)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return self._is_truth(node.left) and self._is_truth(node.right)
        is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        return isinstance(node, ast.Compare | ast.BoolOp) or is_not

    def _is_record(self, node: ast.expr) -> bool:
        """Whether a value is a record of arguments, such as ``self`` or ``self.config``: no module of the file."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in (*self.aliases.names, "tl")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Spell a name imported from the language's module itself as ``tl.name``."""
        return self._respelled(node, node.ctx) or node

    def _respelled(self, node: ast.expr, context: ast.expr_context) -> ast.AST | None:
        called = self.aliases.language_name(node)
        if called:
            return ast.copy_location(ast.Attribute(ast.Name("tl", ast.Load()), called, context), node)
        if self.aliases.dotted(node) == "triton.cdiv":
            return ast.copy_location(ast.Attribute(ast.Name("triton", ast.Load()), "cdiv", context), node)
        return None

    def _is_integer(self, args: list[ast.expr], keywords: list[ast.keyword]) -> bool:
        """Whether a type is an integer's: by its name, or as that of another value of the same prologue."""
        given = [*args, *(one.value for one in keywords if one.arg == "dtype")]
        if len(given) != 1:
            return False
        kind = given[0]
        if self.aliases.language_name(kind) in _INTEGERS:
            return True
        if not (isinstance(kind, ast.Attribute) and kind.attr in _OF_ANOTHER and isinstance(kind.value, ast.Name)):
            return False
        return self._is_of_integers(kind.value.id)

    def _is_of_integers(self, name: str) -> bool:
        """Whether a name holds an integer of 32 bits or more: nothing that is loaded, made or cast otherwise."""
        for node in ast.walk(self.function) if self.function is not None else ():
            if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if name not in {one.id for part in targets for one in ast.walk(part) if isinstance(one, ast.Name)}:
                continue
            calls = [one for one in ast.walk(node.value) if isinstance(one, ast.Call)]
            made = {self.aliases.language_name(one.func) or ast.unparse(one.func) for one in calls}
            if _NARROW.search(ast.unparse(node)) or made - {"program_id", "num_programs", "cdiv", "cast", "min", "max"}:
                return False
        return self.function is not None and name in local_names(self.function)
