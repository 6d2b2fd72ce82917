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
from swizzle_sim.testing.grids_to_try import condition, each_size, kind_of
from swizzle_sim.testing.refuting import periods
from swizzle_sim.testing.run import CheckResult
from swizzle_sim.testing.settle import proof_of_options, provable_form, settle
from swizzle_sim.testing.trials import Outcome, points_of, try_points

_MOST_PROOFS = 12  # of conditions
_MOST_FOUND = 3
_TRIED = 300  # launches that a condition is tried on before it is proved


def explain(candidate: Candidate, outcome: Outcome, options: Options) -> list[str]:
    """Lines about a remap that is refuted."""
    form, given = provable_form(candidate, options), options
    if outcome.holds or form is None or not isinstance(candidate, TextCandidate):
        return []
    if form is not candidate.form:  # a kernel whose sizes give counts of tiles: explained in these
        candidate = _of_form(form, candidate.name)
        options = replace(options, launch="", sizes={k: v for k, v in options.sizes.items() if k in form.inputs})
    found = list(_proved_domains(candidate, form, outcome, options))
    lines = [f"proved where {one}" for one in found] or ["no simple condition was proved to suffice"]
    lines += _problem(outcome, given)
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


def _proved_domains(candidate: TextCandidate, form: Form, outcome: Outcome, options: Options) -> Iterator[str]:
    """Conditions of the usual kinds that no launch tried contradicts and that are proved."""
    kind, proofs = kind_of(form), 0
    found: list[str] = []
    points = list(islice(points_of(candidate, options), _TRIED))
    failing = [point for point in points if candidate.counterexample(point.grid, point.num_xcds, point.sizes)]
    for text in dict.fromkeys([outcome.domain, *_conditions(form, kind, options)]):
        if proofs >= _MOST_PROOFS or len(found) >= _MOST_FOUND:
            return
        if any(_implied(text, one) for one in found):
            continue
        try:
            holds = condition(text)
        except Exception:  # words such as "a power of two", or "no simple condition"
            continue
        if any(holds(point.grid, point.num_xcds) for point in failing):
            continue
        proofs += 1
        if proof_of_options(form, options, text):
            found.append(text)
            yield text


def _implied(text: str, known: str) -> bool:
    """Whether ``n % 64 == 0`` says no more than a known ``n % 8 == 0``."""
    (a, _, divisor), (b, _, smaller) = (one.removesuffix(" == 0").partition(" % ") for one in (text, known))
    return a == b and divisor.isdigit() and smaller.isdigit() and int(divisor) % int(smaller) == 0


def _conditions(form: Form, kind: str, options: Options) -> Iterator[str]:
    sides = {"line": (), "tiles": ("num_pid_m", "num_pid_n"), "plane": ("num_pid_x", "num_pid_y")}
    counts = ("num_pids", *sides.get(kind, ("num_pid_x", "num_pid_y", "num_pid_z")))
    sizes = tuple({value for choice in each_size(options) for value in choice.values()})
    divisors = [*(["num_xcds"] if form.reads_num_xcds else []), *(str(one) for one in periods(form, sizes)[:12])]
    for divisor in divisors:
        yield from (f"{count} % {divisor} == 0" for count in counts)
    for divisor in divisors[::-1]:
        yield from (f"{count} <= {divisor}" for count in counts)
        yield from (f"{count} < {divisor}" for count in counts)


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
