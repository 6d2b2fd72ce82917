"""Statements of C in Python's syntax tree: declarations, assignments, ``if``, counted loops, ``return``.

An allow-list of node kinds. What is not on it leaves every name unread that it may change: names that it assigns, whose
address it takes, that a reference is bound to, that a call may take by reference. What may leave the function in a way
that is not modelled (``goto``, ``throw``, a ``return`` in a ``switch``) is `Refused`, and so is the function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from keyword import iskeyword
from typing import TypeGuard

from tree_sitter import Node

from swizzle_sim.triton_source.c_expressions import (
    LAUNCH,
    PURE,
    Calls,
    Names,
    Value,
    Variable,
    converted,
    divided,
    expression,
    is_unread,
    named,
    numbers_of,
    placed,
    unread,
    value_of,
)
from swizzle_sim.triton_source.c_outputs import inside
from swizzle_sim.triton_source.c_preprocessor import Region
from swizzle_sim.triton_source.c_types import BOOL, INT, RECORD, UNKNOWN, UNSIGNED, kind_of_type, text_of

ARRAY = "an array of the function"
_LEAVES = {
    "goto_statement", "labeled_statement", "try_statement", "throw_statement", "co_return_statement",
    "co_yield_statement", "co_await_expression", "statement_identifier", "seh_try_statement",
}  # fmt: skip
_ENDS = re.compile(r"^(__builtin_amdgcn_endpgm|__builtin_trap|__trap|abort|exit|__builtin_unreachable)$")
_ENDS_IN_ASM = re.compile(r"endpgm|\bexit\b|\bret\b|branch|\bbra\b|trap|setpc", re.IGNORECASE)
_PLAIN = {  # children of a declaration that say nothing which the reader does not model
    "type_qualifier", "primitive_type", "sized_type_specifier", "type_identifier", "qualified_identifier",
    "placeholder_type_specifier", "auto", "init_declarator", "identifier", "comment", "storage_class_specifier",
    "template_type", "dependent_type",
}  # fmt: skip


class Refused(Exception):
    """A construct that a function cannot be read with, and its line."""

    def __init__(self, what: str, node: Node):
        super().__init__(what)
        self.what, self.line = what, node.start_point[0] + 1


class Statements:
    """Reads the statements of one function."""

    def __init__(
        self,
        calls: Calls,
        body: Node,
        parameters: list[Variable],
        outputs: tuple[str, ...] = (),
        result: str = "",
        regions: list[Region] | None = None,
        *,
        is_lenient: bool = False,
        handed: Sequence[Node] = (),
    ):
        self.calls, self.outputs, self.kind_of_result = calls, outputs, result
        self.functions: list[ast.FunctionDef] = []  # lambdas with a name
        self.assumed: list[str] = []
        self.regions = regions or []
        self.handed = handed  # stores to parts of parameters, by which a function that is refused hands out a tile
        self.is_lenient = is_lenient  # of a function that is refused: what can be read, to say what it is
        self._outer: set[str] = set()  # names that it assigns and does not declare
        self._spent: set[str] = set()  # names declared so far
        self.names = Names(calls)
        self.escaped = {name: (said, at) for name, said, at in _escaped(body)}
        for one in parameters:
            said, at = self.escaped.get(one.name, (one.why, None))
            self.names.scopes[0][one.name] = one._replace(why=said, at=at)
            self.names.taken.add(one.name)
        self._survey(body, [one.name for one in parameters])

    def _survey(self, body: Node, parameters: list[str]) -> None:
        """Take note of what is declared and which fields are assigned anywhere."""
        names = self.names
        declared: list[str] = list(parameters)
        for node in inside(body):
            target = node.child_by_field_name("declarator")
            if node.type in ("init_declarator", "declaration", "parameter_declaration") and target is not None:
                declared += [text_of(one) for one in node.children_by_field_name("declarator")]
            if node.type == "init_declarator" and target is not None:
                value = node.child_by_field_name("value")
                part = value.child_by_field_name("field") if value is not None else None
                if part is not None and text_of(part) == text_of(target):
                    names.copied.add(text_of(target))
            names.has_lambda = names.has_lambda or node.type == "lambda_expression"
            left = node.child_by_field_name("left" if node.type == "assignment_expression" else "argument")
            if node.type in ("assignment_expression", "update_expression", "pointer_expression") and left is not None:
                if left.type == "identifier" and node.type != "pointer_expression":
                    names.copied.discard(text_of(left))
                names.dirty |= {
                    text_of(field)
                    for one in inside(left)
                    if one.type == "field_expression" and (field := one.child_by_field_name("field")) is not None
                    and (node.type != "pointer_expression" or text_of(node).startswith("&"))
                }  # fmt: skip
        names.declared = set(declared)
        names.taken |= names.declared
        names.copied = {name for name in names.copied if declared.count(name) == 1}

    def function_body(self, block: Node) -> list[ast.stmt]:
        """Statements of the function's block."""
        whole = [one for one in block.named_children if one.type != "comment"]
        around = [one for one in self.regions if all(_within(stmt, one) for stmt in whole)]
        inner = [one for one in self.regions if block.start_point[0] + 1 <= one.begin <= block.end_point[0] + 1]
        for region in around if whole else []:
            if region in inner:
                self.assumed.append(f"line {region.begin}: {region.condition}")
                self.regions = [one for one in self.regions if one.first != region.first]
        return [stmt for one in block.named_children for stmt in self.statement(one)]

    def block(self, node: Node) -> list[ast.stmt]:
        """Statements between braces, or the single one without, in a scope of their own."""
        self.names.scopes.append({})
        parts = node.named_children if node.type == "compound_statement" else [node]
        found = [stmt for one in parts for stmt in self.statement(one)]
        self.names.scopes.pop()
        return found

    def result(self, node: Node) -> ast.stmt:
        """``return`` of what the function hands out through its parameters."""
        parts: list[ast.expr] = [named(name, node) for name in self.outputs]
        return placed(ast.Return(parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())), node)

    def statement(self, node: Node) -> list[ast.stmt]:
        """One statement in Python; what has no counterpart leaves the names that it may change unread."""
        if node.type in ("comment", ";"):
            return []
        reader = getattr(self, f"_{node.type}", None)
        head = node.end_point[0] + 1
        body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
        if body is not None and node.type != "compound_statement":
            head = body.start_point[0] + 1
        is_open = any(
            one.begin <= head and node.start_point[0] + 1 <= one.end for one in self.regions
        ) and node.type != "compound_statement"  # fmt: skip
        outer, self.names.before = self.names.before, []
        found = None if is_open or reader is None or _has_error(node) else reader(node)
        before, self.names.before = self.names.before, outer
        if found is None:
            return self._unread(node)
        changed = self._changed_inside(node) if node.type not in _STRUCTURED else {}
        given = {one.id for stmt in found for one in ast.walk(stmt) if _is_store(one)}  # after all that its value does
        changed = {variable: at for variable, at in changed.items() if variable.name not in given}
        after = [self._lost(variable, at) for variable, at in changed.items()]
        for one in after:
            one.by_call = True  # type: ignore[attr-defined]
        return [placed(one, node) for one in [*before, *found, *after]]

    def _nothing(self, node: Node) -> list[ast.stmt]:
        return []

    _type_definition = _alias_declaration = _using_declaration = _static_assert_declaration = _nothing
    _struct_specifier = _nothing

    def _compound_statement(self, node: Node) -> list[ast.stmt]:
        return self.block(node)

    def _do_statement(self, node: Node) -> list[ast.stmt] | None:
        """``do { .. } while (0)``, as macros write a block."""
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        once = condition is not None and text_of(condition).replace(" ", "") in ("(0)", "(false)")
        leaves = any(one.type in ("break_statement", "continue_statement") for one in inside(node))
        return self.block(body) if once and not leaves and body is not None else None

    def _declaration(self, node: Node) -> list[ast.stmt] | None:
        of_type = node.child_by_field_name("type")
        text = text_of(of_type) if of_type is not None else ""
        words = {
            text_of(one) for one in node.named_children if one.type in ("type_qualifier", "storage_class_specifier")
        }
        is_plain = {one.type for one in node.named_children} <= _PLAIN and words <= {"const", "constexpr", "static"}
        if not is_plain or ("static" in words and "constexpr" not in words):
            return None
        found: list[ast.stmt] = []
        for one in node.children_by_field_name("declarator"):
            self.names.before, kept = [], self.names.before
            made = self._declared(one, text, is_const=bool(words & {"const", "constexpr"}), node=node)
            kept += self.names.before
            self.names.before = []
            found += [*kept, *made]
        return found

    def _declared(self, one: Node, text: str, *, is_const: bool, node: Node) -> list[ast.stmt]:  # noqa: PLR0911 - one a kind
        """One name of a declaration."""
        kind = kind_of_type(text, self.calls.aliases)
        if one.type == "identifier":
            variable = self._declare(text_of(one), kind, node)
            return [self._lost(variable, node)] if kind else []
        target, value = one.child_by_field_name("declarator"), one.child_by_field_name("value")
        if one.type != "init_declarator" or target is None or value is None:
            return self._lose_declarators(one, node)
        if any(part.type == "identifier" and text_of(part) == text_of(target) for part in inside(value)):
            return self._lose_declarators(one, node)  # a name is declared before its value is computed
        if value.type == "lambda_expression" and target.type == "identifier":
            return self._lambda(target, value, node)
        is_auto = text in ("auto", "decltype(auto)")
        if target.type == "structured_binding_declarator" and is_auto:
            return self._unpacked(target, value, node)
        if target.type != "identifier":
            return self._lose_declarators(target, node)
        if value.type in ("argument_list", "initializer_list") and len(value.named_children) == 1 and kind:
            value = value.named_children[0]
        found = value_of(value, self.names) if is_auto or kind else Value(unread(node), UNKNOWN)
        kind = found.kind if is_auto else kind
        if not kind or found.kind in (UNKNOWN, RECORD):
            variable = self._declare(text_of(target), kind, node, is_const=is_const)
            return [self._lost(variable, node, found.tree if is_unread(found.tree) else None)]
        tree = converted(found, kind, one, self.names)
        variable = self._declare(text_of(target), kind, node, is_const=is_const)
        if is_const and kind == INT and (found.kind == UNSIGNED or ast.unparse(tree).startswith(LAUNCH)):
            self.names.not_negative.add(variable.name)
        return [ast.Assign([named(variable.name, target, ast.Store())], tree)]

    def _declare(self, name: str, kind: str, node: Node, *, is_const: bool = False) -> Variable:
        """Variable of a new name; of one that an outer scope has, under another name of Python."""
        again = any(name in scope for scope in self.names.scopes)
        reused = name in self.names.taken and name not in self.names.declared
        own = self.names.fresh(name) if again or reused or name in self._spent else name
        own = self.names.fresh(f"{name}_") if iskeyword(own) else own  # ``in`` is a name in C
        self._spent.add(name)
        made = Variable(own, kind, is_const, *self.escaped.get(name, ("", None)))
        self.names.scopes[-1][name] = made
        return made

    def _lose_declarators(self, declarator: Node, node: Node) -> list[ast.stmt]:
        """Pointers, arrays and references: no integers, under any name."""
        value = next((one.child_by_field_name("value") for one in (declarator, declarator.parent) if one is not None
                      and one.type == "init_declarator"), None)  # fmt: skip
        for one in inside(declarator):
            if one.type == "identifier":
                is_array = any(part.type == "array_declarator" for part in inside(declarator))
                own = is_array or "static" in text_of(node).split()
                variable = self._declare(text_of(one), UNKNOWN, node)
                known = variable._replace(why=variable.why or (ARRAY if own else f"pointer {text_of(one)}"))
                self.names.scopes[-1][text_of(one)] = known
                mentioned = self._mentioned(value) if value is not None else []
                if one.parent is not None and one.parent.type == "structured_binding_declarator":
                    for other in one.parent.named_children[1:]:
                        self._declare(text_of(other), UNKNOWN, node)
                return [self._lost(variable, node, unread(node, "", mentioned))]
        return []

    def _mentioned(self, place: Node) -> list[ast.expr]:
        """Names that stand somewhere, for whoever asks what of a tile arrives."""
        found = [self.names.find(text_of(one)) for one in inside(place) if one.type == "identifier"]
        return [named(one.name, place) for one in found if one is not None and one.kind != RECORD and one.why != ARRAY]

    def _unpacked(self, target: Node, value: Node, node: Node) -> list[ast.stmt]:
        found = value_of(value, self.names)
        parts = [self._declare(text_of(one), INT, node) for one in target.named_children]
        stores: list[ast.expr] = [named(one.name, target, ast.Store()) for one in parts]
        return [ast.Assign([ast.Tuple(stores, ast.Store())], found.tree)]

    def _lambda(self, target: Node, node: Node, outer: Node) -> list[ast.stmt]:
        """Function of its parameters, and of outer names that nothing assigns twice; any other is not read."""
        name, body = text_of(target), node.child_by_field_name("body")
        declarator = node.child_by_field_name("declarator")
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        wanted = [parameter_of(one, self.calls) for one in (listed.named_children if listed is not None else [])]
        spelled = text_of(node).partition("{")[0]
        by_reference = re.search(r"&[^,()]*\w\s*[,)=]", spelled.partition("]")[2]) and "const" not in spelled
        if body is None or None in wanted or by_reference or "mutable" in spelled or "->" in spelled:
            self._declare(name, UNKNOWN, outer)
            return []
        parameters = [one for one in wanted if one is not None]
        inner = Statements(self.calls, body, parameters, result=INT, is_lenient=self.is_lenient)
        own = {one.name for one in parameters} | inner.names.declared
        captured = {text_of(one) for one in inside(body) if one.type == "identifier"} - own
        assigned = {text_of(one) for one, _ in _targets(body)} - inner.names.declared
        stores = [text_of(one) for one, _ in _targets(_function_of(outer))]
        if assigned or any(self.names.find(one) and stores.count(one) for one in captured):
            self._declare(name, UNKNOWN, outer)
            return [self._lost(one, outer) for spelled in assigned if (one := self.names.find(spelled))]
        inner.names.scopes.insert(0, {one: known for one in captured if (known := self.names.find(one))})
        made = self._declare(name, INT, outer)
        unique = self.names.fresh(f"{name}_function")
        args = [placed(ast.arg(one.name), node) for one in parameters]
        given = ast.arguments([], [], None, args, [None] * len(args), None, [])
        found = ast.FunctionDef(unique, given, inner.function_body(body) or [ast.Pass()], [])
        self.functions.append(placed(found, node))
        self.names.lambdas[name] = (unique, parameters)
        self.names.scopes[-1][name] = made
        return []

    def _expression_statement(self, node: Node) -> list[ast.stmt] | None:
        inner = node.named_children[0] if node.named_children else None
        if inner is None:
            return []
        if inner.type == "assignment_expression":
            return self._assigned(inner)
        if inner.type == "update_expression":
            return self._stepped(inner)
        if inner.type == "cast_expression" and text_of(inner).replace(" ", "").startswith("(void)"):
            return []
        return self._called(inner) if inner.type == "call_expression" else None

    def _assigned(self, node: Node) -> list[ast.stmt] | None:  # noqa: PLR0911 - one a kind
        target, value, operator = (node.child_by_field_name(part) for part in ("left", "right", "operator"))
        if target is None or value is None or operator is None:
            return None
        if target.type != "identifier":
            return self._stored(target, node)
        op, variable = text_of(operator), self.names.find(text_of(target))
        if variable is None:
            known = text_of(target)
            self._outer.add(known)
            self.names.scopes[0][known] = variable = Variable(
                known, UNSIGNED, False, *self.escaped.get(known, ("", None))
            )
        if op == "=" and value.type == "assignment_expression":
            first, inner = self._assigned(value), value.child_by_field_name("left")
            if first is None or inner is None or inner.type != "identifier":
                return None
            return [*first, self._set(variable, value_of(inner, self.names), node)]
        if variable.kind in (UNKNOWN, RECORD):
            return [] if variable.kind == UNKNOWN else None
        found = value_of(value, self.names)
        if op != "=":
            if found.kind in (UNKNOWN, RECORD):
                return [self._lost(variable, node)]
            return self._updated(variable, op[:-1], found, node)
        return [self._set(variable, found, node)]

    def _set(self, variable: Variable, found: Value, node: Node) -> ast.stmt:
        if found.kind in (UNKNOWN, RECORD):
            return self._lost(variable, node, found.tree if is_unread(found.tree) else None)
        tree = converted(found, variable.kind, node, self.names)
        return ast.Assign([named(variable.name, node, ast.Store())], tree)

    def _updated(self, variable: Variable, op: str, found: Value, node: Node) -> list[ast.stmt]:
        """``a += b``."""
        operator = ast.parse(f"a {op.replace('/', '//')} b", mode="eval").body
        assert isinstance(operator, ast.BinOp)
        kind = UNSIGNED if UNSIGNED in (variable.kind, found.kind) else INT
        if kind == UNSIGNED and variable.kind != UNSIGNED:  # only these are the same whatever the signs
            if op not in ("+", "-", "*"):
                return [self._lost(variable, node)]
            kind = INT
        other = converted(found, kind, node, self.names)
        if kind == UNSIGNED and op == "-":
            whole = ast.BinOp(named(variable.name, node), ast.Sub(), other)
            return [ast.Assign([named(variable.name, node, ast.Store())], self.names.guarded(whole, node))]
        if variable.kind == BOOL:
            return [self._lost(variable, node)]
        return [ast.AugAssign(named(variable.name, node, ast.Store()), operator.op, other)]

    def _stepped(self, node: Node) -> list[ast.stmt] | None:
        target = node.child_by_field_name("argument")
        if target is None or target.type != "identifier":
            return self._stored(target, node) if target is not None else None
        variable = self.names.find(text_of(target))
        if variable is None or variable.kind not in (INT, UNSIGNED):
            return None
        op = "+" if "++" in text_of(node) else "-"
        return self._updated(variable, op, Value(placed(ast.Constant(1), node), INT), node)

    def _stored(self, target: Node, node: Node) -> list[ast.stmt]:
        """Store to memory: at an address with what of it is read; to an array of the function, nothing."""
        if node in self.handed:
            value = node.child_by_field_name("right")
            tree = expression(value, self.names) if value is not None else unread(node)
            return [ast.Assign([named(handed_name(node), node, ast.Store())], tree)]
        if target.type not in ("subscript_expression", "pointer_expression", "field_expression"):
            names = [self.names.find(name) for name in _stored_names(target)]  # ``(a) = b``, ``(c ? a : b) = d``
            return [self._lost(one, node) for one in names if one is not None and one.kind]
        base = next((one for one in inside(target) if one.type in ("identifier", "this")), None)
        known = self.names.find(text_of(base)) if base is not None else None
        if target.type not in ("subscript_expression", "pointer_expression", "field_expression") or (
            known is not None and known.why == ARRAY
        ):
            return []
        return [self._effect("store", target, node)]

    def _effect(self, word: str, place: Node, node: Node) -> ast.stmt:
        """``tl.store`` of the names that stand in a place, or a call that nothing knows."""
        parts: list[ast.expr] = []
        index = place.child_by_field_name("indices") if place.type == "subscript_expression" else None
        if index is not None and len(index.named_children) == 1:
            outer, self.names.before = self.names.before, []
            found = value_of(index.named_children[0], self.names)
            parts = [found.tree] if not is_unread(found.tree) and not self.names.before else []
            self.names.before = outer
        parts += self._mentioned(place if not parts else place.named_children[0])
        function = ast.Attribute(ast.Name("tl", ast.Load()), word, ast.Load())
        return placed(ast.Expr(ast.Call(function, [ast.Constant(0), *parts], [])), node)

    def _called(self, node: Node) -> list[ast.stmt]:
        """Call by itself: of a function of the file that hands out values, or of whatever may change what it takes."""
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        name = text_of(function).rpartition("::")[2].partition("<")[0] if function is not None else ""
        if _ENDS.match(name):
            if self.outputs or self.kind_of_result:
                raise Refused(name, node)
            return [ast.Return(None)]
        given = [one for one in listed.named_children if one.type != "comment"] if listed is not None else []
        outputs = self.calls.outputs.get(name, ())
        if outputs and name in self.calls.results and not self.calls.results[name] and name not in self.calls.unread:
            made = self._handed_out(name, given, node)
            if made is not None:
                return made
        if divided(node, self.names) is not None:
            value_of(node, self.names)  # what it assigns goes before
            return []
        if name in PURE or name.startswith("__sync"):
            return []
        return [self._effect("call", node, node)]

    def _handed_out(self, name: str, given: list[Node], node: Node) -> list[ast.stmt] | None:
        """Call of a function of the file that returns nothing and assigns its parameters."""
        wanted, outputs = self.calls.kinds[name], self.calls.outputs.get(name, ())
        if len(given) != len(wanted) or outputs != self.calls.references.get(name, ()) or not outputs:
            return None
        args: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        targets: list[Variable] = []
        for one, parameter in zip(given, wanted, strict=True):
            if parameter.name in outputs:
                variable = self.names.find(text_of(one)) if one.type == "identifier" else None
                if variable is None or variable.kind != parameter.kind or variable.why or variable in targets:
                    return None
                targets.append(variable)
                keywords.append(ast.keyword(parameter.name, named(variable.name, node)))
                continue
            value = value_of(one, self.names)
            args.append(converted(value, parameter.kind, node, self.names) if value.kind else value.tree)
        call = placed(ast.Call(ast.Name(name, ast.Load()), args, [*self._numbers(node, name), *keywords]), node)
        stores: list[ast.expr] = [named(one.name, node, ast.Store()) for one in targets]
        return [ast.Assign([stores[0] if len(stores) == 1 else ast.Tuple(stores, ast.Store())], call)]

    def _numbers(self, call: Node, name: str) -> list[ast.keyword]:
        """Numbers of a template, ``f<8>(x)``, by their names."""
        function = call.child_by_field_name("function")
        inner = next((one for one in inside(function) if one.type == "template_function"), None) if function else None
        listed = inner.child_by_field_name("arguments") if inner is not None else None
        return numbers_of(name, [*listed.named_children] if listed is not None else [], self.names) or []

    def _if_statement(self, node: Node) -> list[ast.stmt] | None:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        other = node.child_by_field_name("alternative")
        if condition is None or body is None or any(text_of(one) == "consteval" for one in node.children):
            return None
        test = expression(condition, self.names)
        changed = [self._lost(variable, at) for variable, at in self._changed_inside(condition).items()]
        outer, self.names.before = self.names.before, []
        then = self.block(body)
        orelse = self.block(other.named_children[-1]) if other is not None and other.named_children else []
        self.names.before = outer
        return [*changed, ast.If(test, then or [ast.Pass()], orelse)] if then or orelse else changed

    def _for_statement(self, node: Node) -> list[ast.stmt] | None:
        """``for (int t = start; t < stop; t += step)``, of which the body changes neither."""
        first, condition, update, body = (
            node.child_by_field_name(part) for part in ("initializer", "condition", "update", "body")
        )
        if first is None or condition is None or update is None or body is None or first.type != "declaration":
            return None
        if self._changed_inside(condition) or len(list(first.children_by_field_name("declarator"))) != 1:
            return None
        self.names.scopes.append({})
        begun = self.statement(first)
        self._not_negative(first)
        outer, self.names.before = self.names.before, []
        test, steps = expression(condition, self.names), self._update(update)
        hoisted, self.names.before = self.names.before, outer
        inner = self.block(body)
        self.names.scopes.pop()
        changed = {one.id for stmt in inner for one in ast.walk(stmt) if _is_store(one)}
        match (begun[-1:], test, steps):
            case (
                [ast.Assign([ast.Name(name)], start)],
                ast.Compare(ast.Name(tested), [ast.Lt()], [stop]),
                [ast.AugAssign(ast.Name(stepped), ast.Add(), step)],
            ) if name == tested == stepped and name not in changed:
                read = {one.id for part in (stop, step) for one in ast.walk(part) if isinstance(one, ast.Name)}
                within = {one.id for stmt in hoisted for one in ast.walk(stmt) if isinstance(one, ast.Name)}
                if (read | within) & (changed | {name}):
                    return None
                over = placed(ast.Call(ast.Name("range", ast.Load()), [start, stop, step], []), node)
                loop = ast.For(named(name, node, ast.Store()), over, inner or [ast.Pass()], [])
                return [*begun[:-1], *hoisted, loop]
        return None

    def _not_negative(self, first: Node) -> None:
        """Take note of a loop's index that begins at an unsigned value: it only grows."""
        target = first.child_by_field_name("declarator")
        value = target.child_by_field_name("value") if target is not None else None
        outer, self.names.before = self.names.before, []
        if value is not None and value_of(value, self.names).kind == UNSIGNED:
            self.names.not_negative |= {known.name for known in self.names.scopes[-1].values()}
        self.names.before = outer

    def _update(self, node: Node) -> list[ast.stmt]:
        return (self._assigned(node) if node.type == "assignment_expression" else None) or (
            self._stepped(node) if node.type == "update_expression" else None
        ) or []  # fmt: skip

    def _while_statement(self, node: Node) -> list[ast.stmt] | None:
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
        if condition is None or body is None or self._changed_inside(condition):
            return None
        before = len(self.names.before)
        test = expression(condition, self.names)
        if len(self.names.before) > before:  # what the condition needs would be computed once
            del self.names.before[before:]
            return None
        outer, self.names.before = self.names.before, []
        inner = self.block(body)
        self.names.before = outer
        return [ast.While(test, inner or [ast.Pass()], [])]

    def _return_statement(self, node: Node) -> list[ast.stmt]:
        if self.outputs:
            return [self.result(node)]
        inner = [one for one in node.named_children if one.type != "comment"]
        if not inner:
            return [ast.Return(None)]
        found = value_of(inner[0], self.names)
        if isinstance(found.tree, ast.Tuple) or not self.kind_of_result or not found.kind:
            return [ast.Return(found.tree)]
        return [ast.Return(converted(found, self.kind_of_result, node, self.names))]

    def _break_statement(self, node: Node) -> list[ast.stmt]:
        return [ast.Break()]

    def _continue_statement(self, node: Node) -> list[ast.stmt]:
        return [ast.Continue()]

    def _unread(self, node: Node) -> list[ast.stmt]:
        """Names that a statement without a counterpart may change, unread, and whether it stores."""
        leaving = _leaving(node)
        if leaving is not None:
            if self.is_lenient:  # what stands inside it
                return [stmt for one in node.named_children if one.type.endswith(("statement", "declaration"))
                        for stmt in self.statement(one)]  # fmt: skip
            raise Refused(" ".join(text_of(leaving).split())[:60], leaving)
        lost: dict[Variable, Node] = {}
        found: list[ast.stmt] = []
        for target in {name for one, _ in _targets(node, plain=False) for name in _stored_names(one)}:
            if (variable := self.names.find(target)) is not None:
                lost[variable] = node
        if node.type == "declaration":
            for one in node.children_by_field_name("declarator"):
                found += self._lose_declarators(one, node)
        lost |= self._changed_inside(node, at=node)
        found += [self._lost(variable, node) for variable in lost]
        stores = [one for one, _ in _targets(node, plain=False) if one.type != "identifier"]
        if stores:
            found.append(placed(ast.If(unread(node), [self._effect("store", stores[0], node)], []), node))
        return found

    def _changed_inside(self, node: Node, at: Node | None = None) -> dict[Variable, Node]:
        """Names that the parts of a statement may change beside what it is read as."""
        found: dict[Variable, Node] = {}
        top = node.named_children[0] if node.type == "expression_statement" and node.named_children else node
        modelled = top if top.type in ("assignment_expression", "update_expression") else None
        for one in inside(node):
            names: list[str] = []
            if one.type in ("assignment_expression", "update_expression") and one != modelled:
                target = one.child_by_field_name("left" if one.type == "assignment_expression" else "argument")
                chained = modelled is not None and one.type == "assignment_expression" and one.parent == modelled
                names = _stored_names(target) if target is not None and not chained else []
            elif one.type == "call_expression":
                names = self._taken_by_reference(one)
                called = text_of(one.child_by_field_name("function") or one)
                names += [] if called in PURE else [name for name in self.names.scopes[0] if name in self._outer]
            elif one.type == "ERROR" or "asm" in one.type:
                names = [text_of(part) for part in inside(one) if part.type == "identifier"]
            elif one.type in ("argument_list", "initializer_list") and _constructs(one, self.calls):
                names = [text_of(part) for part in one.named_children if part.type == "identifier"]
            elif one.type == "binary_expression" and text_of(one.child_by_field_name("operator") or one) == ">>":
                left, right = one.child_by_field_name("left"), one.child_by_field_name("right")
                if left is not None and right is not None and right.type == "identifier":
                    outer, self.names.before = self.names.before, []
                    names = [text_of(right)] if not value_of(left, self.names).kind else []
                    self.names.before = outer
            for name in names:
                variable = self.names.find(name)
                if variable is not None and not variable.is_const and variable.kind:
                    found[variable] = at or one
        return found

    def _taken_by_reference(self, call: Node) -> list[str]:
        """Plain names among the arguments of a call that may take them by reference."""
        function, listed = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if function is None or listed is None:
            return []
        name = text_of(function).rpartition("::")[2].partition("<")[0].strip()
        given = [one for one in listed.named_children if one.type != "comment"]
        if divided(call, self.names) is not None:
            return []
        if name in self.names.lambdas or ((name in PURE or name == "static_cast") and name not in self.calls.unread):
            return []
        if name in self.calls.kinds and name not in self.calls.unread and self.names.find(name) is None:
            wanted, outputs = self.calls.kinds[name], self.calls.references.get(name, ())
            if outputs and self._is_modelled(call, name):
                return []
            given = [one for one, known in zip(given, wanted, strict=False) if known.name in outputs]
        elif (found := self.calls.included(name)) is not None and not getattr(found, "by_reference", True):
            return []
        return [text_of(one).strip("()& ") for one in given if one.type != "number_literal" and _is_name(one)]

    def _is_modelled(self, call: Node, name: str) -> bool:
        """Whether a call stands by itself and its function returns nothing, so that it is read as an assignment."""
        alone = call.parent is not None and call.parent.type == "expression_statement"
        outer, self.names.before = self.names.before, []
        listed = call.child_by_field_name("arguments")
        given = [one for one in listed.named_children if one.type != "comment"] if listed is not None else []
        plain = alone and not self.calls.results.get(name, INT) and self._handed_out(name, given, call) is not None
        self.names.before = outer
        return plain

    def _lost(self, variable: Variable, node: Node, tree: ast.expr | None = None) -> ast.stmt:
        return placed(ast.Assign([named(variable.name, node, ast.Store())], tree or unread(node)), node)


_STRUCTURED = {"if_statement", "for_statement", "while_statement", "compound_statement", "do_statement"}


def handed_name(node: Node) -> str:
    """Name of Python for the part of a parameter that an assignment stores to."""
    target = node.child_by_field_name("left")
    return re.sub(r"\W+", "_", text_of(target)).strip("_") if target is not None else ""


def _is_store(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _stored_names(target: Node) -> list[str]:
    """Names that a store to a place changes: all in brackets or a choice, none of an element's or a field's address."""
    if target.type in ("subscript_expression", "pointer_expression", "field_expression"):
        return []
    return [text_of(one) for one in inside(target) if one.type == "identifier"]


def _is_name(node: Node) -> bool:
    """Whether an argument is a plain name, in brackets or with its address taken."""
    return re.fullmatch(r"[(&\s]*[A-Za-z_]\w*[)\s]*", text_of(node)) is not None


def _has_error(node: Node) -> bool:
    """Whether the grammar has not understood a statement; of one with a block, its head."""
    if not node.has_error:
        return False
    return node.type not in _STRUCTURED or any(one.type == "ERROR" or one.is_missing for one in node.children)


def _leaving(node: Node) -> Node | None:
    """Part of a statement without a counterpart that may leave the function, or that a macro may be."""
    for one in inside(node):
        if one.type in _LEAVES or one.type == "return_statement":
            return one
        if "asm" in one.type and _ENDS_IN_ASM.search(text_of(one)):
            return one
        if one.type == "expression_statement" and one.named_children and one.named_children[0].type == "identifier":
            return one
    return None


def _within(node: Node, region: Region) -> bool:
    return region.begin <= node.start_point[0] + 1 and node.end_point[0] + 1 <= region.end


def _constructs(node: Node, calls: Calls) -> bool:
    """Whether a list is what an object of an unknown class is made from."""
    parent = node.parent
    if parent is None or parent.type not in ("init_declarator", "compound_literal_expression", "new_expression"):
        return False
    holder = parent.parent if parent.type == "init_declarator" else parent
    kind = holder.child_by_field_name("type") if holder is not None else None
    return kind is None or not kind_of_type(text_of(kind), calls.aliases)


def _function_of(node: Node) -> Node:
    while node.parent is not None and node.type not in ("function_definition", "lambda_expression"):
        node = node.parent
    return node


def _targets(root: Node, *, plain: bool = True) -> Iterator[tuple[Node, Node]]:
    """What assignments and steps below a node store to."""
    for node in inside(root):
        if node.type in ("assignment_expression", "update_expression"):
            target = node.child_by_field_name("left" if node.type == "assignment_expression" else "argument")
            if target is not None and (target.type == "identifier" or not plain):
                yield target, node


def _escaped(body: Node) -> Iterator[tuple[str, str, Node]]:
    """Names that something else than their own assignments may change, and what."""
    for node in inside(body):
        said = " ".join(text_of(node).split())[:80]
        if node.type == "pointer_expression" and text_of(node).startswith("&"):
            target = node.child_by_field_name("argument")
            whole = node.parent.parent if node.parent is not None and node.parent.type == "argument_list" else None
            said = " ".join(text_of(whole).split())[:80] if whole is not None else said
            if target is not None and target.type == "identifier":
                yield text_of(target), said, node
        if node.type in ("init_declarator", "for_range_loop"):
            target, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
            if target is not None and value is not None and target.type == "reference_declarator":
                yield from ((text_of(one), said, node) for one in _bound(value))
        if node.type == "call_expression" and re.match(r"(?:std\s*::\s*)?(addressof|ref|tie|forward_as_tuple)\b", said):
            yield from ((text_of(one), said, node) for one in inside(node) if one.type == "identifier")
        if node.type == "init_declarator":
            target, value = node.child_by_field_name("declarator"), node.child_by_field_name("value")
            if target is not None and target.type == "pointer_declarator" and value is not None:
                yield from ((text_of(one), said, node) for one in _bound(value) if value.type == "call_expression")
        if node.type == "gnu_asm_expression":
            for one in inside(node):
                if one.type == "gnu_asm_output_operand":
                    yield from ((text_of(part), said, node) for part in inside(one) if part.type == "identifier")
        if node.type == "lambda_expression":
            parts = {one.child_by_field_name("declarator") for one in inside(node) if one.type == "init_declarator"}
            own = {text_of(one) for one in parts if one is not None}
            yield from ((text_of(one), said, node) for one, _ in _targets(node) if text_of(one) not in own)


def _bound(value: Node) -> Iterator[Node]:
    """Names that a reference may be bound to."""
    if value.type == "identifier":
        yield value
    elif value.type in ("parenthesized_expression", "conditional_expression", "comma_expression", "initializer_list",
                        "argument_list", "assignment_expression", "update_expression", "call_expression"):  # fmt: skip
        for one in value.named_children:
            yield from _bound(one)


def parameter_of(node: Node, calls: Calls) -> Variable | None:
    """Parameter of a function or lambda; None for what is none. Its ``why`` says why it is not read."""
    if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
        return None
    name, of_type = node.child_by_field_name("declarator"), node.child_by_field_name("type")
    while name is not None and name.type != "identifier":
        inner = name.child_by_field_name("declarator")
        name = inner or next((one for one in name.named_children if one.type != "type_qualifier"), None)
    if name is None or of_type is None:
        return Variable(f"unnamed_{node.start_byte}", UNKNOWN, True, "")
    text = " ".join(text_of(node).split())
    kind = kind_of_type(text_of(of_type), calls.aliases)
    words = {text_of(one) for one in node.named_children if one.type == "type_qualifier"}
    declarator = node.child_by_field_name("declarator")
    is_plain = declarator is not None and declarator.type == "identifier"
    is_reference = declarator is not None and declarator.type == "reference_declarator"
    if of_type.type in ("placeholder_type_specifier", "auto") or text_of(of_type) == "auto":
        kind = INT
    if is_plain and not kind:
        narrow = of_type.type in ("primitive_type", "sized_type_specifier")
        alias = text_of(of_type) in calls.aliases
        return Variable(text_of(name), UNKNOWN if narrow or alias else RECORD, "const" in words, text if narrow else "")
    if is_reference and not kind:
        return Variable(text_of(name), RECORD, "const" in words)
    if not (is_plain or is_reference) or words - {"const", "constexpr"}:
        return Variable(text_of(name), UNKNOWN, False, f"pointer {text}")
    return Variable(text_of(name), kind, "const" in words)
