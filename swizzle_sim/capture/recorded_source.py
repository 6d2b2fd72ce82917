"""Source of a recorded kernel as one file: its functions, and what the globals mean that they read."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

MODULE = re.compile(r"math|triton(\.\w+)*")
VALUE_CALLS = ("triton.language.constexpr", "float")


class RecordedSource:
    """File made of a recording's functions, the kernel last.

    Parameters
    ----------
    functions : sequence of mapping
        As the recording has them, checked by `check_functions`; the first is the kernel.

    Attributes
    ----------
    text : str
    name : str
        Of the kernel.
    """

    def __init__(self, functions: Sequence[Mapping[str, Any]]):
        self._functions = functions
        self._defined: dict[str, Any] = {"triton": "import triton"}  # what each name of the file means
        self._written: list[str] = []
        self.name = self._function(0, functions[0]["name"])
        lines = [line for line in self._defined.values() if isinstance(line, str)]
        head = sorted(lines, key=lambda line: (" = " in line, not line.startswith("import triton"), line))
        self.text = "\n".join(head) + "".join(f"\n\n\n{one}" for one in self._written) + "\n"

    def _bind(self, name: str, meaning: Any) -> str:
        """Name that stands for something: the given one, with a number where that is taken."""
        tried = (name if k == 1 else f"{name}_{k}" for k in itertools.count(1))
        name = next(one for one in tried if self._defined.get(one, meaning) == meaning)
        self._defined[name] = meaning
        return name

    def _function(self, place: int, wanted: str) -> str:
        known = [name for name, meaning in self._defined.items() if meaning == place]
        if known:
            return known[0]
        found = self._functions[place]
        name = self._bind(wanted, place)
        text = self._edited(found)
        if name != found["name"]:
            text = re.sub(rf"\bdef\s+{found['name']}\b", f"def {name}", text, count=1)
        options = ", ".join(f"{key}={value!r}" for key, value in found["options"].items())
        self._written.append(f"@triton.{found['kind']}{f'({options})' if options else ''}\n{text}")
        return name

    def _edited(self, found: Mapping[str, Any]) -> str:
        function = ast.parse(found["text"]).body[0]
        assert isinstance(function, ast.FunctionDef)
        edits = [*_unannotated(function, found["reads"])]
        dropped = {id(part) for node, _ in edits for part in ast.walk(node)}
        todo: list[ast.AST] = [function]
        while todo:
            node = todo.pop()
            if id(node) in dropped:
                continue
            chain = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            if chain in found["reads"]:
                new = self._meaning(found["reads"][chain], chain.rpartition(".")[2])
                edits += [(node, new)] if new != chain else []
            else:
                todo += ast.iter_child_nodes(node)
        return _applied(found["text"], edits)

    def _meaning(self, meaning: Mapping[str, Any], name: str) -> str:
        """Name in the file for what a kernel calls ``name``."""
        if "function" in meaning:
            return self._function(meaning["function"], name)
        if "value" in meaning:
            return self._bind(name, f"{name} = {meaning['value']}")
        # the device library that goes by the GPU that compiles, in place of the one of the GPU that recorded
        module = re.sub(r"\.(cuda|hip)\.libdevice$", ".libdevice", meaning["module"])
        own = meaning.get("name", "")
        line = f"from {module} import {own}" if own else f"import {module}"
        return self._bind(name, line + (f" as {name}" if name != (own or module) else ""))


def check_functions(functions: Any, most_bytes: int) -> str:
    """Reason why functions of a recording cannot be made a file; empty where they can.

    Parameters
    ----------
    functions : object
        As JSON has them.
    most_bytes : int
        Of their text together.
    """
    if not isinstance(functions, list) or not functions or not all(isinstance(one, dict) for one in functions):
        return "a list of functions"
    if sum(len(str(one.get("text"))) for one in functions) > most_bytes:
        return f"functions of at most {most_bytes} bytes"
    return next((wrong for one in functions if (wrong := _wrong(one, len(functions)))), "")


def _wrong(function: Mapping[str, Any], n_functions: int) -> str:
    try:
        body = ast.parse(function.get("text", 0)).body
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return "functions that parse"
    only, options, reads = body[0] if len(body) == 1 else None, function.get("options"), function.get("reads")
    if not isinstance(only, ast.FunctionDef) or only.decorator_list or only.name != function.get("name"):
        return "one function each, without decorators, and its name"
    if function.get("kind") not in ("jit", "constexpr_function") or not isinstance(options, dict):
        return "the kind of each function, and its options"
    if not set(options) <= {"do_not_specialize", "noinline"}:
        return "options do_not_specialize and noinline"
    is_known = isinstance(reads, dict) and all(_is_meaning(value, n_functions) for value in reads.values())
    return "" if is_known else "what each name means that a function reads"


def _is_meaning(meaning: Any, n_functions: int) -> bool:
    if not isinstance(meaning, dict):
        return False
    if "function" in meaning:
        return type(meaning["function"]) is int and 0 <= meaning["function"] < n_functions
    if "value" in meaning:
        return isinstance(meaning["value"], str) and _is_value(meaning["value"])
    name, module = meaning.get("name", "x"), meaning.get("module")
    return isinstance(module, str) and MODULE.fullmatch(module) is not None and str(name).isidentifier()


def _is_value(text: str) -> bool:
    """Whether a text is a literal, a type of the language, or a constexpr of one."""
    try:
        node = ast.parse(text, mode="eval").body
        while isinstance(node, ast.Call) and ast.unparse(node.func) in VALUE_CALLS and len(node.args) == 1:
            node = node.args[0]
        if re.fullmatch(r"triton\.language\.\w+", ast.unparse(node)):
            return True
        ast.literal_eval(node)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _unannotated(function: ast.FunctionDef, reads: Mapping[str, Any]) -> list[tuple[ast.AST, str]]:
    """Parameters whose annotations name what is not in the recording, and what is left of each."""
    found: list[tuple[ast.AST, str]] = []
    roots = {chain.partition(".")[0] for chain in reads}
    for one in ast.walk(function.args):
        if isinstance(one, ast.arg) and one.annotation is not None:
            names = {node.id for node in ast.walk(one.annotation) if isinstance(node, ast.Name)}
            found += [(one, one.arg)] if names - roots else []
    if function.returns is not None:
        found.append((function.returns, "None"))
    return found


def _applied(text: str, edits: Sequence[tuple[Any, str]]) -> str:
    """Text with nodes replaced; the count of its lines stays."""
    lines = [line.encode() for line in text.splitlines()]
    places = [(n.lineno, n.col_offset, n.end_lineno, n.end_col_offset, new) for n, new in edits]
    for first, begin, last, end, new in sorted(places, reverse=True):
        whole = lines[first - 1][:begin] + new.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = [whole, *[b""] * (last - first)]
    return b"\n".join(lines).decode()
