"""Worker processes, each forked from one that has done a worker's imports: `start_worker`.

A process with Triton's imports takes half a second of a core to start, a forked one a hundredth of that: whoever
captures or compiles often pays once. `swizzle_sim.capture.fork_server` is the other side. A server starts with the
first worker of its kind, runs no file of a user's, and ends with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from xcd_model.errors import CaptureError

SERVER = "swizzle_sim.capture.fork_server"
MOST_SERVERS = 4  # as many as there are modules of workers; for a fifth, one without workers ends
REPLY_BYTES = 4096
TAIL = 1500  # characters shown of what a process said before it died
_READ_ON_IMPORT = ("PYTHON", "TRITON_", "NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "LD_", "SWIZZLE_SIM_")


class ServerDied(Exception):
    """The process that forks has ended."""


class Worker:
    """A process that was forked; made by `start_worker`."""

    def __init__(self, server: _Server, pid: int, stdin: int, stdout: IO[str], said: IO[bytes]):
        self.pid, self.stdin, self.stdout, self._said = pid, stdin, stdout, said
        self.returncode: int | None = None  # minus the signal that it died of
        self.last_words = ""  # on stderr, once it was ended
        self._server, self._since_bytes = server, 0

    def end(self) -> int:
        """Kill it if it still runs, whatever it does; its status."""
        if self.returncode is None:
            os.close(self.stdin)
            self.stdout.close()
            self.returncode = self._server.end(self)
            with self._said:
                self.last_words = _last_words(self._said, self._since_bytes)
        return self.returncode

    def wait(self, timeout_s: float) -> bool:
        """Whether its stdout ends within so many seconds, as it does with the process; what it writes there is lost."""
        until = time.monotonic() + timeout_s
        while select.select([self.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            if not os.read(self.stdout.fileno(), REPLY_BYTES):
                return True
        return False

    def forget_words(self) -> None:
        """Leave what it has said on stderr until now out of its last words."""
        self._since_bytes = os.fstat(self._said.fileno()).st_size


class _Server:
    """A process that forks workers of one module, with the imports of one environment."""

    def __init__(self, module: str, environment: Mapping[str, str]):
        self.workers: set[int] = set()
        self._lock = threading.Lock()
        with contextlib.ExitStack() as end:
            self._said = end.enter_context(tempfile.TemporaryFile(prefix="swizzle-sim-"))
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            end.enter_context(self._channel)
            with theirs:
                self._process = end.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-P", "-m", SERVER, module],
                        env=dict(environment),
                        stdin=theirs.fileno(),
                        stdout=self._said,
                        stderr=self._said,
                    )
                )
            end.callback(self._process.kill)
            self._end = end.pop_all()

    @property
    def has_died(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._process.poll() is not None

    def fork(self, arguments: tuple[str, ...], environment: Mapping[str, str]) -> Worker:
        """Start a worker in the working folder."""
        with contextlib.ExitStack() as failed, contextlib.ExitStack() as passed:
            said = failed.enter_context(tempfile.TemporaryFile(prefix="swizzle-sim-"))
            settings = passed.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
            json.dump({"folder": os.getcwd(), "environment": dict(environment)}, settings)
            settings.seek(0)
            theirs_in, stdin = os.pipe()
            passed.callback(os.close, theirs_in)
            failed.callback(os.close, stdin)
            read_end, theirs_out = os.pipe()
            passed.callback(os.close, theirs_out)
            stdout = failed.enter_context(open(read_end, encoding="utf-8", errors="replace"))
            pid = self._ask({"fork": arguments}, (theirs_in, theirs_out, said.fileno(), settings.fileno()))["pid"]
            self.workers.add(pid)
            failed.pop_all()
        return Worker(self, pid, stdin, stdout, said)

    def end(self, worker: Worker) -> int:
        """Kill a worker if it still runs; its status, that of a killed one where the server has died with it."""
        self.workers.discard(worker.pid)
        try:
            return int(self._ask({"end": worker.pid})["status"])
        except ServerDied:
            return -9

    def close(self) -> str:
        """End it and its workers; the end of what it said."""
        said = "" if self._said.closed else _last_words(self._said, 0)
        self._end.close()
        return said

    def _ask(self, order: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> dict[str, Any]:
        with self._lock:
            try:
                socket.send_fds(self._channel, [json.dumps(order).encode()], descriptors)
                reply = self._channel.recv(REPLY_BYTES)
            except OSError:
                reply = b""
            except BaseException:  # Ctrl-C: its answer would be taken for that to the next order
                self.close()
                raise
        if not reply:
            raise ServerDied
        return json.loads(reply)


_SERVERS: dict[Any, _Server] = {}
_LOCK = threading.Lock()


def start_worker(
    module: str, arguments: tuple[str, ...], *, at_import: Mapping[str, str], environment: Mapping[str, str]
) -> Worker:
    """Start ``module.main(*arguments)`` in a process of its own, in the working folder."""
    fixed = frozenset((name, value) for name, value in at_import.items() if name.startswith(_READ_ON_IMPORT))
    key = module, fixed
    with _LOCK:
        for _ in range(2):  # one that was killed meanwhile, and one that was not
            if key in _SERVERS and _SERVERS[key].has_died:
                _SERVERS.pop(key).close()
            if key not in _SERVERS:
                _make_room()
                _SERVERS[key] = _Server(module, at_import)
            try:
                return _SERVERS[key].fork(arguments, environment)
            except ServerDied:
                said = _SERVERS.pop(key).close()
    raise CaptureError(
        f"the process that runs Triton ended in its imports{': ' if said else ' and said nothing'}{said}"
    )


def _make_room() -> None:
    idle = [key for key, server in _SERVERS.items() if not server.workers]
    for key in idle[: max(0, len(_SERVERS) + 1 - MOST_SERVERS)]:
        _SERVERS.pop(key).close()


@atexit.register
def close_servers() -> None:
    """End the processes that fork, and their workers."""
    while _SERVERS:
        _SERVERS.popitem()[1].close()


_of_our_parent: list[Any] = []  # kept: their end would be the servers' end, which are another process's


def _forget_servers() -> None:
    global _LOCK  # noqa: PLW0603  (a thread of the parent's may have held it)
    _of_our_parent.extend(_SERVERS.values())
    _SERVERS.clear()
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_forget_servers)


def _last_words(said: IO[bytes], since_bytes: int) -> str:
    end = os.fstat(said.fileno()).st_size
    first = max(since_bytes, end - 4 * TAIL)  # a character has up to 4 bytes
    return os.pread(said.fileno(), end - first, first).decode("utf-8", "replace")[-TAIL:].strip()
