"""The server of the page, until Ctrl-C."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

from werkzeug.serving import BaseWSGIServer, make_server

from swizzle_sim.explore.app import make_app
from swizzle_sim.explore.request_queue import LatestOnlyQueue, Worker
from swizzle_sim.explore.timed_jobs import TimedJobs

PORT = 8765
TRIED = 20  # ports after the first, where none was given


class Server:
    """The page on one address, with the process that evaluates for it.

    Parameters
    ----------
    host : str
    port : int or None
        None for `PORT`, or the next one that is free; 0 for any that is.

    Raises
    ------
    OSError
        If the address cannot be bound.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int | None = None):
        self._socket = _bound(host, range(PORT, PORT + TRIED) if port is None else [port])
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._worker = Worker()
        self._jobs = TimedJobs()
        self.app = make_app(LatestOnlyQueue(self._worker), host=host, port=self.port, jobs=self._jobs)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # no line for every request
        self._server: BaseWSGIServer = make_server(
            host, self.port, self.app.server, threaded=True, fd=self._socket.fileno()
        )

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    def run(self, *, started: Callable[[], None] = lambda: None) -> None:
        """Serve until `close` is called from another thread, or Ctrl-C."""
        try:
            started()
            self._server.serve_forever()
        finally:
            self._worker.close()
            self._jobs.close()
            self._server.server_close()
            self._socket.close()

    def close(self) -> None:
        """End `run`."""
        self._server.shutdown()


def _bound(host: str, ports: range | list[int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem: OSError | None = None
    for port in ports:
        one = socket.socket(family, socket.SOCK_STREAM)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((host, port))
            one.listen()
            return one
        except OSError as error:
            one.close()
            problem = error
    raise problem or OSError("no port")
