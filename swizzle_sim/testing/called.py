"""A plain Python function of a file, called in a process of its own: `check --call`, and pytest's.

The caller's code may do anything, so nothing of it runs where verdicts are made: the process is handed arguments as
JSON, one line each, and hands back answers; its death is a failure of the function.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from xcd_model.errors import SwizzleSimError


class Died(SwizzleSimError):
    """The process that calls a function ended, or its file cannot be imported."""

    code = "died"


class Called:
    """Function that another process calls."""

    def __init__(self, path: Path, function: str):
        self.__name__, self.place = function, f"{path}::{function}"
        words = [sys.executable, "-m", "swizzle_sim.testing.called", str(path.resolve()), function]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.__signature__ = inspect.Signature([_taken(*one) for one in self._answer()])

    def __call__(self, **given: Any) -> Any:
        """Answer of one call, or of one on whole arrays."""
        self._send({name: _plain(value) for name, value in given.items()})
        return _meant(self._answer())

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()

    def _send(self, document: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(document) + "\n")
            self._process.stdin.flush()
        except OSError:
            self._died()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            found = json.loads(line) if line else self._died()
            if "raised" in found:
                raise type(str(found["raised"]), (Exception,), {})(found["said"])
            if "broken" in found:
                raise Died(f"{self.place}: {found['broken']}")
            return found["answer"]
        except (ValueError, KeyError, TypeError):
            raise Died(f"{self.place}: the process that calls it answers {line[:60]!r}") from None

    def _died(self) -> Any:
        status = self._process.wait()
        raise Died(f"{self.place}: the process that calls it ended, with status {status}")


def _meant(value: Any) -> Any:
    if isinstance(value, dict):
        return np.array(value["array"]) if "array" in value else tuple(map(_meant, value["tuple"]))
    return value


def _plain(value: Any) -> Any:
    """Argument or answer as JSON has it; what is no number as its text, which no caller takes for one."""
    if isinstance(value, tuple):
        return {"tuple": [_plain(one) for one in value]}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return int(value)
    return value if isinstance(value, bool | float | str) or value is None else repr(value)


def main() -> None:
    """Import the file, then answer one line after the other."""
    path, function = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the file prints is no answer

    def say(document: dict[str, Any]) -> None:
        out.write(json.dumps(document) + "\n")
        out.flush()

    try:
        spec = importlib.util.spec_from_file_location(f"swizzle_check_{Path(path).stem}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        called = getattr(module, function)
        taken = inspect.signature(called).parameters.values()
        say({"answer": [_parameter(one) for one in taken if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]})
    except BaseException as error:
        say({"broken": f"{type(error).__name__}: {error}"})
        return
    for line in sys.stdin:
        given = {name: _meant(value) for name, value in json.loads(line).items()}
        try:
            with np.errstate(all="raise"):
                say({"answer": _plain(called(**given))})
        except Exception as error:
            say({"raised": type(error).__name__, "said": str(error)})


def _taken(name: str, kind: str, has_default: bool) -> inspect.Parameter:
    how = inspect.Parameter.POSITIONAL_OR_KEYWORD if kind == "plain" else inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, how, default=0 if has_default else inspect.Parameter.empty)


def _parameter(one: inspect.Parameter) -> tuple[str, str, bool]:
    return one.name, "plain" if one.kind is one.POSITIONAL_OR_KEYWORD else "keyword", one.default is not one.empty


if __name__ == "__main__":
    main()
