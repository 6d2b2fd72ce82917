"""Agreement as a picture: predicted over measured, a panel for each figure."""

from __future__ import annotations

import io

from swizzle_sim.hardware.agreement import Agreement


def draw_agreement(found: Agreement) -> bytes:
    """PNG of an agreement.

    Parameters
    ----------
    found : Agreement
        With at least one comparison.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(found.comparisons), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(found.comparisons), squeeze=False)[0]
    names = {one.candidate: one.name for one in found.measurements}
    for panel, one in zip(panels, found.comparisons, strict=True):
        low, high = min(*one.predicted, *one.measured), max(*one.predicted, *one.measured)
        room = 0.08 * (high - low or abs(high) or 1.0)
        panel.plot([low - room, high + room], [low - room, high + room], color="0.7", linewidth=1, zorder=1)
        for number, (x, y) in enumerate(zip(one.measured, one.predicted, strict=True)):
            panel.scatter([x], [y], s=42, zorder=2, label=names[one.candidates[number]][:40])
        unit = f" [{one.figure.unit}]" if one.figure.unit else ""
        panel.set(xlabel=f"{found.kind}{unit}", ylabel=f"simulated{unit}", title=one.figure.name)
        panel.set_xlim(low - room, high + room)
        panel.set_ylim(low - room, high + room)
    panels[0].legend(fontsize=7, loc="best")
    manifest = found.manifest
    figure.suptitle(f"{manifest['kernel']} on {manifest['gpu']['title']}: simulated and {found.kind}", fontsize=11)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130, metadata={"Software": None})
    return out.getvalue()
