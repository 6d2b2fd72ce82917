"""Random and mutated texts against an independent evaluator: is anything that is called proved false?

python -m tests.attack.proof_texts 100000 [SEED [1]]     # texts to draw; prints the counts as it goes

The last word leaves out what is only tested, which takes a second a text, so that more proofs are attacked.

A text is drawn from a small grammar of what remaps are made of, or a known remap with one literal, operator or name
changed. What verification at one grid and a few others finds wrong is dropped; of the rest the verdict is taken, as
`check` gives it, and then `naive_int32` evaluates it on launches that the tool did not try.
"""

from __future__ import annotations

import random
import re
import sys
import time
from dataclasses import replace

from swizzle_sim.swizzle import FAMILIES, Swizzle, family
from swizzle_sim.swizzle.grid import Grid, bind, result_digits
from swizzle_sim.swizzle.lattice import named
from swizzle_sim.swizzle.verdict import PROVED, TESTED
from swizzle_sim.swizzle.vm import permutation_of
from swizzle_sim.testing.grids_to_try import condition, kind_of
from swizzle_sim.testing.settle import proof, settle_verdict
from tests import naive_int32
from xcd_model.errors import LanguageError

TARGETS = {"line": Grid((96,)), "tiles": Grid((96,), (12, 8))}
SEEDS = (
    "contiguous",
    "chunked(chunk=4)",
    "group_m(size=4)",
    "contiguous+group_m(size=3)",
    "row_bands(rows=4)",
    "snake",
)
OTHERS = (
    "if pid < num_pids // 8 * 8:\n    pid = pid ^ 1\n",
    "if num_pids % num_xcds == 0:\n    pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds\n",
    "pid = num_pids - 1 - pid\n",
    "pid = (pid + 3) % num_pids\n",
    "per = (num_pids + num_xcds - 1) // num_xcds\ntall = num_pids % num_xcds\ntall = num_xcds if tall == 0 else tall\n"
    "xcd, local = pid % num_xcds, pid // num_xcds\n"
    "pid = xcd * per + local if xcd < tall else tall * per + (xcd - tall) * (per - 1) + local\n",
)
_NUMBERS = ("0", "1", "2", "3", "4", "7", "8", "16", "32")


def texts(seed: int):
    """Yield texts without end."""
    draw = random.Random(seed)
    known = [family(spec) for spec in (*SEEDS, *(name for name, one in FAMILIES.items() if one.axes in (0, 2)))] + list(
        OTHERS
    )
    while True:
        yield _mutated(draw, draw.choice(known)) if draw.random() < 0.7 else _drawn(draw)


def _mutated(draw: random.Random, text: str) -> str:
    for _ in range(draw.choice((1, 1, 1, 2))):
        tokens = re.findall(r"[A-Za-z_]+|\d+|//|<=|>=|==|[-+*%<>^&]|\s+|.", text)
        places = [i for i, one in enumerate(tokens) if re.fullmatch(r"\d+|//|<=|>=|==|[-+*%<>^&]|num_\w+|pid\w*", one)]
        if not places:
            return text
        at = draw.choice(places)
        one = tokens[at]
        if one.isdigit():
            tokens[at] = str(
                max(0, draw.choice((int(one) - 1, int(one) + 1, int(one) * 2, int(draw.choice(_NUMBERS)))))
            )
        elif one in ("<", "<=", ">", ">=", "=="):
            tokens[at] = draw.choice(("<", "<=", ">", ">=", "=="))
        elif one[0] in "/%*+-^&":
            tokens[at] = draw.choice(("//", "%", "*", "+", "-", "^"))
        else:
            tokens[at] = draw.choice(
                ("num_pids", "num_xcds", "num_pid_m", "num_pid_n") if one.startswith("num") else ("pid", one)
            )
        text = "".join(tokens)
    return text


def _drawn(draw: random.Random) -> str:
    def number(depth: int) -> str:
        if depth == 0 or draw.random() < 0.3:
            return draw.choice(("pid", "num_pids", "num_xcds", *_NUMBERS))
        op = draw.choice(("+", "-", "*", "//", "%", "//", "%", "^", "min", "max"))
        a, b = number(depth - 1), number(depth - 1)
        return f"{op}({a}, {b})" if op.startswith("m") else f"({a} {op} {b})"

    step = draw.choice(
        (
            f"pid = {number(3)}",
            f"pid = pid ^ {draw.choice(_NUMBERS)}",
            f"pid = (pid + {number(1)}) % num_pids",
            f"pid = num_pids - 1 - pid if {number(2)} < {number(2)} else pid",
            "pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds",
            f"pid = pid + 1 - pid % {draw.choice(_NUMBERS[2:])} * 2",
        )
    )
    if draw.random() < 0.6:
        op = draw.choice(("<", "<=", ">", "==", "!="))
        return f"if {number(2)} {op} {number(2)}:\n    {step}\n"
    return step + "\n"


def launches(kind: str, seed: int):
    """Launches that are not among those the tool tries: odd lengths, 3 to 40 XCDs."""
    draw = random.Random(seed)
    for _ in range(10):
        xcds = draw.choice((1, 2, 3, 5, 7, 8, 9, 11, 13, 17, 19, 24, 40))
        if kind == "line":
            yield Grid((draw.choice((draw.randint(1, 60), draw.randint(73, 300), draw.randint(301, 1500))),)), xcds
        else:
            m = draw.randint(1, 45)
            n = draw.randint(1, max(1, 1200 // m))
            yield Grid((m * n,), (m, n)), xcds


def holds_at(form, grid: Grid, num_xcds: int) -> bool:
    """Whether a form is a permutation there, by the naive evaluator alone."""
    bound = bind(form.inputs, grid, num_xcds)
    computed, unchanged = result_digits(form.results, grid)
    seen = set()
    for pid in range(grid.num_pids):
        at = {name: pid // digit.stride % digit.extent for name, digit in bound.digits.items()}
        try:
            values = naive_int32.evaluate(form, {**bound.constants, **at})
        except naive_int32.NaiveFault:
            return False
        digits = dict(zip(form.results, values, strict=True))
        if any(not 0 <= value < computed[name].extent for name, value in digits.items()):
            return False
        digits |= {name: pid // digit.stride % digit.extent for name, digit in unchanged.items()}
        seen.add(tuple(digits.values()))
    return len(seen) == grid.num_pids


def attack(count: int, seed: int = 0, report: int = 0, *, proofs_only: bool = False) -> dict[str, int]:
    """Draw texts, and count what was claimed and what of it is false."""
    counts = dict.fromkeys(("texts", "read", "bijective", PROVED, "false proved", TESTED, "false tested"), 0)
    begin, claims = time.monotonic(), set()
    for text in texts(seed):
        if counts["texts"] >= count:
            break
        counts["texts"] += 1
        if report and counts["texts"] % report == 0:
            print(f"{time.monotonic() - begin:.0f} s", counts, flush=True)
        _try_one(text, counts, claims, seed, proofs_only)
    return counts


def _try_one(text: str, counts: dict[str, int], claims: set, seed: int, proofs_only: bool) -> None:  # noqa: PLR0911
    try:
        swizzle = Swizzle.parse(text)
        kind = kind_of(swizzle.form)
        target = TARGETS[kind]
        if permutation_of(swizzle.program, target, 8)[1]:
            counts["read"] += 1
            return
    except (LanguageError, KeyError):
        return
    counts["read"] += 1
    counts["bijective"] += 1
    if swizzle.form.body in claims:  # the same text drawn before
        return
    claims.add(swizzle.form.body)
    verdict = swizzle.verify(target, 8)
    if proofs_only:
        stated = verdict.domain if named(verdict.domain) else ""
        if verdict.status != TESTED or "power" in stated or not proof(swizzle.form, kind, where=stated):
            return
        verdict = replace(verdict, status=PROVED)
    else:
        verdict = settle_verdict(verdict, swizzle, target, 8)
    where = condition(verdict.domain) if named(verdict.domain) and "power" not in verdict.domain else condition("")
    if verdict.status not in (PROVED, TESTED) or not (named(verdict.domain) or "every" in verdict.domain):
        return
    if named(verdict.domain) and "power" in verdict.domain:
        return
    counts[verdict.status] += 1
    for grid, xcds in launches(kind, seed + counts["texts"]):
        if where(grid, xcds) and not holds_at(swizzle.form, grid, xcds):
            counts[f"false {verdict.status}"] += 1
            if verdict.status == PROVED:
                print("FALSE PROVED", verdict.domain, grid, xcds, text, sep="\n", flush=True)
            return


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    print(attack(words[0], words[1] if len(words) > 1 else 0, report=100, proofs_only=len(words) > 2))
