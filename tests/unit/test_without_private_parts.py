"""Where numba's private parts are gone or were not tried: are kernels compiled without them, to the same bytes?"""

import os
import subprocess
import sys

import pytest

GONE = "del numba.core.typed_passes.NativeLowering"
GONE_TOO = "del numba.core.untyped_passes.WithLifting"
UNTRIED = "numba.version_info = numba.version_info._replace(short=(0, 1000))"
UNKNOWN = "del numba.core.options.DefaultOptions._nrt, numba.core.options.DefaultOptions.no_cpython_wrapper"
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


@pytest.mark.parametrize("change", [GONE, GONE_TOO, UNTRIED])
def test_kernels_are_compiled_without_them(change):
    code = "from xcd_model.compiled.numba_setup import uncounted; print(*sorted(uncounted.keywords))"
    assert "pipeline_class" not in run(change, code)


def test_options_that_numba_no_longer_knows_are_left_out():
    code = "from xcd_model.compiled import numba_setup as n; print(n.known(_nrt=False, forceinline=True))"
    assert run(UNKNOWN, code) == "{'forceinline': True}\n"


def test_scores_are_the_same_bytes(tmp_path):
    apart = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "1"}  # compiled from nothing, in half the time
    assert run(GONE, SCORES, **apart) == run("", SCORES)
