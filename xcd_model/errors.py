"""The one tree of errors that swizzle-sim raises on purpose.

    SwizzleSimError
    ├── SpecError        a GPU description that cannot be true
    ├── TraceError       a trace that cannot be replayed
    ├── ReplayError      a replay asked for what the model does not have
    ├── UnknownName      no kernel, GPU, family, parameter or size of that name
    ├── SizeError        problem sizes that make no sense for a kernel
    ├── LanguageError    a candidate outside the closed language
    ├── NotBijective     a candidate that is not a permutation of the grid
    │   └── Deadlock     a permutation that hands out a tile before one that it waits for
    ├── TornCluster      an order that parts workgroups which are dispatched together
    ├── RunError         a run folder that is missing, in the way or damaged
    ├── ModelError       a language model that cannot be asked, or did not answer
    ├── SearchError      a space with nothing in it, or a search or sweep that cannot be run
    ├── CaptureError     a Triton kernel that cannot be captured, or a trace file that cannot be read
    ├── CompileError     a kernel that Triton's AMD backend does not compile, or no Triton to do it
    ├── RewriteError     a kernel whose source cannot take a swizzle, or that computes otherwise with it
    ├── HardwareError    a bundle, a profiler's file or a result that cannot be made, read or taken
    ├── OptionError      a check asked for in words that cannot be read
    └── MissingExtra     a part whose packages are not installed

Each carries ``code``, a word that stays the same between versions: it is what ``--json`` prints and what
a proposer is told, so a message may be reworded and a code may not.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class SwizzleSimError(Exception):
    """Base of every error raised on purpose."""

    code = "error"

    def __init__(self, *words: Any, code: str = ""):
        super().__init__(*words)
        if code:
            self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, vars(self))  # pickled as it is: raised in one process, read in another


def _again(kind: type[SwizzleSimError], args: tuple[Any, ...], state: dict[str, Any]) -> SwizzleSimError:
    """An error without its ``__init__``, which would put its message together a second time."""
    made = kind.__new__(kind, *args)
    vars(made).update(state)
    return made


class SpecError(SwizzleSimError):
    """A GPU description breaks a rule; names file, key, value and rule."""

    code = "gpu-spec"


class TraceError(SwizzleSimError):
    """A trace cannot be replayed; names the workgroup and the instruction."""

    code = "trace"


class ReplayError(SwizzleSimError):
    """A replay was asked for something that the model does not have."""

    code = "replay"


class UnknownName(SwizzleSimError):
    """No such name; the message offers the nearest ones.

    Parameters
    ----------
    what : str
        The noun, such as ``"kernel"``.
    name : str
        What was asked for.
    choices : iterable of str
        What there is.
    """

    code = "unknown-name"

    def __init__(self, what: str, name: str, choices: Iterable[str]):
        known = sorted(choices)
        folded = {choice.lower(): choice for choice in known}
        close = [folded[match] for match in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        super().__init__(f"no {what} is called {name!r}; {hint}there is: {', '.join(known)}")
        self.what, self.name, self.nearest = what, name, tuple(close)


class SizeError(SwizzleSimError):
    """Problem sizes that make no sense; names the size, its value and the rule."""

    code = "size"


class LanguageError(SwizzleSimError):
    """A candidate's text is outside the closed language.

    Parameters
    ----------
    message : str
        What was found and which rule it breaks.
    filename : str
    line, column : int
        Where, both counted from 1; 0 when the text as a whole is at fault.
    source_line : str
        The line of text, for the caret.
    code : str
        Stable code, one of ``syntax``, ``name``, ``call``, ``node``, ``limit``, ``unassigned``, ``result``,
        ``parameter`` (of a family), ``file``.
    """

    code = "language"

    def __init__(self, message, *, filename="<candidate>", line=0, column=0, source_line="", code=""):
        place = f"{filename}:{line}:{column}: " if line else f"{filename}: "
        caret = f"\n    {source_line}\n    {' ' * (column - 1)}^" if line and source_line else ""
        super().__init__(f"{place}{message}{caret}", code=code)
        self.message, self.filename, self.line, self.column = message, filename, line, column

    def placed(self, filename: str, text: str) -> LanguageError:
        """Same error with the file named and the line shown, where it was found after parsing."""
        lines = text.splitlines()
        if self.filename != "<candidate>" or not 1 <= self.line <= len(lines):
            return self
        source_line = lines[self.line - 1]
        column = len(source_line) - len(source_line.lstrip()) + 1
        return LanguageError(
            self.message, filename=filename, line=self.line, column=column, source_line=source_line, code=self.code
        )


class NotBijective(SwizzleSimError):
    """A candidate is not a permutation of the grid, so it has no score."""

    code = "not-bijective"


class Deadlock(NotBijective):
    """A permutation hands out a tile before one that it waits for, so it has no score either: programs may hang."""

    code = "deadlock"


class TornCluster(SwizzleSimError):
    """An order parts workgroups that the hardware dispatches as one cluster, so it cannot run."""

    code = "torn-cluster"


class RunError(SwizzleSimError):
    """A run folder is missing, in the way or damaged."""

    code = "run"


class ModelError(SwizzleSimError):
    """A language model cannot be asked, or did not answer."""

    code = "model"


class SearchError(SwizzleSimError):
    """A space has nothing in it, or a search or sweep cannot be run as asked."""

    code = "search"


class CaptureError(SwizzleSimError):
    """A Triton kernel cannot be captured, or a trace file cannot be read; names the argument or the source line."""

    code = "capture"


class CompileError(SwizzleSimError):
    """A kernel was not compiled: Triton refused it, or is missing; names file and line where Triton does."""

    code = "compile"


class RewriteError(SwizzleSimError):
    """A kernel cannot take a swizzle, or its rewritten form does not compute what it did."""

    code = "rewrite"

    def __init__(self, message: str, *, path="", line: int = 0):
        place = f"{path}:{line}: " if line else f"{path}: " if path else ""
        super().__init__(place + message)
        self.message, self.path, self.line = message, str(path), line


class HardwareError(SwizzleSimError):
    """A bundle, a profiler's file or a result cannot be made, read or taken; names both sides of what differs."""

    code = "hardware"


class OptionError(SwizzleSimError):
    """A ``# swizzle-check:`` comment, a marker or an argument that cannot be read; names the word and the rule."""

    code = "option"


class MissingExtra(SwizzleSimError, ImportError):
    """An optional extra is not installed; says how to install it. An ``ImportError`` too, so that a test can skip."""

    code = "extra"
