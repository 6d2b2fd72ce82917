"""A process that imports a worker's module once and forks for each worker: ``python -P -m ... MODULE``, on Linux.

It reads orders from the socket that is its stdin, one a packet, and answers each with one:

    fork   with descriptors: the worker's stdin, stdout and stderr, and a file of its environment   -> {"pid": ...}
    end    kills a worker, which may have ended by itself                                          -> {"status": ...}

The process itself runs no file of a user's and compiles nothing: each worker begins as a new process would, with the
imports done. What a worker does to its memory, its folder, its environment or itself stays its own.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import random
import signal
import socket
import sys
import traceback
import warnings
from typing import Any, NoReturn

ORDER_BYTES = 4096
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
FOUR = 4  # descriptors: stdin, stdout, stderr and the environment


def main(module_name: str) -> None:
    """Import the worker's module and obey orders until the socket ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the workers, and for who waits for them
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # numpy's, which sleep
    channel = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    module = importlib.import_module(module_name)
    if hasattr(module, "preload"):
        module.preload()
    while True:
        words, descriptors, *_ = socket.recv_fds(channel, ORDER_BYTES, FOUR)
        if not words:
            break
        channel.send(json.dumps(_obey(json.loads(words), descriptors, module, channel)).encode())
        for one in descriptors:
            os.close(one)


def _obey(order: dict[str, Any], descriptors: list[int], module: Any, channel: Any) -> dict:
    if "end" in order:
        os.kill(order["end"], signal.SIGKILL)  # it is ours until it is waited for, so the id is nobody else's
        return {"status": os.waitstatus_to_exitcode(os.waitpid(order["end"], 0)[1])}
    server = os.getpid()
    pid = os.fork()
    if not pid:
        channel.close()
        _die_with(server)
        _work(module, order["fork"], descriptors)
    return {"pid": pid}


def _die_with(server: int) -> None:
    """Have Linux kill this process when the one that forked it ends: nobody would end it or hear what it says."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def _work(module: Any, arguments: list[str], descriptors: list[int]) -> NoReturn:
    """Be the worker: what ``python -m MODULE ARGUMENTS`` would be."""
    status = 1
    try:
        _settle(module.__name__, arguments, descriptors)
        module.main(*arguments)
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # as Python itself would say it
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)  # neither Triton nor the imports leave anything that needs an orderly end


def _settle(name: str, arguments: list[str], descriptors: list[int]) -> None:
    """Take over the streams, the folder and the environment, and draw other random numbers than the workers before."""
    with open(descriptors[FOUR - 1], encoding="utf-8", closefd=False) as file:
        given = json.load(file)
    for target, one in enumerate(descriptors[: FOUR - 1]):
        os.dup2(one, target)
    for one in descriptors:
        os.close(one)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    own = [given["folder"], *filter(None, given["environment"].get("PYTHONPATH", "").split(os.pathsep))]
    sys.path[:] = [*own, *(path for path in sys.path if path not in own)]
    sys.argv = [name, *arguments]
    random.seed()
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed()


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)
