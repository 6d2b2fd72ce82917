"""A wheel in a fresh environment: does every command of the README that needs no GPU run there? ``make wheel``.

python -m benchmarks.tests.wheel            # what a laptop has
python -m benchmarks.tests.wheel triton     # with the extra: the README's lines on a kernel of your own, too
"""

import os
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.docs.scene import set_scene
from tests.docs.typed import ROOT, typed_on


def main(extras):
    """Build, install and run; the exit status is the number of commands that failed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], cwd=folder)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        wheel = next(folder.glob("*.whl"))
        what = f"swizzle-sim[{','.join(extras)}] @ {wheel.as_uri()}" if extras else str(wheel)
        _run([python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", what], cwd=folder)
        (folder / "run").mkdir()
        failed = sum(
            not _works(python, one, folder / "run", "triton" in extras) for one in typed_on(ROOT / "README.md")
        )
    return failed


def _works(python, one, folder, triton):
    """Run one command as typed, in its own folder, and say what came of it."""
    words = shlex.split(one.text, comments=True)
    needs_triton = "optimize examples/" in one.text
    if words[0] != "swizzle-sim" or (needs_triton and not triton):
        print("not run:", one.text)
        return True
    here = Path(tempfile.mkdtemp(dir=folder))
    set_scene(here, one.page, one.text, ROOT)
    done = subprocess.run([python, "-m", "swizzle_sim", *words[1:]], cwd=here, capture_output=True, text=True)
    whole = all(line in done.stdout for line in one.shown)
    works = done.returncode in (0, 1) and "Traceback" not in done.stderr and whole
    print("runs:" if works else f"FAILS ({done.returncode}):", one.text, "" if works else done.stdout + done.stderr)
    return works


def _run(words, **options):
    subprocess.run([str(word) for word in words], check=True, **options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
