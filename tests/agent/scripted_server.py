"""A model that is a script: a local HTTP server that speaks chat completions, and misbehaves on request."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """One answer of the script.

    ``text`` is what the model says; ``status`` other than 200 an HTTP error; ``cut`` closes the connection in the
    middle; ``html`` answers as a proxy's page does; ``slow_s`` waits before the answer;
    ``usage`` the token counts.
    """

    text: str = ""
    status: int = 200
    cut: bool = False
    html: bool = False
    slow_s: float = 0.0
    finish: str = "stop"
    usage: tuple = (100, 20)
    headers: dict = field(default_factory=dict)
    body: dict | None = None


def said(**fields):
    """Text of an answer with these fields, as DSPy's chat format has it."""
    parts = [f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def proposal(swizzle, critique="[]"):
    """Answer to the propose question."""
    return Reply(said(reasoning="because", critique=critique, rationale="it should", swizzle=swizzle))


ANALYSIS = Reply(said(locality_analysis="Rows of A are shared along n, columns of B along m."))


class ScriptedServer:
    """Answers the memory analysis itself, and proposals from ``script``, in order; the last one stays.

    ``requests`` holds each request body and its headers.
    """

    def __init__(self, script=(), analysis=ANALYSIS, models=("scripted",), no_list=None):
        self.script, self.analysis, self.models, self.requests = list(script), analysis, models, []
        self.no_list = no_list  # status of a server without a model list; 200 for a page in its place
        self._lock = threading.Lock()
        outer = self

        class Handler(_Handler):
            server_of = outer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc_info):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def proposals(self):
        """Requests that asked for a swizzle."""
        return [body for body, _ in self.requests if not _is_analysis(body)]

    def next_reply(self, body, headers):
        with self._lock:
            self.requests.append((body, headers))
            if _is_analysis(body):
                return self.analysis
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def _is_analysis(body):
    return "locality_analysis" in json.dumps(body["messages"][0])


class _Handler(BaseHTTPRequestHandler):
    server_of: ScriptedServer
    protocol_version = "HTTP/1.0"

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.headers.get("Authorization") == "Bearer wrong":
            self._json({"error": {"message": "Incorrect API key provided: wrong"}}, 401)
        elif self.server_of.no_list == 200:
            self._page()
        elif self.server_of.no_list:
            self._json({"error": {"message": "not here"}}, self.server_of.no_list)
        else:
            self._json({"object": "list", "data": [{"id": m, "object": "model"} for m in self.server_of.models]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server_of.next_reply(body, dict(self.headers))
        time.sleep(reply.slow_s)
        try:
            if reply.status != 200:
                self._json(
                    reply.body or {"error": {"message": f"scripted {reply.status}"}}, reply.status, reply.headers
                )
            elif reply.html:
                self._page()
            else:
                self._whole(reply, body["model"])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client gave up, as the test wants

    def _page(self):
        data = b"<!doctype html><title>Sign in</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _json(self, document, status=200, headers=None, cut=False):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def _whole(self, reply, model):
        message = {"role": "assistant", "content": reply.text}
        usage = dict(zip(("prompt_tokens", "completion_tokens"), reply.usage, strict=True))
        self._json(
            {
                "id": "scripted-1",
                "object": "chat.completion",
                "created": 1,
                "model": model,
                "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
                "usage": {**usage, "total_tokens": sum(reply.usage)},
            },
            cut=reply.cut,
        )
