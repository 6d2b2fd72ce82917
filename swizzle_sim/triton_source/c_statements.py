"""Statements of C in Python's syntax tree: declarations, assignments, ``if``, counted loops, ``return``."""

from __future__ import annotations

import ast

from tree_sitter import Node

from swizzle_sim.triton_source.c_expressions import Calls, expression, named, placed, text_of, unread

_ON_DEVICE = ("__HIP_DEVICE_COMPILE__", "__CUDA_ARCH__", "__HIPCC__", "__CUDACC__", "__HIP__")


class Statements:
    """Reads the statements of one function."""

    def __init__(self, calls: Calls, outputs: tuple[str, ...] = ()):
        self.calls, self.outputs = calls, outputs
        self.functions: list[ast.FunctionDef] = []  # lambdas with a name
        self._open: set[str] = set()  # declared and not assigned: a call that takes one may assign it

    def block(self, node: Node) -> list[ast.stmt]:
        """Statements between braces, or the single one without."""
        if node.type != "compound_statement":
            return self.statement(node)
        return [stmt for one in node.named_children for stmt in self.statement(one)]

    def result(self, node: Node) -> ast.stmt:
        """``return`` of what the function hands out through its parameters."""
        parts: list[ast.expr] = [named(name, node) for name in self.outputs]
        return placed(ast.Return(parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())), node)

    def statement(self, node: Node) -> list[ast.stmt]:
        """One statement in Python; what has no counterpart leaves the names that it may assign unread."""
        reader = getattr(self, f"_{node.type}", None)
        found = reader(node) if reader is not None else None
        return [placed(one, node) for one in found] if found is not None else self._unread(node)

    def _comment(self, node: Node) -> list[ast.stmt]:
        return []

    _type_definition = _alias_declaration = _using_declaration = _static_assert_declaration = _comment
    _preproc_call = _labeled_statement = _struct_specifier = _comment

    def _preproc_ifdef(self, node: Node) -> list[ast.stmt] | None:
        """Statements that a condition of the preprocessor keeps, where only one of its sides has any."""
        sides, name = self._sides(node), node.child_by_field_name("name")
        if name is not None and text_of(name) in _ON_DEVICE:
            return sides[0]
        return sides[0] or sides[1] if not (sides[0] and sides[1]) else None

    _preproc_if = _preproc_ifdef

    def _sides(self, node: Node) -> tuple[list[ast.stmt], list[ast.stmt]]:
        fixed = [
            one for one in (node.child_by_field_name(part) for part in ("name", "condition", "alternative")) if one
        ]
        mine = [stmt for one in node.named_children if one not in fixed for stmt in self.statement(one)]
        other = node.child_by_field_name("alternative")
        if other is None:
            return mine, []
        if other.type in ("preproc_elif", "preproc_elifdef"):
            first, last = self._sides(other)
            return mine, first or last
        return mine, [stmt for one in other.named_children for stmt in self.statement(one)]

    def _compound_statement(self, node: Node) -> list[ast.stmt]:
        return self.block(node)

    def _declaration(self, node: Node) -> list[ast.stmt] | None:
        found: list[ast.stmt] = []
        for one in node.children_by_field_name("declarator"):
            if one.type == "identifier":
                self._open.add(text_of(one))
            elif one.type == "init_declarator":
                made = self._initialised(one)
                if made is None:
                    return None
                found += made
        return found

    def _initialised(self, node: Node) -> list[ast.stmt] | None:
        target, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
        if target is None or value is None:
            return None
        if value.type == "lambda_expression":
            return self._lambda(target, value)
        if target.type == "structured_binding_declarator":
            parts: list[ast.expr] = [named(text_of(one), one, ast.Store()) for one in target.named_children]
            return [ast.Assign([ast.Tuple(parts, ast.Store())], expression(value, self.calls))]
        if target.type != "identifier":
            return []  # a pointer, an array or a reference: no integer
        if value.type in ("argument_list", "initializer_list") and len(value.named_children) == 1:
            value = value.named_children[0]
        self._open.discard(text_of(target))
        return [ast.Assign([named(text_of(target), target, ast.Store())], expression(value, self.calls))]

    def _lambda(self, target: Node, node: Node) -> list[ast.stmt] | None:
        declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        if body is None:
            return None
        names = [one.child_by_field_name("declarator") for one in (listed.named_children if listed else ())]
        args = [placed(ast.arg(text_of(one)), node) for one in names if one is not None]
        inner = Statements(self.calls)
        given = ast.arguments([], [], None, args, [None] * len(args), None, [])
        found = ast.FunctionDef(text_of(target), given, inner.block(body) or [ast.Pass()], [])
        self.functions.append(placed(found, node))
        return []

    def _expression_statement(self, node: Node) -> list[ast.stmt] | None:
        inner = node.named_children[0] if node.named_children else None
        if inner is None:
            return []
        if inner.type == "assignment_expression":
            return self._assigned(inner)
        if inner.type == "update_expression":
            return self._stepped(inner)
        return self._called(inner) if inner.type == "call_expression" else None

    def _assigned(self, node: Node) -> list[ast.stmt] | None:
        target, value, operator = (node.child_by_field_name(part) for part in ("left", "right", "operator"))
        if target is None or value is None or operator is None:
            return None
        if target.type != "identifier":
            return []  # an element, a field or memory: no name of a tile
        op, store = text_of(operator), named(text_of(target), target, ast.Store())
        if op == "=" and value.type == "assignment_expression":
            first = self._assigned(value)
            inner = value.child_by_field_name("left")
            return (
                None if first is None or inner is None else [*first, ast.Assign([store], expression(inner, self.calls))]
            )
        self._open.discard(text_of(target))
        if op == "=":
            return [ast.Assign([store], expression(value, self.calls))]
        whole = ast.parse(f"a {op[:-1].replace('/', '//')} b", mode="eval").body
        assert isinstance(whole, ast.BinOp)
        return [ast.AugAssign(store, whole.op, expression(value, self.calls))]

    def _stepped(self, node: Node) -> list[ast.stmt] | None:
        target = node.child_by_field_name("argument")
        if target is None or target.type != "identifier":
            return []
        op = ast.Add() if "++" in text_of(node) else ast.Sub()
        return [ast.AugAssign(named(text_of(target), target, ast.Store()), op, placed(ast.Constant(1), node))]

    def _called(self, node: Node) -> list[ast.stmt]:
        """Call by itself: of a function of the file that hands out values, or of whatever may assign what it takes."""
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        name = text_of(function).rpartition("::")[2].partition("<")[0] if function is not None else ""
        given = [one for one in listed.named_children if one.type != "comment"] if listed is not None else []
        outputs = self.calls.outputs.get(name, ())
        call = expression(node, self.calls)
        if outputs and isinstance(call, ast.Call) and len(given) >= len(outputs):
            # the last arguments are handed out, as people write them
            targets = [text_of(one) for one in given[-len(outputs) :]]
            if all(target.isidentifier() for target in targets):
                call.args = call.args[: -len(outputs)]
                stores: list[ast.expr] = [named(target, node, ast.Store()) for target in targets]
                return [ast.Assign([stores[0] if len(stores) == 1 else ast.Tuple(stores, ast.Store())], call)]
        taken = [text_of(one).removeprefix("&") for one in given if text_of(one).removeprefix("&") in self._open or
                 text_of(one).startswith("&")]  # fmt: skip
        return [self._lost(one, node) for one in taken if one.isidentifier()]

    def _if_statement(self, node: Node) -> list[ast.stmt] | None:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        other = node.child_by_field_name("alternative")
        if condition is None or body is None:
            return None
        orelse = [stmt for one in other.named_children for stmt in self.statement(one)] if other is not None else []
        then = self.block(body)
        return [ast.If(expression(condition, self.calls), then or [ast.Pass()], orelse)] if then or orelse else []

    def _for_statement(self, node: Node) -> list[ast.stmt] | None:
        """``for (int t = start; t < stop; t += step)``."""
        first, condition, update, body = (
            node.child_by_field_name(part) for part in ("initializer", "condition", "update", "body")
        )
        if first is None or condition is None or update is None or body is None:
            return None
        begun, steps = self.statement(first), self._update(update)
        test = expression(condition, self.calls)
        match (begun, test, steps):
            case (
                [ast.Assign([ast.Name(name)], start)],
                ast.Compare(ast.Name(tested), [ast.Lt()], [stop]),
                [ast.AugAssign(ast.Name(stepped), ast.Add(), step)],
            ) if name == tested == stepped:
                over = placed(ast.Call(ast.Name("range", ast.Load()), [start, stop, step], []), node)
                inner = self.block(body)
                return [ast.For(named(name, node, ast.Store()), over, inner or [ast.Pass()], [])]
        return None

    def _update(self, node: Node) -> list[ast.stmt]:
        return (self._assigned(node) if node.type == "assignment_expression" else None) or (
            self._stepped(node) if node.type == "update_expression" else None
        ) or []  # fmt: skip

    def _while_statement(self, node: Node) -> list[ast.stmt] | None:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        if condition is None or body is None:
            return None
        return [ast.While(expression(condition, self.calls), self.block(body) or [ast.Pass()], [])]

    def _return_statement(self, node: Node) -> list[ast.stmt]:
        if self.outputs:
            return [self.result(node)]
        inner = [one for one in node.named_children if one.type != "comment"]
        return [ast.Return(expression(inner[0], self.calls) if inner else None)]

    def _break_statement(self, node: Node) -> list[ast.stmt]:
        return [ast.Break()]

    def _continue_statement(self, node: Node) -> list[ast.stmt]:
        return [ast.Continue()]

    def _unread(self, node: Node) -> list[ast.stmt]:
        """Names that a statement without a counterpart assigns, unread."""
        names: dict[str, None] = {}
        todo = [node]
        for one in todo:
            todo += one.named_children
            target = one.child_by_field_name("left" if one.type == "assignment_expression" else "declarator")
            if (
                one.type in ("assignment_expression", "init_declarator")
                and target is not None
                and target.type == "identifier"
            ):
                names[text_of(target)] = None
        return [self._lost(name, node) for name in names]

    def _lost(self, name: str, node: Node) -> ast.stmt:
        return placed(ast.Assign([named(name, node, ast.Store())], unread(node)), node)
