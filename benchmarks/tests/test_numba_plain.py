"""Are scores the same bytes where numba's private parts are gone? Everything is compiled from nothing: a minute."""

import os
import subprocess
import sys

GONE = "del numba.core.typed_passes.NativeLowering"


SCORES = """
from swizzle_sim.__main__ import main
for replay in ("lockstep", "timed"):
    sys.argv[1:] = ["score", "gemm", "M=512", "N=512", "K=64", "--swizzle", "row", "--replay", replay, "--json"]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
"""


def run(change, code, **environment):
    """What a process prints in which numba is changed before we import it; a warning is an error there."""
    program = f"import sys, numba.core.typed_passes\n{change}\n{code}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_scores_are_the_same_bytes(tmp_path):
    apart = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "1"}  # compiled from nothing, in half the time
    assert run(GONE, SCORES, **apart) == run("", SCORES)
