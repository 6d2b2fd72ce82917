"""Is a kernel's file read from the midst of a package that is not installed?"""

import ast
import importlib
import os

from swizzle_sim.capture import sliced_module
from tests.capture.same_trace import needs_triton

FILES = {
    "pkg_of_test/__init__.py": "",
    "pkg_of_test/names.py": "import importlib\nimport importlib.util\n\ndef find(name):\n"
    "    module, _, one = name.rpartition('.')\n    return getattr(importlib.import_module(module), one)\n",
    "pkg_of_test/platforms/__init__.py": "from importlib.metadata import version\n"
    "from pkg_of_test.names import find\n\nVERSION = version('pkg_of_test')\n\n"
    "def __getattr__(name):\n    if name == 'current':\n        return find('pkg_of_test.platforms.plain.Plain')()\n"
    "    raise AttributeError(name)\n",
    "pkg_of_test/platforms/plain.py": "class Plain:\n    name = 'plain'\n",
    "pkg_of_test/shim.py": "from pkg_of_test.platforms import VERSION, current\n"
    "from triton.backends import backends\n\nactive = [one for one in backends.values() if one.driver.is_active()]\n"
    "if current.name == 'plain' and VERSION == '0' and len(active) == 1:\n"
    "    import triton\n    import triton.language as tl\n",
    "pkg_of_test/kernel.py": "from pkg_of_test.shim import tl, triton\n"
    "from torch._inductor.runtime import triton_heuristics, triton_helpers\n\n\n"
    "@triton_heuristics.template(num_stages=3)\n@triton.jit\n"
    "def scale(x_ptr):\n    tl.store(x_ptr, triton_helpers.twice(tl.load(x_ptr)))\n",
    # torch is stood in for, but for the functions of Triton that its Inductor calls
    "torch/_inductor/runtime/triton_compat.py": "import triton\n",
    "torch/_inductor/runtime/triton_helpers.py": "import torch\nfrom .triton_compat import triton\n\n\n"
    "@triton.jit\ndef twice(x):\n    return x * 2\n",
    "torch/__init__.py": "raise ImportError('is not imported')\n",
}


@needs_triton
def test_a_name_that_a_module_makes_when_it_is_asked_for_it(tmp_path, monkeypatch):
    backends = importlib.import_module("triton.backends").backends
    monkeypatch.setattr(backends["nvidia"].driver, "is_active", staticmethod(lambda: True))  # on a machine that has one
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = sliced_module.sliced_module(tmp_path / "pkg_of_test" / "kernel.py", "gfx942")
    try:
        kinds = ("JITFunction", "InterpretedFunction")
        assert type(found.function("scale")).__name__ in kinds
        assert type(found.module.triton_helpers.twice).__name__ in kinds
    finally:
        sliced_module.forget_sliced()


MAKER = """
def make(width: tl.constexpr = 4, more=None):
    import triton
    import triton.language as tl

    if more:
        return None

    @triton.jit
    def kernel(x_ptr):
        tl.store(x_ptr + width, 1)

    return kernel
"""


def test_a_kernel_inside_a_function_is_read_as_if_it_stood_outside(tmp_path):
    path = tmp_path / "made.py"
    path.write_text(f"import triton.language as tl\n{MAKER}")
    source = sliced_module.read_once(path)
    assert list(source.kernels) == ["kernel"] and ast.literal_eval(source.constants["width"]) == 4
    for other in ("width = 5\n", MAKER.replace("make", "made")):  # either name would mean two things
        path.write_text(f"import triton.language as tl\n{MAKER}{other}")
        os.utime(path, ns=(len(other), len(other)))
        assert not sliced_module.read_once(path).kernels


def test_a_file_is_parsed_once_until_it_changes(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text("A = 1\n")
    first = sliced_module.read_once(path)
    assert sliced_module.read_once(path) is first
    path.write_text("A = 2\n")
    os.utime(path, ns=(1, 1))
    assert sliced_module.read_once(path).text == "A = 2\n"
