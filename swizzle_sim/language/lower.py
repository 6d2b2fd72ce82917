"""Compiler from the typed form to the instructions of the virtual machine `vm`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from swizzle_sim.language.ir import (
    OPERATIONS,
    Assign,
    Binary,
    Compare,
    Cond,
    Connect,
    Expr,
    For,
    Form,
    If,
    Int,
    Name,
    Not,
    Select,
    Stmt,
    names_set,
    parts,
)

# The position is the opcode of `one_by_one._operate`. The rest is composed: `and` and `or` are & and |, as a condition
# is 0 or 1 in its register; `not c` is c == 0; `~x` is x ^ -1; cdiv is (a + b - 1) // b.
_FIRST = ("jump", "jump-if-zero", "move", "+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "min", "max")
OPCODES = (*_FIRST, "<", "<=", "==", "!=", "select")
_NUMBER = {name: number for number, name in enumerate(OPCODES)}
ON_ARRAYS: dict[str, Callable[[Any, Any], Any]] = OPERATIONS | {
    "min": np.minimum,
    "max": np.maximum,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


@dataclass(frozen=True, eq=False)
class Bytecode:
    """A compiled candidate: instructions of the virtual machine."""

    # (n, 6) int32 array: instructions: opcode, destination register or target, three operand registers, line of the
    # text
    code: np.ndarray
    registers: np.ndarray  # (n_registers,) int64 array: initial registers, literals filled in
    inputs: dict[str, int]  # register of each input and of each coordinate of the result
    results: dict[str, int]
    input_lines: dict[str, int]  # line that first reads each input
    last_line: int  # line of the last statement

    @cached_property
    def instructions(self) -> list[tuple[int, ...]]:
        """``code`` row by row."""
        return [tuple(row) for row in self.code.tolist()]

    @property
    def keeps_launch_order(self) -> bool:
        """Whether it only hands each coordinate of the hardware on, under its own name."""
        holds: dict[int, int] = {}  # register -> the one whose first value it has
        for op, to, source, *_ in self.instructions:
            if OPCODES[op] != "move":
                return False
            holds[to] = holds.get(source, source)
        return all(holds.get(at, at) == self.inputs.get(name) for name, at in self.results.items())


def compile_form(form: Form) -> Bytecode:
    """Compile a form."""
    compiler = _Compiler(form.inputs, names_set(form.body))
    compiler.block(form.body)
    homes = {name: compiler.inputs[name] for name in form.inputs}
    registers = np.zeros(compiler.used, np.int64)
    for value, register in compiler.literals.items():
        registers[register] = value
    code = np.array(compiler.code, np.int32).reshape(-1, 6)
    results = {name: compiler.variables[name] for name in form.results}
    return Bytecode(code, registers, homes, results, compiler.input_lines, compiler.line)


class _Compiler:
    """Appends instructions; each expression has its own register, as there are few and they are cheap."""

    def __init__(self, inputs: tuple[str, ...], overwritten: set[str]):
        self.code: list[tuple[int, ...]] = []
        self.used = 0
        self.line = 0
        self.literals: dict[int, int] = {}
        self.variables: dict[str, int] = {}
        self.input_lines: dict[str, int] = {}
        self.inputs = {name: self._new() for name in inputs}
        # An input that the text overwrites is copied first, so that the next workgroup reads the original.
        for name in inputs:
            home = self.inputs[name]
            self.variables[name] = self._emit("move", None, home) if name in overwritten else home

    def block(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.line = stmt.line
            if isinstance(stmt, Assign):
                self._assign(stmt)
            elif isinstance(stmt, If):
                self._if(stmt)
            else:
                self._for(stmt)

    def _assign(self, stmt: Assign) -> None:
        value = self._value(stmt.value)
        if isinstance(stmt.value, Int | Name):
            self._emit("move", self._variable(stmt.target), value)
        else:  # the instruction just emitted computes the value: its destination becomes the variable
            op, _, *rest = self.code[-1]
            self.code[-1] = (op, self._variable(stmt.target), *rest)

    def _if(self, stmt: If) -> None:
        skip = self._branch(self._value(stmt.condition))
        self.block(stmt.body)
        if not stmt.orelse:
            self._land(skip)
            return
        done = self._branch()
        self._land(skip)
        self.block(stmt.orelse)
        self._land(done)

    def _for(self, stmt: For) -> None:
        line = stmt.line
        start, stop = self._value(stmt.start), self._value(stmt.stop)
        if isinstance(stmt.stop, Name):  # range() reads it once, whatever the body does to the variable
            stop = self._emit("move", None, stop)
        var = self._variable(stmt.var)
        self._emit("move", var, start)
        top = len(self.code)
        leave = self._branch(self._emit("<", None, var, stop))
        self.block(stmt.body)
        self.line = line
        self._emit("+", var, var, self._literal(stmt.step))
        self._land(self._branch(), top)
        self._land(leave)

    def _value(self, node: Expr | Cond) -> int:  # noqa: PLR0911 - one a kind of node
        """Emit an expression, return its register; a condition's holds 0 or 1."""
        if isinstance(node, Int):
            return self._literal(node.value)
        if isinstance(node, Name):
            return self._variable(node.name)
        values = [self._value(part) for part in parts(node)]
        if isinstance(node, Select):
            return self._emit("select", None, *values)
        if isinstance(node, Binary):
            return self._binary(node.op, *values)
        if isinstance(node, Compare):
            swap = {">": "<", ">=": "<="}.get(node.op)
            return self._emit(swap or node.op, None, *(values[::-1] if swap else values))
        if isinstance(node, Connect):
            return self._emit("&" if node.op == "and" else "|", None, *values)
        if isinstance(node, Not):
            return self._emit("==", None, values[0], self._literal(0))
        if node.op == "-":
            return self._emit("-", None, self._literal(0), values[0])
        return self._emit("^", None, values[0], self._literal(-1))

    def _binary(self, op: str, left: int, right: int) -> int:
        if op != "cdiv":
            return self._emit(op, None, left, right)
        above = self._emit("-", None, self._emit("+", None, left, right), self._literal(1))
        return self._emit("//", None, above, right)

    def _emit(self, op: str, dst: int | None, *operands: int) -> int:
        dst = self._new() if dst is None else dst
        a, b, c = (*operands, 0, 0, 0)[:3]
        self.code.append((_NUMBER[op], dst, a, b, c, self.line))
        return dst

    def _branch(self, condition: int | None = None) -> int:
        """Emit a jump with its target open, return its place."""
        op = "jump" if condition is None else "jump-if-zero"
        self._emit(op, 0, 0 if condition is None else condition)
        return len(self.code) - 1

    def _land(self, place: int, target: int | None = None) -> None:
        op, _, *rest = self.code[place]
        self.code[place] = (op, len(self.code) if target is None else target, *rest)

    def _literal(self, value: int) -> int:
        if value not in self.literals:
            self.literals[value] = self._new()
        return self.literals[value]

    def _variable(self, name: str) -> int:
        if name in self.inputs:
            self.input_lines.setdefault(name, self.line)
        if name not in self.variables:
            self.variables[name] = self._new()
        return self.variables[name]

    def _new(self) -> int:
        self.used += 1
        return self.used - 1
