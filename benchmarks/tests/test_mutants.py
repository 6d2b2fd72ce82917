"""Are the rules that mutants change, and the tests that shall notice, there by those names?"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MISSING = """
import importlib, pathlib
from benchmarks.tests.mutants import TARGETS
for target in TARGETS.values():
    print(*[path for path in target.tests if path.endswith(".py") and not pathlib.Path(path).is_file()])
    for module, names in target.functions.items():
        known = dir(importlib.import_module(module))
        print(*[name for name in names.split() if name not in known])
"""


def test_mutants_are_of_functions_and_tests_that_are_there():
    """In a process of its own: the mutants run without compiled kernels."""
    done = subprocess.run([sys.executable, "-c", MISSING], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
