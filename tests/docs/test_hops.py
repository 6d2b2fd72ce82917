"""How many files does a reader open to follow one command? Every file that ``score`` enters is a hop."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The timed replay, the default, has six files that lockstep has not (events, queues, memory's rows and turnaround), and
# four that say what its time is worth and what to do: objectives, measured pairs, ranking, advice.
# Tiles of a trace have a file of their own since it also numbers what lies alike, and so have how workgroups issue and
# what was fitted, which did not fit the files of replays and scores any more; and passes through an L1 of banks, which
# boxes and gathers share. Scores are read from runs, and texts of candidates, without the
# compiler: what such a reader needs is not in the files that replay. What runs a
# candidate in step is Python and no longer a part of a compiled function, which a profile does not see (47 and 56).
MOST = {"lockstep": 47, "timed": 56}

# In processes of their own: a profile of this one would see pytest, and imports that other tests have done. The first
# names the modules that the command loads; the second loads them before it counts, so that imports are no hops.
LOAD = """
import contextlib, io, sys
from swizzle_sim.cli import main

with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(*(name for name in sys.modules if name.split(".")[0] in {"swizzle_sim", "xcd_model", "swizzle_agent",
"swizzle_benchmarks"}))
"""
COUNT = """
import contextlib, importlib, io, os, sys
from swizzle_sim.cli import main

root, modules, entered = sys.argv.pop(1), sys.argv.pop(1), set()
for module in modules.split():
    importlib.import_module(module)

def profile(frame, event, argument):
    code = frame.f_code
    is_function = code.co_flags & 1  # CO_OPTIMIZED: not a module or a class body
    ours = code.co_filename.startswith(root) and "site-packages" not in code.co_filename
    if event == "call" and is_function and ours:
        entered.add(os.path.relpath(code.co_filename, root))

sys.setprofile(profile)
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
sys.setprofile(None)
print(*sorted(entered), sep="\\n")
"""


def answer(code, *words):
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("replay", MOST)
def test_a_score_is_followed_through_few_files(replay):
    words = ["score", "gemm", "M=1024", "N=1024", "K=128", "--swizzle", "row", "--replay", replay]
    entered = answer(COUNT, str(ROOT), answer(LOAD, *words), *words).split()
    assert {"swizzle_sim/cli/score.py", "swizzle_sim/scoring.py"} <= set(entered)
    assert len(entered) <= MOST[replay], f"{len(entered)} files: " + ", ".join(entered)
    of_cli = [path for path in entered if path.startswith("swizzle_sim/cli/")]
    assert len(of_cli) <= 5, of_cli
