"""A worker that does what a user's file may do to its process; not a test."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import triton


def main(question, answer):
    """Obey the request: a code to run, or what this process knows."""
    request = json.loads(Path(question).read_text())
    print("on the standard output")
    print("last words", file=sys.stderr, flush=True)
    if "status" in request:
        os._exit(request["status"])
    if "signal" in request:
        os.kill(os.getpid(), request["signal"])
    time.sleep(request.get("sleep_s", 0))
    seen = {
        "triton": triton.__file__,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": sys.path,
        "int": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "words": sys.argv[1:] == [question, answer],
        "stdin": sys.stdin.read(),
    }
    Path(answer).write_text(json.dumps(seen))
