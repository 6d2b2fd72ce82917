"""Statements of C in Python's syntax tree: declarations, assignments, ``if``, counted loops, ``return``.

An allow-list of node kinds. What is not on it leaves every name unread that it may change (`c_effects`). What may leave
the function in a way that is not modelled (``goto``, ``throw``, a ``return`` in a ``switch``) is noted, with its line,
and the function is refused.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Sequence
from keyword import iskeyword
from typing import TypeGuard

from tree_sitter import Node

from swizzle_sim.triton_source.c_calls import PURE, agrees, called, divided, given_to, numbers_of
from swizzle_sim.triton_source.c_effects import (
    ASSIGNS,
    MEMORY,
    changed,
    escaped,
    function_around,
    handed_out,
    leaving,
    stored_names,
    target_of,
)
from swizzle_sim.triton_source.c_expressions import LAUNCH, apart, converted, expression, kinds_in, tuple_as, value_of
from swizzle_sim.triton_source.c_functions import definition, function_of
from swizzle_sim.triton_source.c_names import (
    UNREAD,
    Calls,
    Function,
    Names,
    Value,
    Variable,
    assigned,
    is_unread,
    named,
    placed,
    unread,
)
from swizzle_sim.triton_source.c_outputs import handed_name
from swizzle_sim.triton_source.c_preprocessor import Region
from swizzle_sim.triton_source.c_types import (
    BOOL,
    DEDUCED,
    INT,
    RECORD,
    UNKNOWN,
    UNSIGNED,
    fields,
    identifiers,
    inside,
    kind_of_type,
    last_name,
    parts,
    said,
    text_of,
)
from swizzle_sim.triton_source.slices import loaded

ARRAY = "an array, or a static variable, of the function"
_RESERVED = {"no_tile", "has_returned", "unread"}  # names of Python that mean something else to the reader
_ENDS = re.compile(r"^(__builtin_amdgcn_endpgm|__builtin_trap|__trap|abort|exit|__builtin_unreachable)$")
_PLAIN = {  # children of a declaration that say nothing which the reader does not model
    "type_qualifier", "primitive_type", "sized_type_specifier", "type_identifier", "qualified_identifier",
    "placeholder_type_specifier", "auto", "init_declarator", "identifier", "comment", "storage_class_specifier",
    "template_type", "dependent_type",
}  # fmt: skip
_STRUCTURED = {"if_statement", "for_statement", "while_statement", "compound_statement", "do_statement"}


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
        handed: Sequence[Node] = (),
    ):
        self.calls, self.outputs, self.kind_of_result = calls, outputs, result
        self._returned: set[tuple[str, tuple[str, ...]]] = set()  # kinds of what it returns
        self.kinds: tuple[str, ...] = ()  # of the list that it is declared to return
        self.functions: list[ast.FunctionDef] = []  # lambdas with a name
        self.assumed: list[str] = []
        self.regions = regions or []
        self.handed = handed  # stores to parts of parameters, by which a function that is refused hands out a tile
        self.refused: tuple[str, int] | None = None  # construct that it cannot be read with, and its line
        self.names = names = Names(calls)
        names.taken = {text_of(one) for one in inside(body) if not one.named_children} | {
            one.name for one in parameters
        }
        names.taken |= _RESERVED
        names.flags = {one.name for one in parameters if one.kind == BOOL}
        self._spent: set[str] = set()  # names declared so far
        self._pointers = {one.name for one in parameters if one.kind == UNKNOWN}
        self._objects: dict[str, bool] = {}  # declared here and no pointers; whether each is made of a list of values
        self._axes: dict[str, int] = {}  # of its arrays
        self._survey(body, [one.name for one in parameters])
        names.scopes[0] = {one.name: one for one in parameters}
        self.escaped = {name: (what, at) for name, what, at in escaped(body, names)}
        for one in parameters:
            why, at = self.escaped.get(one.name, (one.why, None))
            names.scopes[0][one.name] = one._replace(why=why, at=at)

    def _survey(self, body: Node, parameters: list[str]) -> None:
        """Take note of what is declared and which fields are assigned anywhere."""
        names, declared = self.names, list(parameters)
        for node in inside(body):
            target, value = fields(node, "declarator", "value")
            if node.type in ("init_declarator", "declaration", "parameter_declaration"):
                declared += [text_of(one) for one in node.children_by_field_name("declarator")]
            part = value.child_by_field_name("field") if node.type == "init_declarator" and value is not None else None
            names.copied |= {text_of(part)} if part is not None and text_of(part) == text_of(target) else set()
            names.has_lambda = names.has_lambda or node.type == "lambda_expression"
            if node.type in ASSIGNS or (node.type == "pointer_expression" and text_of(node).startswith("&")):
                left = target_of(node)
                names.copied -= {*stored_names(left)} if node.type in ASSIGNS else set()
                while left is not None and left.type in MEMORY:  # ``a.b[k].c = d``
                    names.dirty.add(text_of(left.child_by_field_name("field")))
                    left = left.child_by_field_name("argument")
            elif node.type == "call_expression" and (own := names.own_function(called(node)[0])) is not None:
                for one, wanted in zip(called(node)[1], own.parameters, strict=False):
                    names.dirty |= {text_of(one.child_by_field_name("field"))} if wanted.name in own.changed else set()
        names.declared = set(declared)
        names.copied = {name for name in names.copied if declared.count(name) == 1}

    def function_body(self, block: Node) -> list[ast.stmt]:
        """Statements of the function's block."""
        around = [one for one in self.regions if parts(block) and all(within(stmt, one) for stmt in parts(block))]
        for region in around:
            if block.start_point[0] + 1 <= region.begin <= block.end_point[0] + 1:
                self.assumed.append(f"line {region.begin}: {region.condition}")
                self.regions = [one for one in self.regions if one.first != region.first]
        return self._sequence(block.named_children)

    def deduced(self, function: Function) -> Function:
        """Function with the kind that all its returns have, where none is declared."""
        kind, kinds = next(iter(self._returned), (RECORD, ())) if len(self._returned) == 1 else (RECORD, ())
        is_known = function.result == DEDUCED and kind != RECORD  # a tuple's is `UNKNOWN`
        return (
            function._replace(result=kind or RECORD, kinds=kinds) if is_known else function
        )  # of a tuple, or not read

    def _sequence(self, nodes: list[Node]) -> list[ast.stmt]:
        """Statements in their order; between lines of a condition that nothing decides, under a flag for its truth."""
        found: list[ast.stmt] = []
        while nodes:
            branches = self._branches(nodes)
            count = sum(len(part) for _, part in branches)
            found += self._under_flags(branches) if count else self.statement(nodes[0])
            nodes = nodes[max(count, 1) :]
        return found

    def _branches(self, nodes: list[Node]) -> list[tuple[str, list[Node]]]:
        """Branches of the condition that the next statements stand in, each with its flag; none where not plain."""
        line, block = nodes[0].start_point[0] + 1, nodes[0].parent
        first = min((one.first for one in self.regions if one.begin <= line <= one.end), default=0)
        regions = [one for one in self.regions if one.first == first]
        end = max((one.end for one in regions), default=0)
        inner = [node for node in nodes if node.start_point[0] + 1 <= end]
        found = [(_flag_of(one), [node for node in inner if within(node, one)]) for one in regions]
        odd = any(one.type in ("lambda_expression", "case_statement") for node in inner for one in inside(node))
        is_inside = block is not None and block.start_point[0] < first <= end <= block.end_point[0] + 1
        if odd or not is_inside or sum(len(part) for _, part in found) < len(inner):
            return []
        self.regions = [one for one in self.regions if one.first != first]
        return found

    def _under_flags(self, branches: list[tuple[str, list[Node]]]) -> list[ast.stmt]:
        """``if`` of a flag for each branch; a name that not all of them declare alike has no value behind them."""
        outer, spent = self.names.scopes[-1], set(self._spent)
        bodies: list[list[ast.stmt]] = []
        scopes: list[dict[str, Variable]] = []
        for _, inner in branches:
            scopes.append(dict(outer))
            self.names.scopes[-1], self._spent = scopes[-1], set(spent)
            bodies.append(self._sequence(inner))
        has_else = [flag for flag, _ in branches[-2:]] == [branches[-1][0]] * 2
        self.names.scopes[-1] = outer
        for name in {*itertools.chain(*scopes)} - outer.keys():
            each = [*dict.fromkeys(scope.get(name) for scope in scopes if has_else or name in scope)]
            one = next(variable for variable in each if variable is not None)
            alike = len(each) == 1 and has_else
            outer[name] = one if alike else one._replace(kind=UNKNOWN, why=f"{name}, which {branches[0][0]} decides")
            self.names.not_negative.discard(one.name)
            self._spent.add(name)
        found = bodies.pop() if has_else else []
        for (flag, nodes), body in zip(branches[: len(bodies)][::-1], bodies[::-1], strict=True):
            test = ast.Compare(ast.Name(flag, ast.Load()), [ast.NotEq()], [ast.Constant(0)])
            place = next(node for _, part in branches for node in (*nodes, *part))
            found = [placed(ast.If(test, body or [ast.Pass()], found), place)]
        return found

    def block(self, node: Node) -> list[ast.stmt]:
        """Statements between braces, or the single one without, in a scope of their own."""
        outer, self.names.before = self.names.before, []
        self.names.scopes.append({})
        inner = node.named_children if node.type == "compound_statement" else [node]
        found = self._sequence(inner)
        self.names.scopes.pop()
        self.names.before = outer
        return found

    def result(self, node: Node) -> ast.stmt:
        """``return`` of what the function hands out through its parameters."""
        values: list[ast.expr] = [named(name, node) for name in self.outputs]
        return placed(ast.Return(values[0] if len(values) == 1 else ast.Tuple(values, ast.Load())), node)

    def statement(self, node: Node) -> list[ast.stmt]:
        """One statement in Python; what has no counterpart leaves the names that it may change unread."""
        if node.type in ("comment", ";"):
            return []
        reader = getattr(self, f"_{node.type}", None)
        beside = self._beside(node) if node.type not in _STRUCTURED else {}
        is_odd = self._is_open(node) or _has_error(node) or any(at.type in ASSIGNS for at in beside.values())
        outer, self.names.before = self.names.before, []
        found = None if is_odd or reader is None else reader(node)
        before, self.names.before = self.names.before, outer
        if found is None:
            return self._unread(node)
        given = {one.id for stmt in found for one in ast.walk(stmt) if _is_store(one)}  # after all that its value does
        after = [self._lost(variable, at) for variable, at in beside.items() if variable.name not in given]
        for one in after:
            one.by_call = True  # type: ignore[attr-defined]
        return [placed(one, node) for one in [*before, *found, *after]]

    def _is_open(self, node: Node) -> bool:
        """Whether a condition of the preprocessor that nothing decides stands around a statement, or in its head."""
        body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
        head = (body.start_point if body is not None else node.end_point)[0] + 1
        around = any(one.begin <= head and node.start_point[0] + 1 <= one.end for one in self.regions)
        return around and node.type != "compound_statement"

    def _beside(self, node: Node) -> dict[Variable, Node]:
        """Variables that a statement may change beside what it is read as, and what changes each."""
        inner: list[Node | None] = [node]
        if node.type == "expression_statement" and node.named_children and node.named_children[0].type in ASSIGNS:
            top = node.named_children[0]
            inner = [top.child_by_field_name("right"), *parts(target_of(top))]
        return self._known({name: at for one in inner for name, at in changed(one, self.names)})

    def _known(self, found: dict[str, Node]) -> dict[Variable, Node]:
        known = {self.names.find(name): at for name, at in found.items()}
        return {one: at for one, at in known.items() if one is not None and not one.is_const and one.kind}

    def _nothing(self, node: Node) -> list[ast.stmt]:
        return []

    _type_definition = _alias_declaration = _using_declaration = _static_assert_declaration = _nothing
    _struct_specifier = _nothing

    def _compound_statement(self, node: Node) -> list[ast.stmt]:
        return self.block(node)

    def _do_statement(self, node: Node) -> list[ast.stmt] | None:
        """``do { .. } while (0)``, as macros write a block."""
        condition, body = fields(node, "condition", "body")
        once = text_of(condition).replace(" ", "") in ("(0)", "(false)")
        leaves = any(one.type in ("break_statement", "continue_statement") for one in inside(node))
        return self.block(body) if once and not leaves and body is not None else None

    def _declaration(self, node: Node) -> list[ast.stmt] | None:
        text = text_of(node.child_by_field_name("type"))
        words = {
            text_of(one) for one in node.named_children if one.type in ("type_qualifier", "storage_class_specifier")
        }
        is_plain = {one.type for one in node.named_children} <= _PLAIN and words <= {"const", "constexpr", "static"}
        if not is_plain or ("static" in words and "constexpr" not in words):
            return None
        found: list[ast.stmt] = []
        for one in node.children_by_field_name("declarator"):
            self.names.before = []
            made = self._declared(one, text, is_const=bool(words & {"const", "constexpr"}), node=node)
            found += [*self.names.before, *made]
        self.names.before = []
        return found

    def _declared(self, one: Node, text: str, *, is_const: bool, node: Node) -> list[ast.stmt]:  # noqa: PLR0911 - one a kind
        """One name of a declaration."""
        kind, is_auto = kind_of_type(text, self.calls.aliases), text in ("auto", "decltype(auto)")
        if one.type == "identifier":
            variable = self._declare(text_of(one), kind, node)
            return [self._lost(variable, node)] if kind else []
        target, value = fields(one, "declarator", "value")
        # a name is declared before its value is computed
        if one.type != "init_declarator" or target is None or value is None or text_of(target) in identifiers(value):
            return self._lose_declarators(one, node)
        if value.type == "lambda_expression" and target.type == "identifier":
            return self._lambda(target, value, node)
        if target.type == "structured_binding_declarator" and is_auto:
            return self._unpacked(target, value, node)
        if target.type != "identifier":
            return self._lose_declarators(target, node)
        if value.type in ("argument_list", "initializer_list") and len(value.named_children) == 1 and kind:
            value = value.named_children[0]
        found = value_of(value, self.names) if is_auto or kind else Value(unread(node), UNKNOWN)
        kind = found.kind if is_auto else kind
        if not kind or not found.is_number:
            variable = self._declare(text_of(target), kind, node, is_const=is_const)
            self._objects[variable.name] = value.type == "initializer_list"
            return [self._lost(variable, node, found.tree if is_unread(found.tree) else None)]
        tree = converted(found, kind, one, self.names)
        variable = self._declare(text_of(target), kind, node, is_const=is_const)
        if _is_changed_by_another(variable):
            return [self._lost(variable, node, _changed(tree, variable))]
        if is_const and kind == INT and (found.kind == UNSIGNED or ast.unparse(tree).startswith(LAUNCH)):
            self.names.not_negative.add(variable.name)
        return [assigned(variable.name, tree, target)]

    def _declare(self, name: str, kind: str, node: Node, *, is_const: bool = False) -> Variable:
        """Variable of a new name; of one that an outer scope has, under another name of Python."""
        again = any(name in scope for scope in self.names.scopes) or name in self._spent or name in _RESERVED
        own = self.names.fresh(name) if again else name
        own = self.names.fresh(f"{name}_") if iskeyword(own) else own  # ``in`` is a name in C
        self._spent.add(name)
        made = Variable(own, kind, is_const, *self.escaped.get(name, ("", None)))
        self.names.scopes[-1][name] = made
        return made

    def _lose_declarators(self, declarator: Node, node: Node) -> list[ast.stmt]:
        """Pointers, arrays and references: no integers, under any name; ``int a(b = 0)`` looks like a function."""
        words = [one for one in inside(declarator) if one.type in ("identifier", "type_identifier")]
        value = declarator.child_by_field_name("value")
        if value is None and declarator.parent is not None:
            value = declarator.parent.child_by_field_name("value")
        others = {text_of(one): node for one in words[1:] if "function" in declarator.type}
        lost = [self._lost(one, node) for one in self._known(others)]
        names = [one for one in words if one.type == "identifier"]
        if not names:
            return lost
        own = any(part.type == "array_declarator" for part in inside(declarator)) or "static" in text_of(node).split()
        made_of = self._made_of(value) if value is not None else []
        name = text_of(names[0])
        variable = self._declare(name, UNKNOWN, node)
        kinds = [one.type for one in inside(declarator)]
        points = "parenthesized_declarator" in kinds or "reference_declarator" in kinds  # to an array
        self._axes[variable.name] = 0 if points else kinds.count("array_declarator")
        word = "pointer &" if "reference" in declarator.type else "pointer "
        of_value = not any("pointer" in one.type or "reference" in one.type for one in inside(declarator))
        if of_value and not own:
            self._objects[variable.name] = value is None or value.type == "initializer_list"
        word = said(node)[:80] if of_value else f"{word}{name}"
        self.names.scopes[-1][name] = variable._replace(why=variable.why or (ARRAY if own else word))
        if names[0].parent is not None and names[0].parent.type == "structured_binding_declarator":
            for other in names[0].parent.named_children[1:]:
                self._declare(text_of(other), UNKNOWN, node)
        return [*lost, self._lost(variable, node, unread(node, "", made_of))]

    def _mentioned(self, place: Node) -> list[ast.Name]:
        """Names that stand somewhere, for whoever asks what of a tile arrives."""
        found = [self.names.find(name) for name in identifiers(place)]
        return [named(one.name, place) for one in found if one is not None and one.name not in self.names.lambdas
                and one.kind != RECORD and one.why != ARRAY]  # fmt: skip

    def _made_of(self, place: Node) -> list[ast.expr]:
        """What a place is made of: its value where that is read, else its parts; a name is lost below a division."""
        value, before = apart(place, self.names)
        mentioned = self._mentioned(place)
        if {one.id for one in mentioned if one.id not in self._pointers} <= loaded(value.tree) and not before:
            is_call = isinstance(value.tree, ast.Call) and ast.unparse(value.tree.func) != UNREAD
            is_read = is_call or isinstance(value.tree, ast.BinOp) or not is_unread(value.tree)
            return [value.tree] if is_read else [*mentioned]
        name, _, template = called(place)
        record = place.child_by_field_name("argument")
        known = self.names.find(text_of(record)) if record is not None else None
        kind = template[0] if name == "static_cast" and template else place.child_by_field_name("type")
        is_cast = place.type == "cast_expression" or name == "static_cast"
        to = text_of(kind)
        narrow = is_cast and "*" not in to and kind_of_type(to, self.calls.aliases) in (UNKNOWN, BOOL)
        operator = text_of(place.child_by_field_name("operator")) if place.type == "binary_expression" else "+"
        is_part = place.type == "field_expression" and known is not None and known.name in self._objects
        if narrow or is_part or operator not in ("+", "-", "*", "<<") or place.type == "conditional_expression":
            return [placed(_less(one), place) for one in mentioned]
        if place.type == "lambda_expression" or self._is_own_call(place):
            return [placed(_less(one), place) for one in mentioned]
        if not place.named_children:
            return [*mentioned]
        is_table = record is not None and record.type == "subscript_expression" and self._is_given(record)
        is_address = place.type == "subscript_expression" and not is_table
        return self._made_of_parts(place, "+" if is_address else operator * (place.type == "binary_expression"))

    def _is_own_call(self, place: Node) -> bool:
        """Whether a place is a call of a function or a method of the file, or of what may be a lambda: not followed."""
        name = last_name(place.child_by_field_name("function")) if place.type == "call_expression" else ""
        is_lambda = self.names.has_lambda and self.names.find(name) is not None
        return is_lambda or name.rpartition(".")[2].rpartition("->")[2] in self.calls.functions

    def _is_given(self, place: Node) -> bool:
        """Whether elements are those of a parameter's, each of which may lie anywhere."""
        base = next((one for one in inside(place) if one.type == "identifier"), None)
        known = self.names.find(text_of(base))
        return known is not None and known == self.names.scopes[0].get(text_of(base))

    def _made_of_parts(self, place: Node, operator: str) -> list[ast.expr]:
        """Trees of a place's parts: in one with an operator, which a pointer and its index have, too."""
        inner = parts(place)
        if place.type in ("comma_expression", "subscript_argument_list"):
            return self._made_of(inner[-1])
        if place.type == "call_expression" and inner[0].type == "field_expression":
            inner[0] = inner[0].child_by_field_name("argument") or inner[0]  # of an object
        each = [self._made_of(one) for one in inner]
        if operator and all(len(one) == 1 for one in each):
            return [placed(functools.reduce(lambda a, b: _joined(a, operator, b), [one[0] for one in each]), place)]
        trees = [tree for one in each for tree in one]
        is_call = place.type == "call_expression" and bool(trees)
        return [placed(ast.Call(ast.Name("unread_call", ast.Load()), trees, []), place)] if is_call else trees

    def _unpacked(self, target: Node, value: Node, node: Node) -> list[ast.stmt]:
        found = value_of(value, self.names)
        kinds = itertools.chain(kinds_in(found.tree), itertools.repeat(UNKNOWN))
        own = [self._declare(text_of(one), kind or UNSIGNED, node)
               for one, kind in zip(target.named_children, kinds, strict=False)]  # fmt: skip
        stores: list[ast.expr] = [named(one.name, target, ast.Store()) for one in own]
        made: list[ast.stmt] = [ast.Assign([ast.Tuple(stores, ast.Store())], found.tree)]
        if kinds_in(found.tree) or is_unread(found.tree):
            return made
        outer, self.names.before = self.names.before, []
        for one in own:  # of a sign that nothing decides
            tree = self.names.guarded(named(one.name, target), node)
            self.names.before.append(assigned(one.name, tree, node))
        made += self.names.before
        self.names.before = outer
        return made

    def _lambda(self, target: Node, node: Node, outer: Node) -> list[ast.stmt]:
        """Function of its parameters, and of outer names that nothing assigns twice; any other is not read."""
        name, body = text_of(target), node.child_by_field_name("body")
        head = text_of(node).partition("{")[0]
        function = function_of(node, self.calls)._replace(name=self.names.fresh(f"{name}_function"), result=DEDUCED)
        odd = "mutable" in head or "->" in head or "=" in head.partition("]")[0].strip("[= ") or "<" in head
        if body is None or odd or not function.is_whole or function.changed:
            self._declare(name, UNKNOWN, outer)
            return []
        inner = Statements(self.calls, body, function.parameters, result=DEDUCED)
        captured = {*identifiers(body)} - {one.name for one in function.parameters} - inner.names.declared
        inner.names.scopes.insert(0, {one: kept for one in captured if (kept := self.names.find(one))})
        assigning = [target_of(one) for one in inside(function_around(outer)) if one.type in ASSIGNS]
        stored_to = {name for target in assigning for name in stored_names(target)}
        found = definition(function, function.name, {}, inner.function_body(body) or [ast.Pass()])
        is_read = inner.refused is None and not stored_to & inner.names.scopes[0].keys()
        made = self._declare(name, INT if is_read else UNKNOWN, outer)
        found.is_lambda = True  # type: ignore[attr-defined]
        if is_read:
            self.functions.append(found)
            self.names.lambdas[made.name] = inner.deduced(function)
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

    def _assigned(self, node: Node) -> list[ast.stmt] | None:
        target, value, operator = fields(node, "left", "right", "operator")
        if target is None or value is None:
            return None
        if target.type != "identifier":
            return self._stored(target, node)
        op, name = text_of(operator), text_of(target)
        variable = self.names.find(name)
        if variable is None:
            self.names.outside.add(name)
            variable = Variable(name, UNSIGNED, False, *self.escaped.get(name, ("", None)))
            self.names.scopes[0][name] = variable
        if variable.kind in (UNKNOWN, RECORD):
            return self._pointed(variable, node, op, value)
        found = value_of(value, self.names)
        if op == "=":
            return [self._set(variable, found, node)]
        return self._updated(variable, op[:-1], found, node) if found.is_number else [self._lost(variable, node)]

    def _pointed(self, variable: Variable, node: Node, op: str, value: Node | None) -> list[ast.stmt]:
        """What is stored through a reference, and where a pointer goes; of anything else nothing."""
        if variable.kind == RECORD:
            return self._referred(variable, node) if variable.by_reference else [self._lost(variable, node)]
        if variable.why.startswith("pointer &"):
            return self._referred(variable, node)
        made_of: list[ast.expr] = [named(variable.name, node)] if op != "=" else []
        made_of += self._made_of(value) if value is not None else []
        if op != "=":
            made_of = [functools.reduce(lambda a, b: _joined(a, "+", b), made_of)]
        return [self._lost(variable, node, unread(node, "", made_of))]

    def _referred(self, variable: Variable, node: Node) -> list[ast.stmt]:
        """Store through a reference to what is no integer."""
        return [placed(ast.parse(f"tl.store(0, {variable.name})").body[0], node)]

    def _set(self, variable: Variable, found: Value, node: Node) -> ast.stmt:
        if not found.is_number or _is_changed_by_another(variable):
            tree = found.tree if is_unread(found.tree) or variable.at is None else _changed(found.tree, variable)
            return self._lost(variable, node, tree if is_unread(tree) else None)
        return assigned(variable.name, converted(found, variable.kind, node, self.names), node)

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
            return [assigned(variable.name, self.names.guarded(whole, node), node)]
        if variable.kind == BOOL:
            return [self._lost(variable, node)]
        return [ast.AugAssign(named(variable.name, node, ast.Store()), operator.op, other)]

    def _stepped(self, node: Node) -> list[ast.stmt] | None:
        target = target_of(node)
        if target is None or target.type != "identifier":
            return self._stored(target, node) if target is not None else None
        variable = self.names.find(text_of(target))
        if variable is not None and variable.kind in (UNKNOWN, RECORD):
            return self._pointed(variable, node, "++", None)
        if variable is None or variable.kind not in (INT, UNSIGNED):
            return None
        op = "+" if "++" in text_of(node) else "-"
        return self._updated(variable, op, Value(placed(ast.Constant(1), node), INT), node)

    def _stored(self, target: Node, node: Node) -> list[ast.stmt]:
        """Store to memory: at an address with what of it is read; to an array of the function, nothing."""
        if node in self.handed:
            value = node.child_by_field_name("right")
            tree = expression(value, self.names) if value is not None else unread(node)
            return [assigned(handed_name(node), tree, node)]
        if names := stored_names(target):  # ``(a) = b``, ``(c ? a : b) = d``
            return [self._lost(one, node) for one in self._known(dict.fromkeys(names, node))]
        base = next((one for one in inside(target) if one.type in ("identifier", "this")), None)
        known = self.names.find(text_of(base))
        own = known is not None and known.name in self._objects and known
        if own and (target.type == "field_expression" or self._objects[own.name]):  # no memory of anybody else
            every = [one for scope in self.names.scopes for one in scope.values() if not one.is_const]
            held = [
                one for one in every if one.at and text_of(one.at.child_by_field_name("declarator")) == text_of(base)
            ]
            lost = [(one, unread(node, "", [_less(named(one.name, node))])) for one in (own, *held)]
            return [self._lost(one, node, tree) for one, tree in lost]
        if known is None or known.why != ARRAY:
            return [self._effect("store", target, node)]
        if _steps(target) <= self._axes.get(known.name, 0):
            return []
        less = [_less(one) for one in self._mentioned(target)]  # by a pointer that it holds
        store: list[ast.expr] = [ast.Constant(0), *less]
        return [placed(ast.Expr(ast.Call(ast.parse("tl.store", mode="eval").body, store, [])), node)]

    def _effect(self, word: str, place: Node, node: Node, own: str = "") -> ast.stmt:
        """``tl.store`` of the names that stand in a place, a call that nothing knows, or one of the file's own."""
        library = ast.Attribute(ast.Name("tl", ast.Load()), word, ast.Load())
        function = ast.Name(own, ast.Load()) if own else library
        every = [self._made_of(one) for one in (called(place)[1] if own else [place])]
        given = [one[0] if len(one) == 1 else ast.Tuple(one, ast.Load()) for one in every]
        exact = [ast.keyword("exact", one) for one in self._exact(place)] if word == "store" else []
        return placed(ast.Expr(ast.Call(function, given if own else [ast.Constant(0), *given], exact)), node)

    def _exact(self, place: Node) -> list[ast.expr]:
        """An element of memory that a parameter points to, as a pointer and an index; nothing of any other place."""
        base, index = place.child_by_field_name("argument"), place.child_by_field_name("indices")
        if base is None or index is None or base.type != "identifier" or len(parts(index)) != 1:
            return []
        known, (value, before) = self.names.find(text_of(base)), apart(parts(index)[0], self.names)
        is_plain = (
            known is not None and known == self.names.scopes[0].get(known.name) and value.is_number and not before
        )
        return [ast.Tuple([named(known.name, place), value.tree], ast.Load())] if known and is_plain else []

    def _called(self, node: Node) -> list[ast.stmt]:
        """Call by itself: of a function of the file that hands out values, or of whatever may change what it takes."""
        name, given, template = called(node)
        own = self.names.own_function(name)
        if _ENDS.match(name):
            if self.outputs or self.kind_of_result:
                self._refuse(node)
            return [ast.Return(None)]
        if own is not None and (targets := handed_out(node, self.names)):
            if not agrees(own, given, self.names):
                return [self._lost(one, node) for one in self._known(dict.fromkeys(targets, node))]
            return [self._handed_out(own, targets, given, template, node)]
        if divided(node, self.names) is not None:
            value_of(node, self.names)  # what it assigns goes before
            return []
        if name in PURE or name.startswith("__sync"):
            return []
        return [self._effect("call", node, node, own.name if own is not None else "")]

    def _handed_out(
        self, own: Function, targets: list[str], given: list[Node], template: list[Node], node: Node
    ) -> ast.stmt:
        """Call of a function of the file that returns nothing and assigns its parameters."""
        known = [one for name in targets if (one := self.names.find(name)) is not None]
        plain = [
            (one, wanted) for one, wanted in zip(given, own.parameters, strict=True) if wanted.name not in own.outputs
        ]
        args = [given_to(wanted, value_of(one, self.names), node, self.names) for one, wanted in plain]
        keywords = [ast.keyword(name, named(one.name, node)) for name, one in zip(own.outputs, known, strict=True)]
        numbers = numbers_of(own, template, self.names) or []
        call = placed(ast.Call(ast.Name(own.name, ast.Load()), args, [*numbers, *keywords]), node)
        stores: list[ast.expr] = [named(one.name, node, ast.Store()) for one in known]
        return ast.Assign([stores[0] if len(stores) == 1 else ast.Tuple(stores, ast.Store())], call)

    def _if_statement(self, node: Node) -> list[ast.stmt] | None:
        condition, body, other = fields(node, "condition", "consequence", "alternative")
        odd = any(text_of(one) == "consteval" for one in node.children) or _declares(condition)
        if condition is None or body is None or odd:
            return None
        test = expression(condition, self.names)
        lost = [self._lost(one, at) for one, at in self._known(dict(changed(condition, self.names))).items()]
        then = self.block(body)
        orelse = self.block(other.named_children[-1]) if other is not None and other.named_children else []
        return [*lost, ast.If(test, then or [ast.Pass()], orelse)] if then or orelse else lost

    def _for_statement(self, node: Node) -> list[ast.stmt] | None:
        """``for (int t = start; t < stop; t += step)``, of which the body changes neither."""
        first, condition, update, body = fields(node, "initializer", "condition", "update", "body")
        if first is None or condition is None or update is None or body is None or first.type != "declaration":
            return None
        if self._known(dict(changed(condition, self.names))) or len(first.children_by_field_name("declarator")) != 1:
            return None
        self.names.scopes.append({})
        begun = self.statement(first)
        self._not_negative(first)
        outer, self.names.before = self.names.before, []
        test, steps = expression(condition, self.names), self._update(update)
        hoisted, self.names.before = self.names.before, outer
        inner = self.block(body)
        self.names.scopes.pop()
        changing = {one.id for stmt in inner for one in ast.walk(stmt) if _is_store(one)}
        match (begun[-1:], test, steps):
            case (
                [ast.Assign([ast.Name(name)], start)],
                ast.Compare(ast.Name(tested), [ast.Lt()], [stop]),
                [ast.AugAssign(ast.Name(stepped), ast.Add(), step)],
            ) if name == tested == stepped and name not in changing:
                read = {
                    one.id for part in (stop, step, *hoisted) for one in ast.walk(part) if isinstance(one, ast.Name)
                }
                if read & (changing | {name}):
                    return None
                over = placed(ast.Call(ast.Name("range", ast.Load()), [start, stop, step], []), node)
                loop = ast.For(named(name, node, ast.Store()), over, inner or [ast.Pass()], [])
                return [*begun[:-1], *hoisted, loop]
        return None

    def _not_negative(self, first: Node) -> None:
        """Take note of a loop's index that begins at an unsigned value: it only grows."""
        target = first.child_by_field_name("declarator")
        value = target.child_by_field_name("value") if target is not None else None
        if value is not None and apart(value, self.names)[0].kind == UNSIGNED:
            self.names.not_negative |= {known.name for known in self.names.scopes[-1].values()}

    def _update(self, node: Node) -> list[ast.stmt]:
        found = self._assigned(node) if node.type == "assignment_expression" else None
        return found or (self._stepped(node) if node.type == "update_expression" else None) or []

    def _while_statement(self, node: Node) -> list[ast.stmt] | None:
        condition, body = fields(node, "condition", "body")
        if condition is None or body is None or _declares(condition):
            return None
        if self._known(dict(changed(condition, self.names))):
            return None
        test, before = apart(condition, self.names)
        # what the condition needs before would be computed once
        return [ast.While(test.tree, self.block(body) or [ast.Pass()], [])] if not before else None

    def _return_statement(self, node: Node) -> list[ast.stmt]:
        if self.outputs:
            return [self.result(node)]
        inner = parts(node)
        if not inner:
            return [ast.Return(None)]
        found = value_of(inner[0], self.names)
        if isinstance(found.tree, ast.Tuple):
            found = tuple_as(found.tree, self.kinds, node, self.names)
        self._returned.add((found.kind, kinds_in(found.tree)))
        if isinstance(found.tree, ast.Tuple) or not self.kind_of_result or not found.kind:
            return [ast.Return(found.tree)]
        return [ast.Return(converted(found, self.kind_of_result, node, self.names))]

    def _break_statement(self, node: Node) -> list[ast.stmt]:
        return [ast.Break()]

    def _continue_statement(self, node: Node) -> list[ast.stmt]:
        return [ast.Continue()]

    def _refuse(self, node: Node) -> None:
        """Take note of what the function cannot be read with; the rest is read to say what it is."""
        self.refused = self.refused or (said(node)[:60], node.start_point[0] + 1)

    def _unread(self, node: Node) -> list[ast.stmt]:
        """Names that a statement without a counterpart may change, unread, and whether it stores."""
        if (left := leaving(node)) is not None:
            self._refuse(left)
            inner = [one for one in node.named_children if one.type.endswith(("statement", "declaration"))]
            return [stmt for one in inner for stmt in self.statement(one)]
        lost = self._known(dict.fromkeys([name for name, _ in changed(node, self.names)], node))
        found: list[ast.stmt] = []
        for one in node.children_by_field_name("declarator") if node.type == "declaration" else ():
            found += self._lose_declarators(one, node)
        found += [self._lost(variable, node) for variable in lost]
        targets = [target_of(part) for part in inside(node) if part.type in ASSIGNS]
        place = next((one for one in targets if one is not None and one.type != "identifier"), None)
        if place is not None:
            found.append(placed(ast.If(unread(node), [self._effect("store", place, node)], []), node))
        return found

    def _lost(self, variable: Variable, node: Node, tree: ast.expr | None = None) -> ast.stmt:
        return assigned(variable.name, tree or unread(node), node)


def _steps(place: Node | None) -> int:
    """How many elements and pointers a place goes through."""
    found = 0
    while place is not None and (place.type in MEMORY or place.type == "parenthesized_expression"):
        is_part = place.type == "field_expression" and "->" not in text_of(place)
        found += place.type in MEMORY and not is_part
        place = place.child_by_field_name("argument") or next(iter(place.named_children), None)
    return found


def _is_changed_by_another(variable: Variable) -> bool:
    """Whether a reference, a pointer or a lambda changes a variable; an object made of it only where it is assigned."""
    if variable.at is None or (variable.is_const and variable.at.type != "template_function"):
        return False
    target = variable.at.child_by_field_name("declarator")
    return variable.at.type != "init_declarator" or (
        target is not None and ("reference" in target.type or "pointer" in target.type)
    )


def _changed(tree: ast.expr, variable: Variable) -> ast.expr:
    """What something else may have made of a value."""
    assert variable.at is not None
    return unread(variable.at, variable.why, [_less(tree)])


def _less(tree: ast.expr) -> ast.expr:
    """Tree in which less may be left of what it is made of."""
    return _joined(tree, "^", tree)


def _joined(left: ast.expr, operator: str, right: ast.expr) -> ast.expr:
    found = ast.parse(f"a {operator} b", mode="eval").body
    assert isinstance(found, ast.BinOp)
    return ast.BinOp(left, found.op, right)


def _is_store(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _declares(condition: Node | None) -> bool:
    """Whether a condition declares a name, which is one of the statement."""
    return any("declaration" in one.type or "init_statement" in one.type for one in inside(condition))


def _has_error(node: Node) -> bool:
    """Whether the grammar has not understood a statement; of one with a block, its head."""
    if not node.has_error:
        return False
    return node.type not in _STRUCTURED or any(one.type == "ERROR" or one.is_missing for one in node.children)


def within(node: Node, region: Region) -> bool:
    """Whether a node stands in one branch of a condition of the preprocessor."""
    return region.begin <= node.start_point[0] + 1 and node.end_point[0] + 1 <= region.end


def _flag_of(region: Region) -> str:
    """Name for the truth of a condition of the preprocessor."""
    slug = re.sub(r"\W+", "_", region.condition.removeprefix("#el").removeprefix("#")).strip("_")
    return f"{slug}_{region.first}"
