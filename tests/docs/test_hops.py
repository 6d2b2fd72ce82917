"""How many files does a reader open to follow one command? Every file that ``score`` enters is a hop."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOAL = 40
MOST = 58  # of today; lower it as files merge, until it is GOAL

# In a process of its own: a profile of this one would see pytest, and imports that other tests have done.
COUNT = """
import contextlib, io, os, sys
from swizzle_sim.cli import main

root, entered = sys.argv.pop(1), set()

def profile(frame, event, argument):
    code = frame.f_code
    is_function = code.co_flags & 1  # CO_OPTIMIZED: not a module or a class body
    if event == "call" and is_function and code.co_filename.startswith(root) and ".venv" not in code.co_filename:
        entered.add(os.path.relpath(code.co_filename, root))

sys.setprofile(profile)
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
sys.setprofile(None)
print(*sorted(entered), sep="\\n")
"""


def test_a_score_is_followed_through_few_files():
    words = ["score", "gemm", "M=1024", "N=1024", "K=128", "--swizzle", "row"]
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(ROOT), *words], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    entered = done.stdout.split()
    assert {"swizzle_sim/cli/score.py", "swizzle_sim/scoring.py"} <= set(entered)
    assert len(entered) <= max(MOST, GOAL), f"{len(entered)} files: " + ", ".join(entered)
    of_cli = [path for path in entered if path.startswith("swizzle_sim/cli/")]
    assert len(of_cli) <= 5, of_cli
