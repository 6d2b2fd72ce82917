"""A point that takes a while and leaves a mark, for sweeps in other processes."""

import os
import time
import uuid
from pathlib import Path

from swizzle_sim.search.fleet import judged_launch


def judged_slowly(point):
    """Judge a launch of a fleet, and say which worker did."""
    time.sleep(0.15)
    return {**judged_launch(point), "worker": os.getpid()}


def marked(point):
    """Square a number, slowly, and leave a file for each time it is done."""
    time.sleep(point["sleep_s"])
    (Path(point["folder"]) / f"ran-{point['n']}-{uuid.uuid4().hex}").touch()
    return {"square": point["n"] ** 2, "worker": os.getpid()}
