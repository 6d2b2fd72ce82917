"""`Emission`: how a swizzle is spelled in a kernel, in a form for every size or folded to a launch."""

from __future__ import annotations

from dataclasses import dataclass

from xcd_model.errors import RewriteError

ELSEWHERE = ("any", "general", "launch-order")


@dataclass(frozen=True)
class Emission:
    """One spelling.

    Parameters
    ----------
    folded : bool
        Whether counts and sizes are constants of the launch, behind a condition that this is the launch.
    elsewhere : str
        What a folded form does at other sizes: ``"general"``, the swizzle's general form, or ``"launch-order"``.
    handed : bool
        Whether (pid_m, pid_n) are handed over where the kernel would take them out of a program id again.
    """

    folded: bool = False
    elsewhere: str = "general"
    handed: bool = False

    @property
    def name(self) -> str:
        """As `RemapPrice.emission` has it; `named` reads it."""
        first = f"this launch, else {self.elsewhere.replace('-', ' ')}" if self.folded else "general"
        return f"{first}; pid_m, pid_n" if self.handed else first


GENERAL = Emission()
ALL = (
    Emission(folded=True),
    Emission(folded=True, elsewhere="launch-order"),
    GENERAL,
    Emission(folded=True, handed=True),
    Emission(folded=True, elsewhere="launch-order", handed=True),
    Emission(handed=True),
)


def emissions(elsewhere: str = "any") -> tuple[Emission, ...]:
    """Spellings to try, preferred ones first.

    Parameters
    ----------
    elsewhere : {"any", "general", "launch-order"}
        What the kernel shall do at other sizes than the launch's: ``"any"`` takes what is cheapest at the launch.

    Raises
    ------
    RewriteError
        If there is no such choice.
    """
    if elsewhere not in ELSEWHERE:
        raise RewriteError(f"elsewhere = {elsewhere!r}: one of {', '.join(ELSEWHERE)}")
    return tuple(one for one in ALL if elsewhere in ("any", one.elsewhere))


def named(name: str) -> Emission:
    """Spelling of a name.

    Raises
    ------
    RewriteError
        If there is none of that name.
    """
    for one in ALL:
        if one.name == name:
            return one
    raise RewriteError(f"no emission is called {name!r}; there is: {' / '.join(one.name for one in ALL)}")
