"""Is the language patched once a launch, for each module, and as it was when the launch has ended?"""

from types import SimpleNamespace

import pytest

from swizzle_sim.capture.patched_once import patch_once_a_launch


class Scope:
    def __init__(self, log):
        self.log = log

    def restore(self):
        self.log.append("restored")


@pytest.fixture
def patched():
    """What an interpreter has done, the interpreter, and functions of two modules."""
    log = []

    def patch(function):
        log.append(function.__globals__["name"])
        return Scope(log)

    interpreter = SimpleNamespace(_patch_lang=patch, _LangPatchScope=lambda: Scope([]))
    patch_once_a_launch(interpreter)
    kernel, helper = (SimpleNamespace(__globals__={"name": name}) for name in ("kernel", "helper"))
    return log, interpreter, kernel, helper


def test_helpers_of_a_launch_are_patched_once_and_again_in_the_next(patched):
    log, interpreter, kernel, helper = patched
    for _ in range(2):
        launch = interpreter._patch_lang(kernel)
        for function in (helper, kernel, helper):
            interpreter._patch_lang(function)
        launch.restore()
    assert log == ["kernel", "helper", "restored"] * 2
