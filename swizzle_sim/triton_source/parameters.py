"""Parameters of a Triton function by their use: pointers and their direction, index tensors, strides, sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from swizzle_sim.triton_source.aliases import Aliases
from swizzle_sim.triton_source.source_file import SourceFile, defaults_of, is_constexpr, parameters_of, tuned_values

LOADS, STORES = ("load", "atomic_load"), ("store", "atomic_store")
ROUNDS = 4  # passes over the body until names that stand for pointers are known
FLOAT_WORDS = ("eps", "scale", "alpha", "beta", "prob", "slope", "factor")


@dataclass(frozen=True)
class Parameter:
    """One parameter."""

    name: str
    kind: str
    default: str | None = None  # its text
    role: str = "in"  # of a pointer
    is_index: bool = False  # of a pointer, whether values loaded from it reach an address
    is_descriptor: bool = False  # whether it is no pointer but a descriptor, which loads and stores itself


@dataclass(frozen=True)
class FunctionFacts:
    """Facts of one Triton function."""

    function: str
    parameters: list[Parameter]
    axes: int  # axes of the launch whose program ids it reads, at least 1
    divisions: list[str]  # its calls of ``cdiv``
    # constants that its autotuner and heuristics give, as far as they are written out at the function
    decided: set[str] = field(default_factory=set)
    is_tuned: bool = False  # whether it has an autotuner


def facts_of(source: SourceFile, name: str) -> FunctionFacts:
    """Read the facts of one Triton function of a file."""
    function = source.kernel(name)
    around = [call for one in source.wrapped.values() if one.function == function.name for call in one.around]
    if around:  # by assignments: as decorators
        function = ast.FunctionDef(**{**vars(function), "decorator_list": [*around, *function.decorator_list]})
    uses = _Uses(source.aliases, function, source.named)
    defaults = {one: ast.unparse(value) for one, value in defaults_of(function).items()}
    return FunctionFacts(
        name,
        [_parameter(one, defaults.get(one.arg), uses) for one in parameters_of(function)],
        1 + max([0, *(one.axis or 0 for one in source.program_ids(function))]),
        sorted({ast.unparse(call) for call in _calls(source.aliases, function, ("cdiv",))}),
        decided=set(tuned_values(function)) | _ruled(function),
        is_tuned=any("configs=" in text or "autotune(" in text for text in map(ast.unparse, function.decorator_list)),
    )


def _ruled(function: ast.FunctionDef) -> set[str]:
    """Parameters that heuristics above a function give."""
    calls = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    rules = [one for call in calls if "heuristics" in ast.unparse(call.func) for one in ast.walk(call)]
    return {
        str(key.value)
        for one in rules
        if isinstance(one, ast.Dict)
        for key in one.keys
        if isinstance(key, ast.Constant)
    }


def _parameter(argument: ast.arg, default: str | None, uses: _Uses) -> Parameter:
    name = argument.arg
    if is_constexpr(argument):
        return Parameter(name, "constexpr", default)
    if name in uses.reads | uses.writes or name.lower().endswith(("ptr", "_desc")):
        role = "inout" if name in uses.reads & uses.writes else "out" if name in uses.writes else "in"
        return Parameter(name, "pointer", default, role, name in uses.indices, name in uses.descriptors)
    if "stride" in name.lower():
        return Parameter(name, "stride", default)
    is_float = any(word in name.lower() for word in FLOAT_WORDS)
    return Parameter(name, "float" if is_float else "size", default)


class _Uses:
    """Parameters that a function reads memory at, writes memory at, and whose loaded values reach an address."""

    def __init__(self, aliases: Aliases, function: ast.FunctionDef, helpers: Mapping[str, ast.FunctionDef]):
        self.aliases = aliases
        called = {
            one.func.id for one in ast.walk(function) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
        }
        others = {name: one for name, one in helpers.items() if one is not function}
        self._helpers = {name: (others[name], _Uses(aliases, others[name], others)) for name in called & others.keys()}
        names = {one.arg for one in parameters_of(function)}
        self._bases = {name: {name} for name in names}  # parameters that a name may point into
        self._loaded: dict[str, set[str]] = {}  # parameters that a name's value was loaded from
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.indices: set[str] = set()
        self.descriptors: set[str] = set()
        for _ in range(ROUNDS):
            for node in ast.walk(function):
                if isinstance(node, ast.Call):
                    self._use(node)
            for node in ast.walk(function):
                if isinstance(node, ast.Assign | ast.AugAssign):
                    self._assign(node)

    def _use(self, call: ast.Call) -> None:
        if isinstance(call.func, ast.Name) and call.func.id in self._helpers:
            self._hand(call, *self._helpers[call.func.id])
            return
        match call.func:
            case ast.Attribute(ast.Name(base), "load" | "store" | "atomic_add" as how) if base in self._bases:
                (self.reads if how == "load" else self.writes).update(self._bases[base])
                self.descriptors |= self._bases[base]
                return
        name = self.aliases.called(call)
        atomic = name.startswith("atomic_") and name not in (*LOADS, *STORES)
        if not call.args or not (name in (*LOADS, *STORES, "make_tensor_descriptor") or atomic):
            return
        into = self._first(call.args[0])
        if name in LOADS or atomic:
            self.reads |= into
        if name in STORES or atomic:
            self.writes |= into
        self.indices |= self._values(call.args[0]) - into  # ``bias = tl.load(bias + n)`` reads itself no address

    def _hand(self, call: ast.Call, helper: ast.FunctionDef, uses: _Uses) -> None:
        """Take what a helper does with its parameters for what is done with the arguments of a call."""
        names = [one.arg for one in parameters_of(helper)]
        given = [*zip(names, call.args, strict=False), *((one.arg, one.value) for one in call.keywords)]
        for name, value in given:
            into = self._first(value)
            self.reads |= into if name in uses.reads else set()
            self.writes |= into if name in uses.writes else set()
            self.indices |= into if name in uses.indices else set()

    def _assign(self, node: ast.Assign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                self._bases.setdefault(target.id, set()).update(self._first(node.value))
                self._loaded.setdefault(target.id, set()).update(self._values(node.value))

    def _first(self, expression: ast.AST) -> set[str]:
        """Parameters that the leftmost name of a sum points into."""
        while isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add | ast.Sub):
            expression = expression.left
        return set(self._bases.get(expression.id, ())) if isinstance(expression, ast.Name) else set()

    def _values(self, expression: ast.AST) -> set[str]:
        """Parameters whose loaded values an expression holds."""
        found: set[str] = set()
        for call in _calls(self.aliases, expression, LOADS):
            found |= self._first(call.args[0]) if call.args else set()
        for name in (one for one in ast.walk(expression) if isinstance(one, ast.Name)):
            found |= self._loaded.get(name.id, set())
        return found


def _calls(aliases: Aliases, root: ast.AST, names: tuple[str, ...]) -> Iterator[ast.Call]:
    return (node for node in ast.walk(root) if isinstance(node, ast.Call) and aliases.called(node) in names)
