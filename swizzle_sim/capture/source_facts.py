"""What the source of a Triton function tells of its parameters: pointers, their direction, indices, strides, sizes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from xcd_model.errors import CaptureError

LOADS, STORES = ("load", "atomic_load"), ("store", "atomic_store")
ROUNDS = 4  # passes over the body until names that stand for pointers are known
FLOAT_WORDS = ("eps", "scale", "alpha", "beta", "prob", "slope", "factor")


@dataclass
class Parameter:
    """One parameter: ``kind`` is pointer, stride, size, float or constexpr."""

    name: str
    kind: str
    default: str | None = None
    role: str = "in"
    is_index: bool = False


@dataclass
class SourceFacts:
    """What was read of a function; ``tuned`` holds the first configuration of an autotuner."""

    function: str
    parameters: list[Parameter]
    axes: int
    divisions: list[str]
    tuned: dict[str, str] = field(default_factory=dict)


def read_source(text: str, filename: str, function: str) -> SourceFacts:
    """Read a function out of a file's text.

    Raises
    ------
    CaptureError
        If the text is no Python, or holds no such ``@triton.jit`` function; names those it holds.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise CaptureError(f"{filename}:{error.lineno}: {error.msg}", code="declaration") from None
    found = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_jit(node)}
    if function not in found:
        there = f"it holds {', '.join(found)}" if found else "it holds none"
        raise CaptureError(f"{filename}: no @triton.jit function {function}; {there}", code="declaration")
    node = found[function]
    reads, writes, indices = _uses(node)
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return SourceFacts(
        function,
        [_parameter(a, _defaults(node).get(a.arg), reads, writes, indices) for a in arguments],
        1 + max([0, *(_axis(call) for call in _calls(node, ("program_id",)))]),
        sorted({ast.unparse(call) for call in _calls(node, ("cdiv",))}),
        _tuned(node),
    )


def _is_jit(node: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)


def _defaults(node: ast.FunctionDef) -> dict[str, str]:
    positional = [*node.args.posonlyargs, *node.args.args]
    given = dict(
        zip([a.arg for a in positional[len(positional) - len(node.args.defaults) :]], node.args.defaults, strict=True)
    )
    given |= {a.arg: d for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None}
    return {name: ast.unparse(value) for name, value in given.items()}


def _parameter(
    argument: ast.arg, default: str | None, reads: set[str], writes: set[str], indices: set[str]
) -> Parameter:
    name = argument.arg
    if argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation):
        return Parameter(name, "constexpr", default)
    if name in reads | writes or name.lower().endswith(("ptr", "_desc")):
        role = "inout" if name in reads and name in writes else "out" if name in writes else "in"
        return Parameter(name, "pointer", default, role, name in indices)
    if "stride" in name.lower():
        return Parameter(name, "stride", default)
    is_float = any(word in name.lower() for word in FLOAT_WORDS)
    return Parameter(name, "float" if is_float else "size", default)


def _calls(node: ast.AST, names: tuple[str, ...]) -> list[ast.Call]:
    return [
        call
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func).rsplit(".", 1)[-1] in names
    ]


def _axis(call: ast.Call) -> int:
    value = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "axis"), None)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else 0


def _uses(node: ast.FunctionDef) -> tuple[set[str], set[str], set[str]]:
    """Parameters that are read, that are written, and whose loaded values reach an address."""
    parameters = {a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
    bases = {name: {name} for name in parameters}  # parameters that a name may point into
    loaded: dict[str, set[str]] = {}  # parameters that a name's value was loaded from
    reads: set[str] = set()
    writes: set[str] = set()
    indices: set[str] = set()
    pointers: set[str] = set()
    for _ in range(ROUNDS):
        for call in (c for c in ast.walk(node) if isinstance(c, ast.Call)):
            _use(call, bases, loaded, pointers, reads, writes, indices)
        for assigned in ast.walk(node):
            if isinstance(assigned, ast.Assign | ast.AugAssign) and assigned.value is not None:
                targets = assigned.targets if isinstance(assigned, ast.Assign) else [assigned.target]
                for target in (t for t in targets if isinstance(t, ast.Name)):
                    bases.setdefault(target.id, set()).update(_first(assigned.value, bases))
                    loaded.setdefault(target.id, set()).update(_values(assigned.value, bases, loaded))
    return reads & parameters, writes & parameters, indices & parameters


def _use(call, bases, loaded, pointers, reads, writes, indices) -> None:
    name = ast.unparse(call.func).rsplit(".", 1)[-1]
    atomic = name.startswith("atomic_") and name not in (*LOADS, *STORES)
    if not call.args or not (name in (*LOADS, *STORES) or atomic or name == "make_tensor_descriptor"):
        return
    into = _first(call.args[0], bases)
    if name in LOADS or atomic:
        reads |= into
    if name in STORES or atomic:
        writes |= into
    indices |= _values(call.args[0], bases, loaded)


def _first(expression: ast.AST, bases: dict[str, set[str]]) -> set[str]:
    """Parameters that the leftmost name of a sum points into."""
    while isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add | ast.Sub):
        expression = expression.left
    return set(bases.get(expression.id, ())) if isinstance(expression, ast.Name) else set()


def _values(expression: ast.AST, bases: dict[str, set[str]], loaded: dict[str, set[str]]) -> set[str]:
    """Parameters whose loaded values an expression holds."""
    found: set[str] = set()
    for call in _calls(expression, LOADS):
        found |= _first(call.args[0], bases) if call.args else set()
    for name in (n for n in ast.walk(expression) if isinstance(n, ast.Name)):
        found |= loaded.get(name.id, set())
    return found


def _tuned(node: ast.FunctionDef) -> dict[str, str]:
    """First configuration of an autotuner, where it is written out."""
    for decorator in node.decorator_list:
        for call in _calls(decorator, ("Config",)):
            if call.args and isinstance(call.args[0], ast.Dict):
                pairs = zip(call.args[0].keys, call.args[0].values, strict=True)
                return {str(k.value): ast.unparse(v) for k, v in pairs if isinstance(k, ast.Constant)}
    return {}
