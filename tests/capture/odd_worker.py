"""A worker that does what a user's file may do to its process; not a test."""

import os
import signal
import sys
import time

import triton


def answer(request):
    """Obey the request: a code to run, or what this process knows."""
    print("on the standard output")
    print("last words", file=sys.stderr, flush=True)
    if "status" in request:
        os._exit(request["status"])
    if "signal" in request:
        os.kill(os.getpid(), request["signal"])
    time.sleep(request.get("sleep_s", 0))
    return {
        "triton": triton.__file__,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": sys.path,
        "int": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "stdin": sys.stdin.read(),
    }
