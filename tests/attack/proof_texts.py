"""Random and mutated texts against an independent evaluator: is anything that is called proved false?

python -m tests.attack.proof_texts 1000000 --proofs --parts 16 --seconds 500

It prints the counts as parts end. ``--proofs`` leaves out what is only tested, which takes a second a text, so that
more proofs are attacked; ``--parts`` is a number of processes, each with known texts of its own (at most 38).

A text is drawn from a small grammar of what remaps are made of, or a known remap with one literal, operator or name
changed. What verification at one grid and a few others finds wrong is dropped; of the rest the verdict is taken, as
`check` gives it, and then `naive_int32` evaluates it on launches that the tool did not try.
"""

from __future__ import annotations

import argparse
import random
import re
import time
import zlib
from collections import Counter
from dataclasses import replace
from itertools import islice

import joblib

from swizzle_sim.language import FAMILIES, Swizzle, family
from swizzle_sim.language.grid import Grid, bind, result_digits
from swizzle_sim.language.lattice import named, unconditional
from swizzle_sim.language.parse import parse_condition
from swizzle_sim.language.verdict import PROVED, TESTED, Verdict
from swizzle_sim.language.vm import permutation_of
from swizzle_sim.proof import prove
from swizzle_sim.testing.grids_to_try import condition, kind_of
from swizzle_sim.testing.settle import settle_verdict
from tests import naive_int32
from xcd_model.errors import LanguageError

STEPS = 120  # linear programs of a proof: most that are found take fewer
COUNTS = (
    "texts",
    "distinct",
    "read",
    "bijective there",
    "given to the prover",
    PROVED,
    "false proved",
    TESTED,
    "false tested",
)
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
    "rows, cols = num_pid_m, num_pid_n\ntotal = rows * cols\nq, r = total // 8, total % 8\n"
    "pid = pid % 8 * q + min(pid % 8, r) + pid // 8\n"
    "first = pid // (4 * cols) * 4\nsize = min(rows - first, 4)\npid_m = first + pid % (4 * cols) % size\n"
    "pid_n = pid % (4 * cols) // size\n",
)
_NUMBERS = ("0", "1", "2", "3", "4", "7", "8", "16", "32")


def texts(seed: int, part: tuple[int, int] = (0, 1)):
    """Yield texts without end; of several parts each has known texts of its own to change."""
    draw = random.Random(f"{seed} {part}")
    known = [family(spec) for spec in (*SEEDS, *(name for name, one in FAMILIES.items() if one.axes in (0, 2)))] + list(
        OTHERS
    )
    known = known[part[0] :: part[1]]
    while True:
        yield mutated(draw, draw.choice(known)) if draw.random() < 0.7 else _drawn(draw)


def mutated(draw: random.Random, text: str) -> str:
    """A text with a literal, an operator or a name or two changed."""
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
    """Launches that are not among those the tool tries: odd lengths, 1 to 40 XCDs."""
    draw = random.Random(seed)
    for most in (12, 60, 60, 300, 300, 300, 1500):
        xcds = draw.choice((1, 2, 3, 5, 7, 8, 9, 11, 13, 17, 19, 24, 40))
        if kind == "line":
            yield Grid((draw.randint(1, most),)), xcds
        else:
            m = draw.randint(1, min(most, draw.choice((9, 45))))
            n = draw.randint(1, max(1, most // m))
            yield Grid((m * n,), (m, n)), xcds


def holds_at(form, grid: Grid, num_xcds: int, sizes=None, some: random.Random | None = None) -> bool:
    """Whether workgroups, all or some of them, have different tiles there, by the naive evaluator alone."""
    bound = bind(form.inputs, grid, num_xcds, sizes)
    computed, unchanged = result_digits(form.results, grid)
    pids = [some.randrange(grid.num_pids) for _ in range(6)] + [0, grid.num_pids - 1] if some else range(grid.num_pids)
    seen = set()
    for pid in pids:
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
    return len(seen) == len(set(pids))


def attack(
    count: int, seed: int = 0, *, proofs_only: bool = False, part: tuple[int, int] = (0, 1), seconds: float = 1e9
) -> Counter:
    """Counts of what was claimed of texts drawn from a seed, and of what of it is false; fewer after ``seconds``."""
    counts: Counter = Counter(dict.fromkeys(COUNTS, 0))
    end, seen, claims = time.monotonic() + seconds, set(), set()
    for text in islice(texts(seed, part), count // part[1]):
        if time.monotonic() > end:
            break
        counts["texts"] += 1
        if text not in seen:
            seen.add(text)
            counts["distinct"] += 1
            _try_one(text, counts, claims, seed, proofs_only)
    return counts


def _try_one(text: str, counts: Counter, claims: set, seed: int, proofs_only: bool) -> None:
    try:
        swizzle = Swizzle.parse(text)
        kind = kind_of(swizzle.form)
        wrong = permutation_of(swizzle.program, TARGETS[kind], 8)[1]
    except (LanguageError, KeyError):
        return
    counts["read"] += 1
    if wrong or swizzle.form.body in claims:  # the same text drawn before
        return
    claims.add(swizzle.form.body)
    counts["bijective there"] += 1
    verdict = _verdict(swizzle, kind, counts, proofs_only)
    if verdict is None:
        return
    counts[verdict.status] += 1
    where = condition(verdict.domain if named(verdict.domain) else "")
    for grid, xcds in launches(kind, seed + zlib.crc32(text.encode())):
        if where(grid, xcds) and not holds_at(swizzle.form, grid, xcds):
            counts[f"false {verdict.status}"] += 1
            print(f"FALSE {verdict.status.upper()}", verdict.domain, f"{grid}, {xcds} XCDs", text, sep="\n", flush=True)
            return


def _verdict(swizzle: Swizzle, kind: str, counts: Counter, proofs_only: bool) -> Verdict | None:
    """What is claimed of a text beyond one grid; None where that is nothing."""
    verdict = swizzle.verify(TARGETS[kind], 8)
    stated = verdict.domain if named(verdict.domain) else ""
    if verdict.status != TESTED or "power" in stated or not (stated or unconditional(verdict.domain)):
        return None
    counts["given to the prover"] += 1
    if not proofs_only:
        verdict = settle_verdict(verdict, swizzle, TARGETS[kind], 8)
        claimed = named(verdict.domain) and "power" not in verdict.domain
        return verdict if claimed or unconditional(verdict.domain) else None
    found = prove(swizzle.form, kind, None, parse_condition(stated) if stated else None, steps=STEPS)
    return replace(verdict, status=PROVED) if found.holds else None


def main() -> None:
    """Attack in several processes, and print what they found."""
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("count", type=int)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--proofs", action="store_true")
    words.add_argument("--parts", type=int, default=1)
    words.add_argument("--seconds", type=float, default=1e9, help="to stop after")
    given = words.parse_args()
    total: Counter = Counter()
    parts = ((k, given.parts) for k in range(given.parts))
    for one in joblib.Parallel(given.parts, return_as="generator_unordered")(
        joblib.delayed(attack)(given.count, given.seed, proofs_only=given.proofs, part=part, seconds=given.seconds)
        for part in parts
    ):
        total.update(one)
        print(dict(total), flush=True)


if __name__ == "__main__":
    main()
