"""Write every generated page, table and picture of the documentation.

python -m swizzle_benchmarks.evidence.docs.regenerate          # seconds: catalogues, commands, tables      make docs
python -m swizzle_benchmarks.evidence.docs.regenerate --all    # and pages and pictures that take minutes   make pages
"""

from __future__ import annotations

import math
import re
import shutil
import sys
import tempfile
from pathlib import Path

from swizzle_benchmarks.validation import bundles, held_out, orders_measured, registered, suite_path
from swizzle_sim.report import write_report
from swizzle_sim.search.history import History
from swizzle_sim.search.loop import Run
from swizzle_sim.search.ranking import WORK_CLASSES, gain_of
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

from ..paper import audit, suite_page
from ..remaps import page as remaps
from . import drift_picture, explore_picture, language, notebooks, readme_words, worth
from .commands import commands_markdown
from .exchange import exchange
from .gpus import catalogue_markdown
from .readme_words import gain_words, run_words, tutorial_words
from .words import codes_table, families_table

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = {"M": 4096, "N": 4096, "K": 8192}
EXCHANGE = "benchmarks/evidence/pages/exchange.md"
PREDICTED = "benchmarks/evidence/pages/predicted.md"
MEASURED = "benchmarks/validation/data/README.md"
PICTURES = ("map.png", "progress.png")
DEVICES = ("h200", "h100", "mi300x", "mi355x")  # whose orders were measured


def pages() -> dict[str, str]:
    """Text of the generated pages and of the pages with generated parts, by path below the repository."""
    return {
        "docs/gpus.md": catalogue_markdown(),
        "docs/families.md": families_table(),
        "docs/cli.md": commands_markdown(),
        "docs/language.md": language_page(),
        "docs/howto/check-remap.md": fill("docs/howto/check-remap.md", "codes", codes_table()),
        EXCHANGE: fill(EXCHANGE, "exchange", exchange()),
        "docs/believe.md": filled("docs/believe.md", worth=worth.table(), answers=answers(), measured=measured_table()),
        "docs/tutorial.md": fill("docs/tutorial.md", "orders", tutorial_words()),
        PREDICTED: predicted(),
        "README.md": readme(),
        MEASURED: fill(MEASURED, "orders", orders_measured.words()),
    }


def predicted() -> str:
    """``predicted.md`` of the evidence: what was predicted and then counted."""
    page = None
    for mark, text in (
        ("bundles", bundles.table()),
        ("suite-path", suite_path.counted_again()),
        ("held-out", f"{held_out.draws_table()}\n\n{held_out.committed_table()}"),
    ):
        page = fill(PREDICTED, mark, text, page)
    return str(page)


def language_page() -> str:
    """``docs/language.md`` with its tables as the allow-list is today."""
    path, page = "docs/language.md", None
    for mark in ("allowed", "limits"):
        page = fill(path, mark, getattr(language, mark)(), page)
    return str(page)


def fill(path: str, mark: str, text: str, page: str | None = None) -> str:
    """Page with the part between ``<!-- mark -->`` and ``<!-- end -->`` replaced; of the file, or of ``page``."""
    page = (ROOT / path).read_text(encoding="utf-8") if page is None else page
    pattern = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", re.S)
    if not pattern.search(page):
        raise ValueError(f"{path} has no part {mark!r}")
    return pattern.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page)


def filled(path: str, **parts: str) -> str:
    """Page with several parts replaced."""
    page = None
    for mark, text in parts.items():
        page = fill(path, mark, text, page)
    return page or ""


def readme() -> str:
    """README: the measured gain, the example run, and what is registered."""
    return filled("README.md", gain=gain_words(), run=run_words(), registered=registered.readme_words())


def answers() -> str:
    """Markdown table: what the interval and the word *use it* of a class of kernels rest on."""
    lines = [
        "| GPU | class | launches | measured over predicted time | inside, of launches not seen | *use it* |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    every = [(device, name, gain_of(device, name)) for device in DEVICES for name in WORK_CLASSES]
    for device, name, known in every:
        if known is not None:
            span = f"{math.exp(known.low):.2f} to {math.exp(known.high):.2f}"
            right = f"right in {100 * known.right / known.used:.0f} of 100" if known.used >= 1 else "never"
            said = right if known.proven else f"never: {right}" if known.used >= 1 else right
            inside = f"{100 * known.inside:.0f} %"
            lines.append(f"| {device} | {WORK_CLASSES[name]} | {known.launches} | {span} | {inside} | {said} |")
    few = [device for device in DEVICES if all(known is None for one, _, known in every if one == device)]
    return "\n".join([*lines, f"| {', '.join(few)} | all | fewer than 10 | *unproven* | - | never |"])


def measured_table() -> str:
    """Markdown table: simulated and measured L2 hit rates of reads on MI355X."""
    misses = readme_words.read_misses(gpu("mi355x"), readme_words.tutorial_trace())
    lines = ["| order | simulated (lockstep) | measured (rocprofv3) |", "| --- | --- | --- |"]
    for order, measured in readme_words.MEASURED.items():
        rates = [100 * (1 - count / readme_words.READS) for count in (misses[order], measured)]
        name = "launch order" if order == "identity" else f"`{order}`"
        lines.append(f"| {name} | {rates[0]:.1f} % | {rates[1]:.1f} % |")
    return "\n".join(lines)


def example_run(folder: Path) -> Run:
    """Run whose pictures the README shows."""
    run = optimize(kernel("gemm", **EXAMPLE), gpu("mi355x"), folder)
    with History(folder) as history:
        write_report(history)
    return run


def main() -> None:
    """Write the pages, with ``--all`` also what takes minutes."""
    for path, text in pages().items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print("written:", path)
    if "--all" not in sys.argv[1:]:
        return
    for minutes_long in (audit, suite_page, remaps, notebooks, explore_picture):
        minutes_long.main()
    (ROOT / "docs" / "pictures" / "drift.png").write_bytes(drift_picture.drift_picture())
    with tempfile.TemporaryDirectory() as folder:
        run = example_run(Path(folder) / "run")
        for name in PICTURES:
            shutil.copy(run.folder / name, ROOT / "docs" / "pictures" / name)
            print("written:", f"docs/pictures/{name}")


if __name__ == "__main__":
    main()
