"""The Dash application: which change of the page updates what. Everything is computed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, no_update
from dash.exceptions import DashException, PreventUpdate
from flask import request

from swizzle_sim.explore import compared, layout, show
from swizzle_sim.explore import state as states
from swizzle_sim.explore.controls import controls, slider_labels, values
from swizzle_sim.explore.evaluate import Problem, Result
from swizzle_sim.explore.guard import policy, refusal
from swizzle_sim.explore.request_queue import LatestOnlyQueue
from swizzle_sim.explore.timed_jobs import TimedJobs
from xcd_model import gpu
from xcd_model.errors import SwizzleSimError

MAX_REQUEST_BYTES = 4 * 2**20
COMPILING = "compiling ..."
# What a body that the page never sends runs into, in Dash or here.
MALFORMED = (ArithmeticError, AttributeError, DashException, LookupError, RecursionError, TypeError, ValueError)


def make_app(queue: LatestOnlyQueue, *, host: str, port: int, jobs: TimedJobs | None = None) -> Dash:
    """Application in front of a queue.

    Parameters
    ----------
    queue : LatestOnlyQueue
    host : str
    port : int
        That it will be served on: requests that name another are refused.
    jobs : TimedJobs, optional
        Timed replays in the background.

    Returns
    -------
    app : Dash
        ``app.server`` is its WSGI application.
    """
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
    _answer_candidate(app, queue)
    _answer_timed(app, jobs or TimedJobs())
    app.clientside_callback(ClientsideFunction("explore", "address"), Output("address", "data"), Input("tab", "data"))
    app.clientside_callback(ClientsideFunction("explore", "settle"), Output("typed", "data"), Input("text", "value"))
    app.clientside_callback(
        ClientsideFunction("explore", "remember"), Output("history", "children"), Input("query", "data")
    )
    _protect(app, host, port)
    return app


def _answer_controls(app: Dash, queue: LatestOnlyQueue) -> None:
    """Fill the controls: from the address, from the kernel and the GPU that are picked, from the gallery."""
    app.callback(
        Output("gallery", "children"),
        Output("ready", "data"),
        Output("waiting", "disabled"),
        Output("status", "children"),
        Input("waiting", "n_intervals"),
    )(lambda _: _wait(queue))
    app.callback(
        Output("kernel", "value"),
        Output("sizes", "children"),
        Output("gpu", "value"),
        Output("text", "value"),
        Output("steps", "data"),
        Output({"slider": ALL}, "value"),
        Output({"slider": ALL}, "max"),
        Output("notice", "children"),
        Output("pins", "data"),
        Output("xcd", "data"),
        Output("timed", "value"),
        Input("address", "data"),
        Input("kernel", "value"),
        Input("gpu", "value"),
        Input({"family": ALL}, "n_clicks"),
        Input("own", "n_clicks"),
        Input("write-out", "n_clicks"),
        Input("pin", "n_clicks"),
        Input({"unpin": ALL}, "n_clicks"),
        Input({"edit": ALL}, "n_clicks"),
        Input({"xcd": ALL}, "n_clicks"),
        State("text", "value"),
        State("pins", "data"),
        State("xcd", "data"),
    )(controls)
    app.callback(
        Output({"shown": ALL}, "children"),
        Input({"slider": ALL}, "value"),
        Input("steps", "data"),
        State("gpu", "value"),
    )(slider_labels)


def _answer_candidate(app: Dash, queue: LatestOnlyQueue) -> None:
    """Show verdict, maps and score whenever the candidate or what it runs on changes."""
    app.callback(
        Output("verdict", "children"),
        Output("maps", "children"),
        Output("score", "children"),
        Output("note", "children"),
        Output("anyway", "hidden"),
        Output("command", "children"),
        Output("query", "data"),
        Output("kernel-says", "children"),
        Output({"family": ALL}, "className"),
        Output("status", "children", allow_duplicate=True),
        Output("page", "className"),
        Output("pinned", "children"),
        Input("typed", "data"),
        Input("kernel", "value"),
        Input({"size": ALL}, "value"),
        State({"size": ALL}, "id"),
        Input("gpu", "value"),
        Input({"slider": ALL}, "value"),
        Input("steps", "data"),
        Input("ready", "data"),
        Input("anyway", "n_clicks"),
        Input("pins", "data"),
        Input("xcd", "data"),
        Input("timed", "value"),
        State({"family": ALL}, "id"),
        State("tab", "data"),
        running=[(Output("status", "className"), "status busy", "status")],
        prevent_initial_call=True,
    )(lambda *given: _evaluate(queue, Controls(*given)))


def _answer_timed(app: Dash, jobs: TimedJobs) -> None:
    """Begin the timed replay of what the page shows, if it is wanted, and show how far it is until it is there."""
    app.callback(
        Output("timed-box", "children"),
        Output("watching", "disabled"),
        Input("query", "data"),
        Input("watching", "n_intervals"),
        State("tab", "data"),
    )(lambda query, _, tab: _timed(jobs, query, tab))


def _timed(jobs: TimedJobs, query: str | None, tab: str) -> tuple[Any, ...]:
    if not query:
        raise PreventUpdate
    state = states.read_query(query)
    if state.replay != "timed":
        jobs.drop(tab)
        return [], True
    job = jobs.submit(tab, replace(state, xcd=None).query())  # a look at one XCD needs no other replay
    return compared.timed(job, state.xcd), job.over


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
    if request.method != "POST":
        raise error
    why = f"malformed request ({type(error).__name__})"
    return why, 400, {"Content-Type": "text/plain; charset=utf-8"}


def _wait(queue: LatestOnlyQueue) -> tuple[Any, ...]:
    """Look whether the worker has compiled; the gallery is drawn by it."""
    if not queue.ready:
        return no_update, no_update, False, COMPILING
    return show.gallery(queue.cards), True, True, no_update


class Controls(NamedTuple):
    """Values that the callback of the candidate gets, in the order of its inputs."""

    text: str | None
    kernel: str | None
    sizes: Sequence[str | None]
    names: Sequence[Mapping[str, str]]
    chip: str | None
    at: Sequence[int]
    steps: Mapping[str, list[int]]
    ready: bool
    anyway: int | None
    pins: Sequence[str]
    xcd: int | None
    timed: Sequence[str]
    families: Sequence[Mapping[str, str]]
    tab: str


def _evaluate(queue: LatestOnlyQueue, given: Controls) -> tuple[Any, ...]:
    """Everything on the right of the page, for the controls on the left."""
    if not (given.ready and given.steps and given.kernel and given.chip):
        raise PreventUpdate
    state = states.State(kernel=given.kernel, gpu=given.chip, swizzle=given.text or "")
    try:
        states.check_text(state.swizzle)
        typed = states.read_sizes((name["size"], value) for name, value in zip(given.names, given.sizes, strict=True))
        changes = states.changed(states.slider_values(gpu(given.chip)), values(given.at, given.steps))
        state = replace(state, sizes=typed, changes=changes, pins=tuple(given.pins or ()), xcd=given.xcd)
        result = queue.submit(given.tab, state.query(), anyway=ctx.triggered_id == "anyway")
        state = replace(state, replay="timed" if given.timed else "lockstep")
    except SwizzleSimError as error:
        return _nothing(error, len(given.families))
    if result is None:  # superseded by a newer request
        raise PreventUpdate
    return (
        show.verdict(result),
        show.maps(result),
        show.score(result),
        show.note(result),
        not result.too_large,
        state.command(),
        state.query(),
        result.summary,
        ["card" if one["family"] in result.fits else "card elsewhere" for one in given.families],
        f"{result.seconds:.2f} s",
        "",
        layout.panel_of_pins(compared.side_by_side(result)),
    )


def _nothing(error: SwizzleSimError, n_families: int) -> tuple[Any, ...]:
    """The error alone; earlier figures stay, greyed."""
    result = Result(state=states.State(), problem=Problem(code=error.code, message=str(error)))
    rest = (no_update,) * 4
    return (
        show.verdict(result),
        *rest,
        "",
        no_update,
        no_update,
        [no_update] * n_families,
        "refused",
        "old",
        no_update,
    )
