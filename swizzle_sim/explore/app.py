"""The Dash application and its server: which change of the page updates what. Everything is computed elsewhere."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import DashException, PreventUpdate
from flask import request
from werkzeug.serving import BaseWSGIServer, make_server

from swizzle_sim.explore import layout, offered, show
from swizzle_sim.explore import state as states
from swizzle_sim.explore.evaluate import Problem, Result
from swizzle_sim.explore.guard import policy, refusal
from swizzle_sim.explore.request_queue import ANYWAY_LIMIT_S, LIMIT_S, LatestOnlyQueue, TimedJobs, Worker
from swizzle_sim.language import family, is_spec, parse_spec, spec_of
from xcd_model import gpu
from xcd_model.errors import SwizzleSimError

PORT = 8765
TRIED = 20  # ports after the first, where none was given
MAX_REQUEST_BYTES = 4 * 2**20
COMPILING = "compiling ..."
# What a body that the page never sends runs into, in Dash or here.
MALFORMED = (ArithmeticError, AttributeError, DashException, LookupError, RecursionError, TypeError, ValueError)


def make_app(queue: LatestOnlyQueue, *, host: str, port: int, jobs: TimedJobs | None = None) -> Dash:
    """Application in front of a queue."""
    app = Dash(
        __name__,
        title="swizzle-sim explore",
        update_title="",
        serve_locally=True,
        eager_loading=False,
        suppress_callback_exceptions=True,
        enable_mcp=False,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )
    app.layout = layout.page
    _answer_controls(app, queue)
    app.callback(
        output=SHOWN,
        inputs=CANDIDATE,
        running=[(Output("status", "className"), "status busy", "status")],
        prevent_initial_call=True,
    )(lambda **given: _evaluate(queue, SimpleNamespace(**given)))
    jobs = jobs or TimedJobs()
    app.callback(
        Output("timed-box", "children"),
        Output("watching", "disabled"),
        Input("query", "data"),
        Input("watching", "n_intervals"),
        State("tab", "data"),
    )(lambda query, _, tab: _timed(jobs, query, tab))
    app.clientside_callback(ClientsideFunction("explore", "address"), Output("address", "data"), Input("tab", "data"))
    app.clientside_callback(ClientsideFunction("explore", "settle"), Output("typed", "data"), Input("text", "value"))
    app.clientside_callback(
        ClientsideFunction("explore", "remember"), Output("history", "children"), Input("query", "data")
    )
    _protect(app, host, port)
    return app


SET = {  # what one control sets of the others
    **{name: Output(name, "value") for name in ("kernel", "gpu", "text", "timed")},
    **{name: Output(name, "children") for name in ("sizes", "notice")},
    "steps": Output("steps", "data"),
    **{name: Output({"slider": ALL}, of) for name, of in (("at", "value"), ("last", "max"))},
}
BUTTONS = ({"family": ALL}, "own", "write-out")
SHOWN = {  # what a candidate is shown as
    **{name: Output(name, "children") for name in ("verdict", "maps", "score", "note", "command")},
    "anyway": Output("anyway", "hidden"),
    "query": Output("query", "data"),
    "summary": Output("kernel-says", "children"),
    "cards": Output({"family": ALL}, "className"),
    "status": Output("status", "children", allow_duplicate=True),
    "page": Output("page", "className"),
}
CANDIDATE = {  # by what it is given
    **{name: Input(name, "value") for name in ("kernel", "timed")},
    **{name: Input(name, "data") for name in ("steps", "ready")},
    **{"text": Input("typed", "data"), "chip": Input("gpu", "value"), "anyway": Input("anyway", "n_clicks")},
    **{"sizes": Input({"size": ALL}, "value"), "at": Input({"slider": ALL}, "value")},
    **{"names": State({"size": ALL}, "id"), "families": State({"family": ALL}, "id"), "tab": State("tab", "data")},
}


def _answer_controls(app: Dash, queue: LatestOnlyQueue) -> None:
    """Fill the controls: from the address, from the kernel and the GPU that are picked, from the gallery."""
    app.callback(
        Output("gallery", "children"),
        Output("ready", "data"),
        Output("waiting", "disabled"),
        Output("status", "children"),
        Input("waiting", "n_intervals"),
    )(lambda _: _wait(queue))
    picked = {"address": Input("address", "data"), "kernel": Input("kernel", "value"), "chip": Input("gpu", "value")}
    app.callback(
        output=SET,
        inputs={**picked, "buttons": [Input(name, "n_clicks") for name in BUTTONS]},
        state={"text": State("text", "value")},
    )(controls)
    app.callback(
        Output({"shown": ALL}, "children"),
        Input({"slider": ALL}, "value"),
        Input("steps", "data"),
        State("gpu", "value"),
    )(slider_labels)


def _timed(jobs: TimedJobs, query: str | None, tab: str) -> tuple[Any, ...]:
    """Begin the timed replay of what the page shows, if it is wanted, and show how far it is until it is there."""
    if not query:
        raise PreventUpdate
    state = states.read_query(query)
    if state.replay != "timed":
        jobs.drop(tab)
        return [], True
    job = jobs.submit(tab, query)
    return show.timed(job), job.over


def _protect(app: Dash, host: str, port: int) -> None:
    """Refuse requests that do not come from the page itself, and limit what the page may load."""
    server: Any = app.server
    headers = policy(app.csp_hashes())
    server.config["MAX_CONTENT_LENGTH"] = MAX_REQUEST_BYTES

    @server.before_request
    def refuse() -> Any:
        why = refusal(dict(request.headers), method=request.method, host=host, port=port)
        return (why, 403, {"Content-Type": "text/plain; charset=utf-8"}) if why else None

    for kind in MALFORMED:
        server.register_error_handler(kind, _malformed)

    @server.after_request
    def add(response: Any) -> Any:
        response.headers.update(headers)
        return response


def _malformed(error: Exception) -> Any:
    """Answer to a body that the page does not send; an error of a GET is raised again, as no body made it."""
    if request.method != "POST" and not isinstance(error, DashException):  # of a GET: a part of no package
        raise error
    why = f"malformed request ({type(error).__name__})"
    return why, 400, {"Content-Type": "text/plain; charset=utf-8"}


def _wait(queue: LatestOnlyQueue) -> tuple[Any, ...]:
    """Look whether the worker has compiled; the gallery is drawn by it."""
    if not queue.worker.ready:
        return no_update, no_update, False, COMPILING
    return show.gallery(queue.worker.cards), True, True, no_update


def _evaluate(queue: LatestOnlyQueue, given: SimpleNamespace) -> dict[str, Any]:
    """Everything on the right of the page, for the controls on the left, by the names of `CANDIDATE`."""
    if not (given.ready and given.steps and given.kernel and given.chip):
        raise PreventUpdate
    state = states.State(kernel=given.kernel, gpu=given.chip, swizzle=given.text or "")
    try:
        states.check_text(state.swizzle)
        typed = states.read_sizes((name["size"], value) for name, value in zip(given.names, given.sizes, strict=True))
        changes = states.changed(states.slider_values(gpu(given.chip)), values(given.at, given.steps))
        state = replace(state, sizes=typed, changes=changes)
        limit_s = ANYWAY_LIMIT_S if ctx.triggered_id == "anyway" else LIMIT_S
        result = queue.submit(given.tab, state.query(), limit_s=limit_s)
        state = replace(state, replay="timed" if given.timed else "lockstep")
    except SwizzleSimError as error:  # alone; earlier figures stay, greyed
        refused = Result(state=states.State(), problem=Problem(code=error.code, message=str(error)))
        said = {"verdict": show.verdict(refused), "command": "", "status": "refused", "page": "old"}
        return {**dict.fromkeys(SHOWN, no_update), "cards": [no_update] * len(given.families), **said}
    if result is None:  # superseded by a newer request
        raise PreventUpdate
    return {
        "verdict": show.verdict(result),
        "maps": show.maps(result),
        "score": show.score(result),
        "note": show.note(result),
        "anyway": not result.too_large,
        "command": state.command(),
        "query": state.query(),
        "summary": result.summary,
        "cards": ["card" if one["family"] in result.fits else "card elsewhere" for one in given.families],
        "status": f"{result.seconds:.2f} s",
        "page": "",
    }


def _set(**changed: Any) -> dict[str, Any]:
    """Effect of one control on the others, by the names of `SET`; what is left out stays."""
    stay = [no_update] * len(states.SLIDERS)
    return {**dict.fromkeys(SET, no_update), "at": stay, "last": stay, **changed}


def controls(address: Mapping[str, str] | None, kernel: str | None, chip: str | None, **given: Any) -> dict[str, Any]:
    """Effect of one control on the others: the address on all, a kernel on the sizes, a GPU on the sliders ..."""
    by = ctx.triggered_id
    if by is None or "address.data" in ctx.triggered_prop_ids:  # new buttons count as triggers too
        if address is None:  # the browser has not sent it yet
            raise PreventUpdate
        return _restored(address["search"])
    if not ctx.triggered[0]["value"]:  # a button that has just been made
        raise PreventUpdate
    if not isinstance(by, str):
        return _set(text=spec_of(parse_spec(dict(by)["family"])))
    if by == "kernel":
        return _set(sizes=layout.size_boxes(kernel or "", offered.start_sizes(kernel or "")))
    if by == "write-out":
        text: str = given["text"] or ""
        written: Any = no_update
        with contextlib.suppress(SwizzleSimError):  # the verdict names the error
            written = family(text) if is_spec(text) else no_update
        return _set(text=written)
    return _set(**_sliders(chip or "", {}))


def _restored(search: str) -> dict[str, Any]:
    """All controls, from an address; an address with unknown names shows the start, and why."""
    notice: Any = None
    try:
        state = states.read_query(search)
        state.check_names()
        sizes = {**offered.default_sizes(state.kernel), **dict(state.sizes)}
    except SwizzleSimError as error:
        text = f"The address cannot be shown, so this is the start instead. {error}"
        notice = html.P(show.shown_text(text), className="notice")
        state = states.read_query("")
        sizes = dict(state.sizes)
    return {
        **{"kernel": state.kernel, "sizes": layout.size_boxes(state.kernel, sizes), "gpu": state.gpu},
        **{"text": state.swizzle, **_sliders(state.gpu, dict(state.changes)), "notice": notice},
        "timed": ["timed"] if state.replay == "timed" else [],
    }


def _sliders(name: str, changes: Mapping[str, int]) -> dict[str, Any]:
    """Steps of the sliders, where each stands, and its last step."""
    own = states.slider_values(gpu(name))
    now = {**own, **changes}
    steps = {key: sorted({*layout.CHOICES[key], own[key], now[key]}) for key in states.SLIDERS}
    at = [steps[key].index(now[key]) for key in states.SLIDERS]
    return {"steps": steps, "at": at, "last": [len(steps[key]) - 1 for key in states.SLIDERS]}


def slider_labels(at: Sequence[int], steps: Mapping[str, list[int]], name: str | None) -> list[str]:
    """What stands beside each slider; ``*`` marks a value that is not the GPU's own."""
    if not steps or not name:
        raise PreventUpdate
    own, now = states.slider_values(gpu(name)), values(at, steps)
    texts = {
        **{key: str(value) for key, value in now.items()},
        "l2.size_bytes": f"{now['l2.size_bytes'] / 2**20:g} MiB",
    }
    return [texts[key] + " *" * (now[key] != own[key]) for key in states.SLIDERS]


def values(at: Sequence[int], steps: Mapping[str, list[int]]) -> dict[str, int]:
    """Values that the sliders stand at."""
    return {key: steps[key][min(int(i), len(steps[key]) - 1)] for key, i in zip(states.SLIDERS, at, strict=True)}


class Server:
    """The page on one address, with the process that evaluates for it."""

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
    for port in ports:
        try:
            return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError:
            if port == ports[-1]:
                raise
    raise OSError("no port")
