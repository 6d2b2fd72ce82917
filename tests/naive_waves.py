"""Waves of a SIMD, cycle by cycle: in each cycle one of those that may issues, the last again or the youngest.

The oracle of `swizzle_sim.nvidia.waves`, which goes from one issue to the next. An instruction here is a
dict: ``unit`` with the ``cycles`` that it keeps it, ``matrix`` and ``fills`` cycles, ``operands`` (cycles in which a
product reads them from shared memory), ``copies`` what comes later, ``late`` (cycles until its result), ``stall``,
``sets``, ``reads`` and ``waits`` of barriers, ``ends`` a group of products, ``left`` groups, ``joins`` others,
``copied`` (cycles in which an SM takes a copy in, None for what is none), ``awaits`` copies.
"""

from fractions import Fraction

BARRIER, READ = 20, 12
QUEUED = "shared"


def mean_step(code, waves, workgroups, apart, l2, far=0, turns=4):
    """Cycles in which each wave does a turn in the mean, without as many turns as there are waves."""
    all_waves = [
        {"workgroup": one, "next": one * apart, "at": 0, "turn": 0, "open": {}, "groups": [0]}
        for one in range(workgroups)
        for _ in range(waves)
    ]
    free, came, ends, cycle, last = {"copies": far}, {}, [], 0, None
    while len(ends) < turns * len(all_waves):
        may = [_may(code[wave["at"]], wave, me, waves, free, came, cycle) for me, wave in enumerate(all_waves)]
        if any(may):
            if last is None or not may[last]:
                last = max(me for me, can in enumerate(may) if can)
            copied = code[all_waves[last]["at"]]["copied"]
            _issue(code, all_waves[last], free, cycle, l2, ends)
            if far and copied is not None:
                free["copies"] = max(cycle + far, free.get("copies", 0)) + copied
        cycle += 1
    ends.sort()
    return (ends[-1] - ends[len(all_waves) - 1]) / (turns - 1)


def _may(one, wave, me, waves, free, came, cycle):
    if cycle < wave["next"] or any(cycle < wave["open"].get(barrier, 0) for barrier in one["waits"]):
        return False
    if one["awaits"] and cycle < free.get("copies", 0):
        return False
    if one["left"] is not None and len(wave["groups"]) > one["left"] and cycle < wave["groups"][-1 - one["left"]]:
        return False
    if one["joins"]:
        here = came.setdefault((wave["workgroup"], wave["turn"], wave["at"]), {})
        here.setdefault(me, cycle)
        if len(here) < waves or cycle < max(here.values()) + BARRIER:
            return False
    return one["unit"] in (None, QUEUED) or cycle >= free.get(one["unit"], 0)


def _issue(code, wave, free, cycle, l2, ends):
    one, done = code[wave["at"]], cycle
    if one["unit"] == QUEUED:
        until, got = max(cycle, free.get(QUEUED, 0)), Fraction(0)
        while got < one["cycles"]:
            got += 1 - free["operands"] if until < free.get("matrix", 0) and not one["copies"] else 1
            until += 1
        done, free[QUEUED] = until - 1, until
    elif one["unit"]:
        free[one["unit"]] = cycle + one["cycles"]
    if one["matrix"]:
        free["matrix"] = max(cycle, free.get("matrix", 0)) + one["matrix"]
        free["operands"] = Fraction(one["operands"], one["matrix"])
        if one["ends"]:
            wave["groups"].append(free["matrix"])
    there = done + one["late"]
    if one["fills"]:
        there = free["fill"] = max(cycle + l2, free.get("fill", 0)) + one["fills"]
    for barrier, until in ((one["sets"], there), (one["reads"], done + READ)):
        if barrier is not None:
            wave["open"][barrier] = max(wave["open"].get(barrier, 0), until)
    wave["next"] = cycle + max(1, one["stall"])
    wave["at"] += 1
    if wave["at"] == len(code):
        wave["at"] = 0
        wave["turn"] += 1
        ends.append(wave["next"])
