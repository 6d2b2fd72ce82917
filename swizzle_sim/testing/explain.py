"""``check --explain``: where a remap that is wrong somewhere is right, where it fails first, a repair and its proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from swizzle_sim.language.emit import emit_text
from swizzle_sim.language.ir import Assign, Binary, Expr, Form, If, Name, Select, Stmt
from swizzle_sim.language.lower import compile_form
from swizzle_sim.language.swizzle import Swizzle
from swizzle_sim.language.verdict import PROVED, REFUTED
from swizzle_sim.testing.candidate import Candidate, TextCandidate, load
from swizzle_sim.testing.directive import Options
from swizzle_sim.testing.files import targets_of
from swizzle_sim.testing.run import CheckResult
from swizzle_sim.testing.settle import provable_form, proved_conditions, settle
from swizzle_sim.testing.trials import Outcome, points_of, try_points

_MOST_FOUND = 3  # conditions


def explain(candidate: Candidate, outcome: Outcome, options: Options) -> list[str]:
    """Lines about a remap that is refuted."""
    form, given = provable_form(candidate, options), options
    if outcome.holds or form is None or not isinstance(candidate, TextCandidate):
        return []
    found = [one for one, _ in islice(proved_conditions(candidate, outcome, options), _MOST_FOUND)]
    lines = [f"proved where {one}" for one in found] or ["no simple condition was proved to suffice"]
    lines += _problem(outcome, given)
    if form is not candidate.form:  # a kernel whose sizes give counts of tiles: explained in these
        candidate = _of_form(form, candidate.name)
        options = replace(options, launch="", sizes={k: v for k, v in options.sizes.items() if k in form.inputs})
    for repaired in _repairs(form):
        fixed = _of_form(repaired, "the repair")
        judged = settle(fixed, try_points(fixed, points_of(fixed, options)), options)
        if judged.status == PROVED:
            text = "\n".join(f"    {line}" for line in emit_text(repaired).strip().splitlines())
            return [*lines, f"repaired, {PROVED} for {judged.domain}, {judged.covers}:\n{text}"]
    return [*lines, "no repair was found that is proved"]


def _of_form(form: Form, name: str) -> TextCandidate:
    return TextCandidate.of(Swizzle(emit_text(form), form, compile_form(form), name))


def explained(result: CheckResult, over: Options) -> CheckResult:
    """A result whose message has the explanation too, where it is a refutation."""
    if result.verdict != REFUTED:
        return result
    for target in targets_of(Path(result.file)):
        if (target.name, target.line) == (result.name, result.line):
            candidate, options = load(replace(target, options=over.over(target.options)))
            outcome = try_points(candidate, points_of(candidate, options))
            lines = explain(candidate, outcome, options)
            return replace(result, message="\n  ".join([result.message, *lines]))
    return result


def _problem(outcome: Outcome, options: Options) -> list[str]:
    """Smallest failing problem in elements, where the sizes of a tile are given."""
    point, sizes = outcome.point, options.single
    if point is None or point.grid.shape is None:
        return []
    blocks = [sizes.get(name) for name in ("BLOCK_M", "BLOCK_N")]
    blocks = [blocks[k] or sizes.get(f"BLOCK_SIZE_{axis}") for k, axis in enumerate("MN")]
    if not all(isinstance(block, int) for block in blocks):
        return []
    m, n = (side * int(block or 1) for side, block in zip(point.grid.shape, blocks, strict=True))
    return [f"first fails at M={m} N={n}, any K, with tiles of {blocks[0]} x {blocks[1]}, {point.num_xcds} XCDs"]


def _repairs(form: Form) -> Iterator[Form]:
    """Forms in which an uneven rest is dealt out: of XCDs, and of the last group."""
    dealt = replace(form, body=_block(form.body, {}, _deal_rest))
    if dealt != form:
        yield dealt
    for count in ("num_pid_m", "num_pid_n"):
        grouped = replace(form, body=_last_group(form.body, count))
        if grouped != form:
            yield replace(grouped, inputs=tuple(sorted({*form.inputs, count})))
            both = replace(grouped, body=_block(grouped.body, {}, _deal_rest))
            if both != grouped:
                yield replace(both, inputs=tuple(sorted({*form.inputs, count})))


def _block(body: tuple[Stmt, ...], meaning: dict[str, Expr], change) -> tuple[Stmt, ...]:
    """Statements with every expression changed; ``meaning`` is what the names stand for."""
    done: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Assign):
            value = _changed(stmt.value, meaning, change)
            meaning[stmt.target] = _resolved(stmt.value, meaning)
            done.append(replace(stmt, value=value))
        elif isinstance(stmt, If):
            then, other = dict(meaning), dict(meaning)
            done.append(replace(stmt, body=_block(stmt.body, then, change), orelse=_block(stmt.orelse, other, change)))
        else:
            done.append(stmt)
    return tuple(done)


def _changed(node: Expr, meaning: Mapping[str, Expr], change) -> Expr:
    if isinstance(node, Binary):
        node = replace(node, left=_changed(node.left, meaning, change), right=_changed(node.right, meaning, change))
        return change(node, meaning)
    if isinstance(node, Select):
        return replace(node, then=_changed(node.then, meaning, change), other=_changed(node.other, meaning, change))
    return node


def _resolved(node: Expr, meaning: Mapping[str, Expr]) -> Expr:
    """An expression in terms of what the launch gives."""
    if isinstance(node, Name):
        return meaning.get(node.name, node)
    if isinstance(node, Binary):
        return replace(node, left=_resolved(node.left, meaning), right=_resolved(node.right, meaning))
    return node


def _deal_rest(node: Binary, meaning: Mapping[str, Expr]) -> Expr:
    """``(e % d) * (n // d)``, where XCD e % d begins, plus what the XCDs before it got of the rest."""
    for factor, share in ((node.left, node.right), (node.right, node.left)):
        a, b = _resolved(factor, meaning), _resolved(share, meaning)
        if node.op != "*" or not (isinstance(a, Binary) and isinstance(b, Binary)):
            continue
        if (a.op, b.op) == ("%", "//") and a.right == b.right:
            whole = share if isinstance(share, Binary) else b
            return Binary("+", node, Binary("min", factor, Binary("%", whole.left, whole.right)))
    return node


def _last_group(body: tuple[Stmt, ...], count: str) -> tuple[Stmt, ...]:
    """Divide within the last group by its own height: ``q * g + s % g`` and ``s // g``."""
    target = count.removeprefix("num_")
    for stmt in body:
        value = stmt.value if isinstance(stmt, Assign) and stmt.target == target else None
        match value:
            case Binary("+", Binary("*", _, g) as first, Binary("%", s, again)) if g == again:
                height = Binary("min", Binary("-", Name(count), first), g)

                def within(node: Binary, meaning: Mapping[str, Expr], s=s, g=g, height=height) -> Expr:
                    right = node.op in ("%", "//") and (node.left, node.right) == (s, g)
                    return replace(node, right=height) if right else node

                return _block(body, {}, within)
    return body
