"""`State`: what the page shows, as the address of the page and as the command that gives the same figures."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from swizzle_sim.explore import offered
from swizzle_sim.explore.offered import default_sizes, known_gpus, known_kernels, path_of, served
from swizzle_sim.language import Swizzle, family, is_spec
from swizzle_sim.language.rules import MAX_TEXT_BYTES
from swizzle_sim.pricing.replaying import REPLAYS
from swizzle_sim.search.what_if import read_changes, what_if
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import Gpu, gpu
from xcd_model.errors import LanguageError, SizeError, UnknownName

SLIDERS = ("xcds", "cus_per_xcd", "l2.size_bytes", "l2.ways")  # what of a GPU the page changes
MOST = {"xcds": 64, "cus_per_xcd": 1024, "l2.size_bytes": 2**30, "l2.ways": 128}
MAX_QUERY = 4 * MAX_TEXT_BYTES  # characters of an address that are looked at: a text, its bytes as %20
MAX_FIELDS = 64
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
_HERE = "<page>"


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that decides what the page shows."""

    # A kernel of the registry, or the file that the command line named: no other file is read for a page
    kernel: str = "gemm"
    # tuple of (str, int): as given; others keep the kernel's default
    sizes: tuple[tuple[str, int], ...] = tuple(offered.START["gemm"].items())
    gpu: str = "mi300x"  # A shipped GPU, with or without a mode, or the description that the command line named
    # tuple of (str, int): numbers of the GPU that are not its own, of `SLIDERS`
    changes: tuple[tuple[str, int], ...] = ()
    swizzle: str = "contiguous+group_m(size=8)"  # A family specification, or a text of the language
    replay: str = "lockstep"  # lockstep, which answers while one types, or the timed replay as well, in the background

    def check_names(self) -> None:
        """Refuse a kernel, a GPU, a size or a slider that there is not: the page has no control to show it in."""
        if self.kernel not in known_kernels():
            raise UnknownName("kernel", self.kernel[:60], known_kernels())
        for name, _ in self.sizes:
            if name not in default_sizes(self.kernel):
                raise UnknownName(f"size of kernel {self.kernel}", name[:60], default_sizes(self.kernel))
        for key, _ in self.changes:
            if key not in SLIDERS:
                raise UnknownName("slider", key[:60], SLIDERS)
        if self.gpu not in served("gpu") and not _NAME.fullmatch(self.gpu):  # no path: a page opens no file
            raise UnknownName("GPU", self.gpu[:60], known_gpus())
        gpu(path_of("gpu", self.gpu))

    def load_kernel(self) -> Kernel:
        """Kernel at these sizes; raises UnknownName or SizeError."""
        self.check_names()
        if self.kernel in served("kernel"):
            return offered.own_kernel(path_of("kernel", self.kernel), self.sizes)
        return kernel(self.kernel, **dict(self.sizes))

    def load_gpu(self) -> Gpu:
        """GPU with the changes; raises UnknownName, SizeError or SpecError."""
        self.check_names()
        for key, value in self.changes:
            if not 1 <= value <= MOST[key]:
                raise SizeError(
                    f"{key} = {value}: the page takes 1 to {MOST[key]}; use `swizzle-sim sweep --set` beyond"
                )
        return what_if(gpu(path_of("gpu", self.gpu)), dict(self.changes))

    def load_swizzle(self) -> Swizzle:
        """Swizzle, parsed by the closed language; raises LanguageError or UnknownName."""
        return read_order(self.swizzle)

    def query(self) -> str:
        """Write the state as the part of an address after the ``?``; `read_query` undoes it."""
        fields = [("kernel", self.kernel), *self.sizes, ("gpu", self.gpu)]
        fields += [(key, _with_unit(key, value)) for key, value in self.changes]
        fields += [("replay", self.replay)] * (self.replay != "lockstep")
        return urlencode([*fields, ("swizzle", self.swizzle)], errors="replace")

    def command(self) -> str:
        """Command line with the same figures: ``score``, or ``sweep`` where numbers of the GPU are changed."""
        words = ["sweep" if self.changes else "score", path_of("kernel", self.kernel)]
        words += [f"{name}={value}" for name, value in self.sizes]
        words += ["--gpu", path_of("gpu", self.gpu), "--replay", self.replay]
        for key, value in self.changes:
            words += ["--set", f"{key}={_with_unit(key, value)}"]
        line = "swizzle-sim " + shlex.join(words)
        if is_spec(self.swizzle):
            return f"{line} --swizzle {shlex.quote(self.swizzle.strip())}"
        lines = ["".join(c if c.isprintable() or c == "\t" else "?" for c in one) for one in self.swizzle.splitlines()]
        end = "END"
        while end in lines:
            end += "_"
        return "\n".join([f"{line} --swizzle - <<'{end}'", *lines, end])


def read_query(query: str) -> State:
    """State of an address; what it does not say is as at the start."""
    if len(query) > MAX_QUERY:
        raise LanguageError(f"the address has {len(query)} characters; at most {MAX_QUERY} are read", code="limit")
    try:
        pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise SizeError(f"the address names more than {MAX_FIELDS} things: a kernel has fewer sizes") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        twice = next(key for key, _ in pairs if sum(other == key for other, _ in pairs) > 1)
        raise SizeError(f"the address gives {twice[:60]} twice")
    start = State()
    name, chip = given.pop("kernel", start.kernel), given.pop("gpu", start.gpu)
    text = given.pop("swizzle", start.swizzle)
    check_text(text)
    replay = given.pop("replay", start.replay)
    if replay not in REPLAYS:
        raise SizeError(f"replay = {replay[:40]!r}: there is {' and '.join(REPLAYS)}")
    changes = {key: given.pop(key) for key in SLIDERS if key in given}
    sizes = read_sizes(given.items()) if given else tuple(offered.start_sizes(name).items())
    return State(
        kernel=name, sizes=sizes, gpu=chip, changes=_read_changes(changes), swizzle=text,
        replay=replay,
    )  # fmt: skip


def read_order(text: str) -> Swizzle:
    """Order of a specification or a text; raises LanguageError or UnknownName."""
    check_text(text)
    if is_spec(text):  # by family, so that a name that is none is met with the nearest
        return Swizzle.parse(family(text), name=text.strip(), filename=_HERE)
    return Swizzle.parse(text, name="typed", filename=_HERE)


def read_sizes(pairs: Iterable[tuple[str, object]]) -> tuple[tuple[str, int], ...]:
    """Sizes from what was typed in their boxes."""
    sizes = []
    for name, typed in pairs:
        text = str(typed if typed is not None else "").strip()
        if not _NAME.fullmatch(name) or not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise SizeError(f"{name[:60]} = {text[:40]!r}: a size is an integer, such as M=4096")
        sizes.append((name, int(text)))
    return tuple(sizes)


def changed(own: Mapping[str, int], wanted: Mapping[str, int | None]) -> tuple[tuple[str, int], ...]:
    """Values of ``wanted`` that are not the GPU's own, in the order of `SLIDERS`."""
    values = ((key, wanted.get(key)) for key in SLIDERS)
    return tuple((key, int(value)) for key, value in values if value is not None and value != own[key])


def slider_values(device: Gpu) -> dict[str, int]:
    """Numbers of a GPU that the page changes."""
    return dict(zip(SLIDERS, (device.xcds, device.cus_per_xcd, device.l2.size_bytes, device.l2.ways), strict=True))


def check_text(text: str) -> None:
    """Refuse a text that is longer than the language reads, before anything is done with it."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise LanguageError(
            f"the text has {size} bytes; at most {MAX_TEXT_BYTES} are read", filename=_HERE, code="limit"
        )


def _read_changes(words: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    found = []
    for key, values in read_changes([f"{key}={text[:40]}" for key, text in words.items()]).items():
        if len(values) != 1 or isinstance(values[0], bool) or not isinstance(values[0], int):
            raise SizeError(f"{key} = {words[key][:40]!r}: one whole number, such as 16 or 8MiB")
        found.append((key, values[0]))
    return tuple(sorted(found, key=lambda one: SLIDERS.index(one[0])))


def _with_unit(key: str, value: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if key.endswith("_bytes") and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)
