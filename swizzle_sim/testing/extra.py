"""The optional extra ``testing``, and what is said where it is missing."""

from __future__ import annotations

import importlib.util

from swizzle_sim.release import install_hint
from xcd_model.errors import MissingExtra


def need_hypothesis(what: str) -> None:
    """Refuse where hypothesis is missing.

    Parameters
    ----------
    what : str
        What was asked for.

    Raises
    ------
    MissingExtra
        If there is no hypothesis.
    """
    if importlib.util.find_spec("hypothesis") is None:
        raise MissingExtra(
            f"{what} needs hypothesis, which is not installed: {install_hint('testing')}; "
            "assert_bijective without strategies works without it"
        )
