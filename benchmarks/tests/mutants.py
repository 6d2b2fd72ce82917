"""Change one operator, constant or statement at a time of the rules that every count rests on: does a test notice?

    python -m benchmarks.tests.mutants [--only lru "event queue"] [--jobs 2]  # prints survivors, and the counts as JSON
    python -m benchmarks.tests.mutants --only lru --functions _touch

Numba is off, so that a compiled function is plain Python, and a mutant is put into it where it stands: its code object
is exchanged in a forked process, which then runs the tests that call the function, those that take least first, until
one fails. mutmut and cosmic-ray write mutants into files and start Python for each; forking takes a tenth of that. A
mutant that changes no result, such as ``<=`` where the two are never equal, is on the list `EQUAL` with its reason.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import inspect
import json
import os
import signal
import sys
import tempfile
import textwrap
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

os.environ["NUMBA_DISABLE_JIT"] = "1"  # before anything imports numba

UNIT = "tests/unit"
SECONDS, TIMES = 2.0, 5  # of the processor, a test: a loop that does not end is noticed, too
EQUAL = {
    "_first_of: 'other_rank < rank' #0": "of two events of one rank, at `NEVER`, either is the first",
    "_next_pid: '1' #0": "no work is any negative id",
    "_next_pid: '1' #0 (2)": "no work is any negative id",
    "slots_in_step: '1' #0": "no tile is any negative id",
    "_claim: 'tile < n_tiles' #0": "a counter past its tiles gives none, however far past",
    "run: 'steps <= budget.left' #0": "what hands its coordinates on is run to the same result",
    "run: '1' #0": "no register is any negative one",
    "run: '1' #0 (2)": "no workgroup is any negative id",
    "run: '1' #0 (3)": "NumPy takes any negative side for the one that is to be found",
    "counterexample_of: '1' #0 (2)": "no workgroup is any negative id",
    "_run_one: '0' #0 (9)": "the line of no fault is read by nobody",
    "_operate: 'a < 0' #0": "zero divided leaves no remainder",
    "_operate: 'b < 0' #0": "a divisor of zero was refused before",
    "_operate: '0' #0 (8)": "zero divided leaves no remainder",
    "_operate: '0' #0 (9)": "a divisor of zero was refused before",
    "replay_lru: '0' #0 (2)": "the tags of a stream without lines are looked up nowhere",
}


@dataclass(frozen=True)
class Target:
    """Functions that state one rule, and the tests that hold it."""

    functions: dict[str, str]  # module -> names
    tests: tuple[str, ...]


TARGETS = {
    "dispatch": Target(
        {
            "xcd_model.dispatch": "run_of xcd_of first_ids _after slots_of slots_in_step _claim _next_pid _next_work "
            "_next_instruction",
            "xcd_model.replay.plan": "check_order",
        },
        (f"{UNIT}/test_dispatch.py",),
    ),
    "lru": Target({"xcd_model.cache.lru": "_touch _replay_lru replay_lru"}, (f"{UNIT}/test_cache.py",)),
    "verdict": Target(
        {
            "swizzle_sim.language.vm": "run are_permutations _read_report permutation_of counterexample_at "
            "counterexample_of",
            "swizzle_sim.language.at_once": "run_at_once _value",
            "swizzle_sim.language.one_by_one": "run_each _run_launch _run_one _operate",
            "swizzle_sim.language.verdict": "gap_of",
            "swizzle_sim.language.swizzle": "verify _try_lattice",
        },
        (
            *(f"{UNIT}/test_verify.py", f"{UNIT}/test_machine.py"),
            *("-k", "not slow_candidate and not papers_listings"),
        ),
    ),
    "event queue": Target(
        {"xcd_model.replay.events": "event_queue_of _first _first_of _settle"},
        (f"{UNIT}/test_dispatch.py",),
    ),
}

_SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changes(node):
    """Yield functions that change one node in place, each a mutant."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in _SWAPS:
        yield lambda one: setattr(one, "op", _SWAPS[type(one.op)]())
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            if type(op) in _SWAPS:
                yield lambda one, k=k: one.ops.__setitem__(k, _SWAPS[type(one.ops[k])]())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield lambda one: setattr(one, "value", one.value + 1)
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield lambda one: setattr(one, "value", not one.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield lambda one: setattr(one, "op", ast.UAdd())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda one: setattr(one, "operand", ast.UnaryOp(ast.Not(), one.operand))
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield lambda one: setattr(one, "test", ast.UnaryOp(ast.Not(), one.test))
    for k, part in enumerate(getattr(node, "body", ()) if isinstance(node, ast.stmt) else ()):
        if isinstance(part, ast.AugAssign | ast.Break | ast.Continue) or (
            isinstance(part, ast.Assign) and not isinstance(part.targets[0], ast.Name)
        ):
            yield lambda one, k=k: one.body.__setitem__(k, ast.Pass())


def mutants_of(module, name):
    """Yield the label and the code object of every mutant of a function."""
    function = getattr(module, name)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree.body[0].decorator_list, tree.body[0].returns = [], None
    for one in ast.walk(tree.body[0].args):
        if isinstance(one, ast.arg):
            one.annotation = None  # some of them exist for mypy alone
    for one in ast.walk(tree):
        if isinstance(one, ast.AnnAssign):
            one.annotation = ast.Name("object", ast.Load())  # of a local, which Python does not evaluate
    first, seen = function.__code__.co_firstlineno - 1, Counter()
    for at, node in enumerate(_inside(tree)):
        for k, _ in enumerate(changes(node)):
            mutant = copy.deepcopy(tree)
            changed = list(_inside(mutant))[at]
            before = ast.unparse(changed).split("\n")[0]
            list(changes(changed))[k](changed)
            ast.fix_missing_locations(mutant)
            space = dict(vars(module))
            exec(compile(mutant, module.__file__, "exec"), space)  # our own source
            what = f"{name}: {before!r} #{k}"
            seen[what] += 1
            which = f" ({seen[what]})" if seen[what] > 1 else ""  # the second of the same words, and so on
            label = f"{module.__name__}:{first + getattr(node, 'lineno', 1)} {what}{which}"
            yield label, function, space[name].__code__


def _inside(tree):
    """Nodes of a function's body: its annotations and docstring change nothing."""
    for stmt in tree.body[0].body:
        if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)):
            yield from ast.walk(stmt)


class Quick:
    """For pytest: the first example that fails is enough, and the same ones are drawn each time."""

    def pytest_collection(self, session):
        from hypothesis import HealthCheck, Phase, settings

        quick = {"phases": (Phase.explicit, Phase.generate), "derandomize": True, "database": None, "deadline": None}
        settings.register_profile("mutants", suppress_health_check=list(HealthCheck), **quick)
        settings.load_profile("mutants")


class Recorded(Quick):
    """Notes what each test takes, and which functions it calls."""

    def __init__(self, functions):
        self.names = {function.__code__: function.__name__ for function in functions}
        self.found = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        began, called = time.process_time(), set()

        def note(frame, event, _):
            if name := self.names.get(frame.f_code):
                called.add(name)

        sys.setprofile(note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            self.found[item.nodeid] = {"seconds": time.process_time() - began, "called": sorted(called)}


class Chosen(Quick):
    """Runs the tests that call a function, the quickest first, each for a few times what it takes without a mutant."""

    def __init__(self, seconds):
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted(
            (one for one in items if one.nodeid in self.seconds), key=lambda one: self.seconds[one.nodeid]
        )

    def pytest_runtest_setup(self, item):
        signal.setitimer(signal.ITIMER_PROF, SECONDS + TIMES * self.seconds[item.nodeid])  # of the processor alone


def forked(act):
    """What ``act`` returns, in a process of its own whose prints nobody sees; None if it dies."""
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
                json.dump(act(), answer)
                answer.flush()
            os._exit(0)
        os.waitpid(child, 0)
        answer.seek(0)
        return json.loads(answer.read() or "null")


def ran(tests, plugin):
    """Whether tests pass."""
    words = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--assert=plain", *tests]
    return int(pytest.main(words, plugins=[plugin])) == 0


def recorded(functions, tests):
    """Seconds and called functions of each test; None if one fails."""
    plugin = Recorded(functions)
    return forked(lambda: plugin.found if ran(tests, plugin) else None)


def noticed(function, code, tests, record):
    """Whether tests fail, or take forever, with other code in a function."""
    seconds = {name: one["seconds"] for name, one in record.items() if function.__name__ in one["called"]}

    def act():
        function.__code__ = code
        return ran(tests, Chosen(seconds))

    return not (seconds and forked(act))


def survivors_of(target, pool, chosen):
    """Labels of the mutants of one rule that no test notices, and how many there are; of some functions, or all."""
    modules = {importlib.import_module(module): names.split() for module, names in target.functions.items()}
    for path in target.tests:
        if path.endswith(".py"):  # once, and not in each fork
            importlib.import_module(path[:-3].replace("/", "."))
    record = recorded([getattr(module, each) for module, names in modules.items() for each in names], target.tests)
    if record is None:
        raise SystemExit(f"{target.tests}: they fail without a mutant")

    def survives(label, function, code):
        seen = noticed(function, code, target.tests, record)
        if not seen:
            print(f"survives: {label}", file=sys.stderr, flush=True)
        return not seen

    module_of = {each: module for module, names in modules.items() for each in names}
    named = [(module_of[each], each) for each in chosen or module_of]
    mutants = [one for module, each in named for one in mutants_of(module, each)]
    left = list(pool.map(lambda one: survives(*one), mutants))
    return [label for (label, *_), survived in zip(mutants, left, strict=True) if survived], len(mutants)


def main(arguments):
    """Try every mutant; the counts as JSON, status 1 if one survives that is not on the list."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--functions", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args(arguments)
    found, survivors = {}, []
    with ThreadPoolExecutor(given.jobs) as pool:
        for name in given.only:
            left, count = survivors_of(TARGETS[name], pool, given.functions)
            equal = [label for label in left if label.split(" ", 1)[1] in EQUAL]  # without module and line
            survivors += [label for label in left if label not in equal]
            found[name] = {"mutants": count, "noticed": count - len(left), "equal": len(equal)}
            print(json.dumps({name: found[name]}), file=sys.stderr, flush=True)
    print(json.dumps({"mutants": found, "survivors": survivors}, indent=2))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
