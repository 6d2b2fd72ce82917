"""Mutants of certificates against the checker: is any of them accepted whose claim is false?

python -m tests.attack.certificates 100000 --seed 1

A mutant has one or two places changed: a coefficient, a fact, a polynomial, a definition, a step, a path, a pair, the
text, the launches, a condition, a size, or how far the claim goes. One that is accepted is taken for true until
`naive_int32` finds otherwise, on every workgroup of small launches and on some of the largest that it speaks of. A
second attack is a finder that lies.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from swizzle_sim.language import family, parse_form
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.parse import parse_condition
from swizzle_sim.proof import certificates, prove
from swizzle_sim.proof.checker import Refused, check
from swizzle_sim.proof.knowledge import OBVIOUS, Knowledge
from swizzle_sim.proof.samples import Samples
from swizzle_sim.testing.grids_to_try import condition, kind_of
from tests.attack.proof_texts import OTHERS, holds_at, mutated
from tests.unit.test_proof import MORTON, SQUARE
from xcd_model.errors import SwizzleSimError

TEXTS: tuple[tuple[str, str, dict[str, int]], ...] = (
    (family("contiguous"), "", {}),
    (family("chunked(chunk=4)"), "", {}),
    (family("group_m(size=3)"), "", {}),
    (family("snake"), "", {}),
    *((text, "num_pids % 2 == 0" if "^" in text else "", {}) for text in OTHERS[:4]),
    ("pid = pid % num_xcds * (num_pids // num_xcds) + pid // num_xcds", "num_pids % num_xcds == 0", {}),
    ("pid_m, pid_n = pid_n, pid_m", "num_pid_m == num_pid_n", {}),
    ("if num_pid_y % 8 == 0: y = y % 8 * (num_pid_y // 8) + y // 8", "", {}),
    ("span = G * G * num_xcds\npid = num_pids - 1 - pid if pid + span < 0 else pid", "", {"G": 8}),
    ("pid = (pid + G) % num_pids", "", {}),
    (MORTON, SQUARE, {}),
    ("pid = pid ^ (pid >> 1)", "num_pids & (num_pids - 1) == 0", {}),
    ("total = num_pid_m * num_pid_n\npid = total - 1 - pid\npid_m = pid // num_pid_n\npid_n = pid % num_pid_n", "", {}),
    (
        "per = 4 * num_pid_n\nfirst = pid // per * 4\nsize = min(num_pid_m - first, 4)\n"
        "pid_m = first + pid % size\npid_n = pid % per // size",
        "",
        {},
    ),
)
CONDITIONS = (
    "",
    SQUARE,
    "num_pids & (num_pids - 1) == 0",
    "num_pids % num_xcds == 0",
    "num_pids % 2 == 0",
    "num_pid_m == num_pid_n",
    "num_pids < 9",
    "1 < 0",
)
COUNTS = ("mutants", "unchanged", "accepted", "false")


def originals() -> list[dict[str, Any]]:
    """Certificates of `TEXTS`, as read from a file."""
    with certificates() as found:
        for text, where, sizes in TEXTS:
            form = parse_form(text)
            assert prove(form, kind_of(form), sizes, parse_condition(where) if where else None).holds, text
    return json.loads(json.dumps(found))


def mutant(draw: random.Random, original: dict[str, Any]) -> dict[str, Any]:
    """One with a place or two changed."""
    changed = copy.deepcopy(original)
    for _ in range(draw.choice((1, 1, 1, 2))):
        with suppress(LookupError, TypeError):  # where the first change has left nothing for the second
            draw.choice((_head, _head, _text, _anything, _anything, _anything, _paths, _paths))(draw, changed)
    return changed


def _head(draw: random.Random, one: dict[str, Any]) -> None:
    piece = draw.choice(one["pieces"] or [{**one, "end": 0, "by_number": 0, "linear": 0}])
    key, value = draw.choice(
        (
            ("kind", draw.choice(("line", "tiles", "plane", "box"))),
            ("where", draw.choice(CONDITIONS)),
            ("num_xcds", draw.choice((None, 1, 8, 9))),
            ("sizes", draw.choice(({}, {"G": draw.choice((0, 1, 3, 8, 70000))}))),
            ("max_workgroups", one["max_workgroups"] * draw.choice((2, 3)) + draw.randint(-2, 2)),
            ("max_xcds", draw.choice((one["max_xcds"] * 2, 2048, 0))),
            ("end", piece["end"] + draw.choice((-1, 1))),
            ("result", draw.choice(("", "pid", "first", "size"))),
            ("kept", draw.choice(([], [0], [0, 1], [1, 2]))),
            ("by_number", not piece["by_number"]),
            ("linear", not piece["linear"]),
        )
    )
    (piece if key in piece else one)[key] = value


def _text(draw: random.Random, one: dict[str, Any]) -> None:
    one["text"] = mutated(draw, one["text"])


def _paths(draw: random.Random, one: dict[str, Any]) -> None:
    """Drop, repeat or move a step, a path or a pair, or turn a case around."""
    piece = draw.choice(one["pieces"])
    steps = draw.choice((*piece["paths"], *(pair[2] for pair in piece["pairs"])))
    cases = [step for path in piece["paths"] for step in path if step[0] == "case"]
    if cases and draw.random() < 0.2:
        case = draw.choice(cases)
        case[2] = not case[2]
        return
    row = draw.choice((steps, steps, steps, piece["paths"], piece["pairs"], one["pieces"]))
    if not row:
        return
    at = draw.randrange(len(row))
    taken = row.pop(at)
    if draw.random() < 0.4:
        row.insert(draw.randint(0, len(row)), taken)
    elif draw.random() < 0.3:
        row[at:at] = [taken, copy.deepcopy(taken)]


def _anything(draw: random.Random, one: dict[str, Any]) -> None:
    """Change a number or a name anywhere below the tables."""
    node: Any = draw.choice((one["polynomials"], one["definitions"], one["pieces"], one["pieces"]))
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = draw.choice(keys)
        if not isinstance(node[key], list | dict) or (isinstance(node[key], list) and draw.random() < 0.02):
            break
        node = node[key]
    value = node[key]
    if isinstance(value, list):
        del node[key]
    elif type(value) is int:
        node[key] = draw.choice((value + 1, value - 1, -value, 0, 2 * value, draw.randrange(40)))
    elif type(value) is str and value[:1] in "-0123456789" and value:
        node[key] = draw.choice(("0", "1", "-1", "1/2", f"-{value}", "1000000"))
    elif type(value) is str:
        node[key] = draw.choice(("id", "id'", "limit", "num_pids", "num_pid_m", "num_xcds", "q0", "q1", "r0", "$G"))


def lie(one: dict[str, Any], draw: random.Random) -> str:
    """Launch at which a claim that was accepted is false; empty where none is found."""
    form, where = parse_form(one["text"]), condition(one["where"])
    for most in (1, 2, 7, 12, 40, 40, 150, 300, None, None, None):
        sides = _sides(draw, one["kind"], most or one["max_workgroups"])
        sides = tuple(2 ** (side.bit_length() - 1) for side in sides) if "&" in one["where"] else sides
        sides = (min(sides),) * len(sides) if "num_pid_m == num_pid_n" in one["where"] else sides
        xcds = one["num_xcds"] or min(one["max_xcds"], draw.choice((1, 2, 3, 5, 8, 13, 1024)))
        shape = sides if one["kind"] == "tiles" else ()
        grid = Grid((sides[0] * sides[1],), shape) if shape else Grid(sides)
        sizes = {name: draw.choice((1, 5, 60000 if most is None else 9)) for name in form.inputs} | one["sizes"]
        if where(grid, xcds) and not holds_at(form, grid, xcds, sizes, draw if most is None else None):
            return f"{grid}, {xcds} XCDs, {one['sizes']}"
    return ""


def _sides(draw: random.Random, kind: str, most: int) -> tuple[int, ...]:
    sides, left = [], most
    for k in range(n := {"line": 1, "tiles": 2, "plane": 2, "box": 3}[kind]):
        sides.append(max(1, draw.choice((left, left, int(left ** (1 / (n - k))))) - draw.choice((0, 0, 1))))
        left //= sides[-1]
    return tuple(sides)


def attack(count: int, seed: int = 0) -> Counter:
    """Count mutants, those that are accepted, and those of them whose claim is false."""
    draw, counts, known = random.Random(seed), Counter(dict.fromkeys(COUNTS, 0)), originals()
    for one in known:
        check(one)
        assert not lie(one, draw), one["text"]
    for _ in range(count):
        original = draw.choice(known)
        changed = mutant(draw, original)
        counts["mutants"] += 1
        if changed == original:
            counts["unchanged"] += 1
            continue
        try:
            check(changed)
        except Refused:
            continue
        counts["accepted"] += 1
        try:
            wrong = lie(changed, draw)
        except SwizzleSimError as error:  # a text that the language refuses: the checker knows it no better
            counts[f"{type(error).__name__} of an accepted text"] += 1
            continue
        if wrong:
            counts["false"] += 1
            print("FALSE", wrong, changed["kind"], changed["where"], changed["text"], sep="\n", flush=True)
    return counts


def liars(count: int, seed: int = 0) -> Counter:
    """The same of a finder that believes more than it has shown, and of texts that are mostly false."""
    draw, counts = random.Random(seed), Counter(dict.fromkeys(("texts", "accepted", "false"), 0))
    shown = Knowledge._ask

    def believes(self: Knowledge, key, search) -> bool:
        if draw.random() < 0.7 and shown(self, key, search):
            return True
        if draw.random() < 0.4:
            return False
        self.steps.append(("false", OBVIOUS) if key[0] is None else ("show", key[0], OBVIOUS))
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Knowledge, "_ask", believes)
        patch.setattr(Samples, "below_zero", lambda *_: False)
        for _ in range(count):
            text, where, sizes = draw.choice(TEXTS)
            with suppress(SwizzleSimError, KeyError), certificates() as found:
                form = parse_form(mutated(draw, text))
                counts["texts"] += 1
                prove(form, kind_of(form), sizes, parse_condition(where) if where else None, steps=60)
                counts["accepted"] += len(found)
                counts["false"] += sum(bool(lie(one, draw)) for one in found)
    return counts


def main() -> None:
    """Attack, and print what was found."""
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("count", type=int)
    words.add_argument("--seed", type=int, default=0)
    given = words.parse_args()
    print(dict(attack(given.count, given.seed)))
    print(dict(liars(given.count // 10, given.seed)))


if __name__ == "__main__":
    main()
