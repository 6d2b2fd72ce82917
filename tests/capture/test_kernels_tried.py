"""Is the page of the published kernels what the rows say, and do the packages still give those rows?"""

import importlib.util
import json

import pytest

from swizzle_benchmarks.kernels_tried.__main__ import HERE, PAGE, ROWS, page, tried
from swizzle_sim.triton_source import read_source

KNOWN = json.loads(ROWS.read_text(encoding="utf-8"))
PACKAGES = {"liger": "liger_kernel", "aiter": "aiter", "moe": "sglang", "others": "fla", "attention": "conch"}


def test_the_page_is_what_the_rows_say():
    assert PAGE.read_text(encoding="utf-8") == page(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_each_row_has_a_declaration(name):
    module, _, variable = name.partition(":")
    assert variable in read_source(HERE / "declarations" / f"{module}.py").constants


@pytest.mark.packages
@pytest.mark.parametrize("name", [name for name in KNOWN if name.partition(":")[0] in PACKAGES])
def test_packages_give_the_rows(name):
    if importlib.util.find_spec(PACKAGES[name.partition(":")[0]]) is None or "applied" in name:
        pytest.skip("its package is not on PYTHONPATH")
    found = tried(name, KNOWN[name]["package"])
    assert found["captured"] == KNOWN[name]["captured"]
    if KNOWN[name]["rewritten"].startswith("yes"):
        assert found["rewritten"].startswith("yes")
