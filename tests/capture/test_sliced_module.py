"""Is a kernel's file read from the midst of a package that is not installed?"""

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
    "pkg_of_test/shim.py": "from pkg_of_test.platforms import VERSION, current\n\n"
    "if current.name == 'plain' and VERSION == '0':\n    import triton\n    import triton.language as tl\n",
    "pkg_of_test/kernel.py": "from pkg_of_test.shim import tl, triton\n\n\n@triton.jit\n"
    "def scale(x_ptr):\n    tl.store(x_ptr, tl.load(x_ptr) * 2)\n",
}


@needs_triton
def test_a_name_that_a_module_makes_when_it_is_asked_for_it(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = sliced_module.sliced_module(tmp_path / "pkg_of_test" / "kernel.py", "gfx942")
    try:
        assert type(found.function("scale")).__name__ in ("JITFunction", "InterpretedFunction")
    finally:
        sliced_module.forget_sliced()


def test_a_file_is_parsed_once_until_it_changes(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text("A = 1\n")
    first = sliced_module.read_once(path)
    assert sliced_module.read_once(path) is first
    path.write_text("A = 2\n")
    os.utime(path, ns=(1, 1))
    assert sliced_module.read_once(path).text == "A = 2\n"
