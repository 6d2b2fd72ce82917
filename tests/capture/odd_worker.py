"""A worker that does what a user's file may do to its process; not a test."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

KNOWN = ["of the import"]


def preload():
    """Say that it was done once."""
    KNOWN.append(f"preloaded by {os.getpid()}")


def main(*words):
    """Obey one word, or write what this process knows to a file."""
    verb, *rest = words
    if verb == "look":
        Path(rest[0]).write_text(json.dumps(look()))
    elif verb == "spoil":
        KNOWN.append("spoilt")
        os.environ["SPOILT"] = "1"
        sys.path.insert(0, "/spoilt")
        np.spoilt = True
        os.chdir("/")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.setrecursionlimit(77)
    elif verb == "say":
        print(rest[0], file=sys.stderr)
    elif verb == "raise":
        raise ValueError("eight")
    elif verb == "exit":
        sys.exit(int(rest[0]))
    elif verb == "die":
        os.kill({"self": os.getpid(), "server": os.getppid()}[rest[0]], int(rest[1]))
        time.sleep(60)
    else:
        time.sleep(600)


def look():
    """What a new process is like."""
    return {
        "known": KNOWN,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": sys.path,
        "spoilt": hasattr(np, "spoilt"),
        "term": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
        "int": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "limit": sys.getrecursionlimit(),
        "drawn": [random.random(), float(np.random.random())],
        "parent": os.getppid(),
        "words": sys.argv[1:],
        "stdin": sys.stdin.read(),
        "open": sorted(int(one) for one in os.listdir("/proc/self/fd")),
    }
