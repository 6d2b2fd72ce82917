"""The page as Dash lays it out, before any state is in it."""

from __future__ import annotations

import uuid
from typing import Any

from dash import dcc, html

from swizzle_sim.explore import show
from swizzle_sim.explore.evaluate import Result
from swizzle_sim.explore.offered import known_gpus, known_kernels, switches
from swizzle_sim.explore.state import SLIDERS, State
from swizzle_sim.language.rules import MAX_TEXT_BYTES

LABELS = {"xcds": "XCDs", "cus_per_xcd": "CUs per XCD", "l2.size_bytes": "L2 size per XCD", "l2.ways": "L2 ways"}
NOTHING = Result(state=State())
POINT = "point at a tile to read its XCDs"
CHOICES = {
    "xcds": [*range(1, 17)],
    "cus_per_xcd": [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 38, 40, 48, 56, 64, 80, 96, 132],
    "l2.size_bytes": [2**n for n in range(18, 28)],
    "l2.ways": [1, 2, 4, 8, 16, 32],
}


def page() -> html.Div:
    """Build the page, anew for each tab: a tab has a name of its own, so that only its newest request is evaluated."""
    kept: dict[str, Any] = {"tab": uuid.uuid4().hex, "ready": False, "steps": {}}
    return html.Div(
        [
            *(dcc.Store(id=name, data=data) for name, data in kept.items()),
            *(dcc.Store(id=name) for name in ("address", "typed", "query")),
            dcc.Interval(id="waiting", interval=300),
            dcc.Interval(id="watching", interval=500, disabled=True),
            html.Div(id="history", hidden=True),
            _head(),
            html.Main([html.Div(_left(), className="left"), html.Div(_right(), className="right")]),
            html.Footer("Runs on this machine alone; the text is parsed by the closed language and never executed."),
        ],
        id="page",
    )


def _head() -> html.Header:
    return html.Header(
        [
            html.H1([html.B("swizzle-sim"), html.Span(" explore")]),
            html.Span("starting ...", id="status", className="status busy", role="status"),
            show.button("Copy link", "copy-link", "button"),
            show.button("Light / dark", "theme", "button"),
        ]
    )


def _left() -> list[Any]:
    told = "A family such as contiguous+group_m(size=8), or a text of the language"
    editor = dcc.Textarea(id="text", spellCheck=False, className="editor", maxLength=8 * MAX_TEXT_BYTES, title=told)
    names = html.Span("a family, or statements over pid, num_pids, num_pid_m, num_xcds ...")
    out = show.button("Write out", "write-out")
    gallery = html.Div(className="gallery", id="gallery", role="group", **_aria(label="Families"))
    reset = show.button("Reset", "own", title="The GPU's own numbers")
    says, sizes = html.P(id="kernel-says", className="soft"), html.Div(id="sizes", className="sizes")
    return [
        panel("Swizzle", editor, _group("under", names, out), gallery, of="text"),
        panel("Kernel", _dropdown("kernel", known_kernels()), says, sizes),
        panel("GPU", _group("row", _dropdown("gpu", known_gpus()), reset), _group("sliders", *map(_slider, SLIDERS))),
    ]


def _group(style: str, *parts: Any) -> html.Div:
    return html.Div([*parts], className=style)


def _slider(key: str) -> html.Div:
    name = html.Span([LABELS[key], html.Output(id={"shown": key})], className="slider-label")
    steps: dict[str, Any] = {"min": 0, "max": 1, "step": 1, "value": 0, "marks": None}
    slider = dcc.Slider(id={"slider": key}, **steps, updatemode="drag", allow_direct_input=False)
    return html.Div([name, slider], role="group", **_aria(label=LABELS[key]))


def _right() -> list[Any]:
    pointed = html.P(POINT, id="under-pointer", className="soft readout")
    anyway = show.button("Replay it anyway", "anyway", "button", hidden=True)
    timed = {"label": " Timed replay as well, in the background", "value": "timed"}
    command = html.Pre(id="command", className="command", tabIndex=0)
    return [
        html.Div(id="notice", role="alert"),
        html.Section(show.starting(), id="verdict", **_aria(live="polite", label="Verdict")),
        panel("Tile to XCD", html.Div(show.maps(NOTHING), id="maps"), pointed),
        panel(
            "Score",
            html.Div(show.score(NOTHING), id="score"),
            _group("under", html.P(id="note", className="soft"), anyway),
            dcc.Checklist([timed], id="timed", value=[], className="timed-choice"),
            html.Div(id="timed-box", **_aria(live="polite")),
        ),
        panel("The same on the command line", _group("row", command, show.button("Copy", "copy-command"))),
    ]


def size_boxes(name: str, sizes: dict[str, int]) -> list[Any]:
    """Boxes of a kernel's sizes."""
    two = switches(name)
    plain: dict[str, Any] = {"type": "text", "inputMode": "numeric", "maxLength": 20, "autoComplete": "off"}
    return [
        html.Label(
            [
                html.Span(f"{size} (0 or 1)" if size in two else size),
                dcc.Input(id={"size": size}, value=str(value), className="box", **plain),
            ]
        )
        for size, value in sizes.items()
    ]


def _dropdown(name: str, options: list[str]) -> dcc.Dropdown:
    return dcc.Dropdown(
        options, id=name, clearable=False, searchable=len(options) > 8, className="choice", maxHeight=330
    )


def panel(title: str, *parts: Any, of: str = "") -> html.Section:
    """Part of the page below a title, which labels the control named ``of``."""
    head = html.H2(html.Label(title, htmlFor=of) if of else title)
    return html.Section([head, *parts], className="panel", **_aria(label=title))


def _aria(**values: str) -> dict[str, Any]:
    return {f"aria-{name}": value for name, value in values.items()}
