"""What one control of the page does to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dash import ctx, html, no_update
from dash.exceptions import PreventUpdate

from swizzle_sim.explore import layout, offered, show
from swizzle_sim.explore import state as states
from swizzle_sim.language import family, is_spec, parse_spec, spec_of
from xcd_model import gpu
from xcd_model.errors import SwizzleSimError


@dataclass(frozen=True)
class Effect:
    """Effect of one control on the others, in the order of the outputs of `controls`; what is left out stays."""

    kernel: Any = no_update
    sizes: Any = no_update
    gpu: Any = no_update
    text: Any = no_update
    steps: Any = no_update
    at: Sequence[Any] = (no_update,) * len(states.SLIDERS)
    last: Sequence[Any] = (no_update,) * len(states.SLIDERS)
    notice: Any = no_update
    pins: Any = no_update
    xcd: Any = no_update
    timed: Any = no_update

    def outputs(self) -> tuple[Any, ...]:
        """As Dash takes them."""
        return tuple(list(value) if name in ("at", "last") else value for name, value in vars(self).items())


def controls(address: Mapping[str, str] | None, kernel: str | None, chip: str | None, *given: Any) -> tuple[Any, ...]:
    """Effect of one control on the others: the address on all, a kernel on the sizes, a GPU on the sliders ..."""
    text, pins, xcd = given[-3:]
    by = ctx.triggered_id
    if by is None or "address.data" in ctx.triggered_prop_ids:  # new buttons count as triggers too
        if address is None:  # the browser has not sent it yet
            raise PreventUpdate
        return _restored(address["search"]).outputs()
    if not ctx.triggered[0]["value"]:  # a button that has just been made
        raise PreventUpdate
    return _effect(by, kernel or "", chip or "", text or "", [*(pins or ())], xcd).outputs()


def _effect(by: Any, kernel: str, chip: str, text: str, pins: list[str], xcd: int | None) -> Effect:
    if not isinstance(by, str):
        return _effect_of_one(dict(by), pins, xcd)
    if by == "kernel":
        return Effect(sizes=layout.size_boxes(kernel, offered.start_sizes(kernel)))
    if by == "write-out":
        return Effect(text=_written_out(text))
    if by == "pin":
        kept = [one for one in pins if one != text]
        return Effect(pins=[*kept, text][-states.MAX_PINS :])  # the oldest makes room
    return Effect(*(no_update,) * 4, *_sliders(chip, {}))


def _effect_of_one(by: dict[str, Any], pins: list[str], xcd: int | None) -> Effect:
    """Effect of one button of many: of a pinned order, an XCD or a family."""
    if "unpin" in by:
        return Effect(pins=[one for at, one in enumerate(pins) if at != by["unpin"]])
    if "edit" in by:
        return Effect(text=pins[by["edit"]])
    if "xcd" in by:
        return Effect(xcd=None if by["xcd"] == xcd else by["xcd"])
    return Effect(text=spec_of(parse_spec(by["family"])))


def _restored(search: str) -> Effect:
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
    steps = _sliders(state.gpu, dict(state.changes))
    boxes, timed = layout.size_boxes(state.kernel, sizes), ["timed"] if state.replay == "timed" else []
    return Effect(state.kernel, boxes, state.gpu, state.swizzle, *steps, notice, list(state.pins), state.xcd, timed)


def _sliders(name: str, changes: Mapping[str, int]) -> tuple[dict[str, list[int]], list[int], list[int]]:
    """Steps of the sliders, where each stands, and its last step."""
    own = states.slider_values(gpu(name))
    now = {**own, **changes}
    steps = {key: layout.choices(key, own[key], now[key]) for key in states.SLIDERS}
    at = [steps[key].index(now[key]) for key in states.SLIDERS]
    return steps, at, [len(steps[key]) - 1 for key in states.SLIDERS]


def slider_labels(at: Sequence[int], steps: Mapping[str, list[int]], name: str | None) -> list[str]:
    """What stands beside each slider."""
    if not steps or not name:
        raise PreventUpdate
    own, now = states.slider_values(gpu(name)), values(at, steps)
    return [layout.shown_value(key, now[key], own[key]) for key in states.SLIDERS]


def values(at: Sequence[int], steps: Mapping[str, list[int]]) -> dict[str, int]:
    """Values that the sliders stand at."""
    return {key: steps[key][min(int(i), len(steps[key]) - 1)] for key, i in zip(states.SLIDERS, at, strict=True)}


def _written_out(text: str) -> Any:
    """Text of the language that a family's specification stands for."""
    try:
        return family(text) if is_spec(text) else no_update
    except SwizzleSimError:  # the verdict names the error
        return no_update
