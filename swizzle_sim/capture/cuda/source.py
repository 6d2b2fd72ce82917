"""The text of a CUDA or HIP file that a C++ compiler for the CPU takes: preprocessed, without its host code.

Each construct is edited in its place, so that lines stay those of the file. What the device code needs stays, whatever
else does not compile is cut away.
"""

from __future__ import annotations

import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

from xcd_model.errors import CaptureError
from xcd_model.files import read_bytes

HERE = Path(__file__).parent
SUFFIXES = (".cu", ".cuh", ".hip")
C_NAME = r"(.+\.(?:cu|cuh|hip)):([\w:]+)"  # of a function: FILE.cu:NAMESPACE::FUNCTION
COMPILE_S = 300.0
MOST_HEADERS, MOST_ROUNDS = 200, 12
# Headers of the GPU's own, which the shim stands in for, also where they are installed.
OWN = """cuda.h cuda_runtime.h cuda_runtime_api.h cuda_fp16.h cuda_bf16.h cuda_pipeline.h device_launch_parameters.h
cooperative_groups.h cooperative_groups/reduce.h math_constants.h vector_types.h hip/hip_runtime.h hip/hip_fp16.h
hip/hip_bf16.h hip/hip_bfloat16.h hip/hip_cooperative_groups.h"""
TYPES = {"double": "fp64", "half": "fp16", "bfloat16": "bf16", "int64": "int64", "int8": "int8", "int": "int32"}
DRAFT = """\
from swizzle_sim.capture import Array, Cuda, Kernel

kernel = Kernel(
    "{file}:{function}",
    sizes={{}},  # such as {{"M": 4096}}, which the lines below read as s.M
    arguments=lambda s: {{
{arguments}
    }},
    grid=lambda s: ...,
    cuda=Cuda(block=...),  # and template="...", shared_bytes=..., flags=("-I...",), vgprs=...
)
"""
_WORDS = ("global", "device", "host", "constant", "managed", "forceinline", "noinline", "grid_constant", "cluster_dims")
_MISSING = re.compile(r"fatal error: '?([^\s':]+)'?(?:: No such file| file not found)")
_ERROR = re.compile(r"^(.+?):(\d+):(?:\d+:)? (?:fatal )?error: (.+)$", re.MULTILINE)
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)$', re.MULTILINE)
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'')
_ALIGNED = r"(?:(?:__attribute__\s*\(\(.*?\)\)|alignas\s*\([^()]*(?:\([^()]*\))?[^()]*\))\s*)*"
_DYNAMIC = re.compile(
    rf"extern\s+(?:volatile\s+)?__shared__\s+{_ALIGNED}([\w:<>\s]+?[\w>])\s+{_ALIGNED}(\w+)\s*\[\s*\]\s*{_ALIGNED};"
)
_SHARED = re.compile(rf"(?:static\s+)?__shared__\s+({_ALIGNED})")
_COPY = re.compile(r"(?:\bstd\s*::\s*|\b__builtin_|\b)mem(?:cpy|move)\s*\(")
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b(?:\s+(?:volatile|__volatile__))?\s*\(")
_OUTPUT = re.compile(r'"=[^"]*"\s*\(')
# What inline assembly touches or waits for; without these it computes in registers.
_MEMORY = re.compile(
    r"\b(?:ld|st|cp|red|atom|mma|wgmma|ldmatrix|stmatrix|mbarrier|bar|barrier|tcgen05|prefetch\w*|multimem|cvta|"
    r"global_\w+|buffer_\w+|flat_\w+|ds_\w+|v_mfma\w*|s_\w*(?:load|store|barrier)\w*)\b"
)
_DEVICE = re.compile(r"\b__(?:global|device)__")
_SCOPE = re.compile(r'\bnamespace\b|\bextern\s*"[^"]*"\s*$')


class Item(NamedTuple):
    """A declaration at the top level or in a namespace: its place in the text, and whether it is the device's."""

    first: int
    end: int
    is_device: bool


@dataclass
class DeviceSource:
    """A file's text on its way to the compiler."""

    path: Path
    function: str
    compiler: str
    flags: Sequence[str]  # such as ``-I`` and ``-D``
    folder: Path  # for what is written
    headers: list[str] = field(default_factory=list)  # that were not found, and count as empty
    without: list[str] = field(default_factory=list)  # errors of device code that was cut away
    text: str = ""

    @property
    def is_hip(self) -> bool:
        """Whether waves have 64 lanes."""
        return self.path.suffix == ".hip" or "hip/hip_runtime.h" in self.path.read_text("utf-8", "replace")

    def prepare(self, call: str, where: str) -> Path:
        """File with the device code and ``call``, which errors place at ``where``; the host code is cut away."""
        self.text = self._edited(self._preprocessed())
        ending = f'\n# 1 "{where}"\nvoid swz_entry(const SwzArgument *given, size_t count) {{ {call} }}\n'
        file = self.folder / "kernel.ii"
        self._cut("")
        for _ in range(MOST_ROUNDS):
            file.write_text(self.text + ending, encoding="utf-8")
            said = self.compile(file, "-fsyntax-only")
            if not said or not self._cut(said):
                break
        if said:
            self.refuse(said)
        return file

    def compile(self, file: Path, *more: str) -> str:
        """What the compiler says where it fails; empty where it does not."""
        words = [f"-D__{word}__=" for word in _WORDS]
        options = ["-std=c++17", "-w", "-fpermissive", "-fno-exceptions", "-fmax-errors=0", "-ftemplate-depth=2000"]
        return self.run([self.compiler, "-x", "c++", *options, *words, *more, str(file)])

    def run(self, command: Sequence[str]) -> str:
        """What a command says where it fails; empty where it does not."""
        try:
            done = subprocess.run(command, capture_output=True, timeout=COMPILE_S, cwd=self.folder, check=False)
        except subprocess.TimeoutExpired:
            raise CaptureError(f"{self.path.name}: {self.compiler} was stopped after {COMPILE_S:g} s") from None
        except OSError as error:
            raise CaptureError(
                f"{self.path.name}: a CUDA or HIP file is compiled for the CPU by {self.compiler}, which cannot be run "
                f"({error.strerror}): install g++ 12 or newer, or name its path in CXX",
                code="no-compiler",
            ) from None
        said = done.stderr.decode("utf-8", "replace")
        return said or "no words" if done.returncode else ""

    def _preprocessed(self) -> str:
        stubs = self.folder / "headers"
        for one in OWN.split():
            (stubs / one).parent.mkdir(parents=True, exist_ok=True)
            (stubs / one).touch()
        given = ["-D__HIPCC__", "-D__HIP_DEVICE_COMPILE__", "-D__HIP_PLATFORM_AMD__"] if self.is_hip else [
            "-D__CUDACC__", "-D__NVCC__", "-D__CUDA_ARCH__=800", "-D__CUDACC_VER_MAJOR__=12"]  # fmt: skip
        out = self.folder / "preprocessed.ii"
        command = [self.compiler, "-E", "-x", "c++", "-std=c++17", f"-I{stubs}", *given, *self.flags,
                   f"-iquote{self.path.parent}", "-include", str(HERE / "shim.h"), str(self.path), "-o",
                   str(out)]  # fmt: skip
        while said := self.run(command):
            found = _MISSING.search(said)
            where = stubs / found.group(1) if found else stubs
            if found is None or not where.resolve().is_relative_to(stubs.resolve()) or len(self.headers) > MOST_HEADERS:
                self.refuse(said)
            where.parent.mkdir(parents=True, exist_ok=True)
            where.touch()
            self.headers.append(found.group(1))
        return out.read_text(encoding="utf-8", errors="replace")

    def _edited(self, text: str) -> str:
        """Text of the user's files in the compiler's C++."""
        edits = []
        for first, end in self._own_parts(text):
            part = _masked(text[first:end])
            for one in _DYNAMIC.finditer(part):
                kind, name = text[first:end][slice(*one.span(1))], one.group(2)
                edits.append((first + one.start(), first + one.end(), f"{kind} *const {name} = ({kind} *)swz_dynamic;"))
            for one in _SHARED.finditer(part):  # inside one that is dynamic it is left out
                edits.append((first + one.start(), first + one.end(), f"static {_gnu(one.group(1))}"))
            for one in _COPY.finditer(part):
                edits.append((first + one.start(), first + one.end(), "swz_copy("))
            for one in _ASM.finditer(part):
                close = _closing(part, one.end() - 1)
                inside = text[first + one.end() : first + close]
                edits.append((first + one.start(), first + close + 1, _without_asm(inside)))
        return _cut_out(text, edits)

    @property
    def files(self) -> set[str]:
        """Files that a program comes from, the user's and ours."""
        named = {one[2] for one in _MARKER.finditer(self.text) if "3" not in one[3].split()} | {
            str(HERE / "runtime.cpp")
        }
        found = [Path(one).resolve() for one in named if not one.startswith("<")]
        return {str(one) for one in found if one.is_file() and not one.is_relative_to(self.folder.resolve())}

    @property
    def left_out(self) -> str:
        """What the program lacks of the file, in words; empty for nothing that a kernel may ask for."""
        headers = [f"headers not found, taken as empty: {', '.join(self.headers[:6])}"] if self.headers else []
        return "; ".join(headers + [f"device code left out, as it does not compile: {one}" for one in self.without[:1]])

    def _own_parts(self, text: str) -> Iterator[tuple[int, int]]:
        """Parts of the text that are the user's files: no system header, no shim."""
        marks = list(_MARKER.finditer(text))
        ends = [one.start() for one in marks[1:]] + [len(text)]
        for one, end in zip(marks, ends, strict=True):
            if "3" not in one.group(3).split() and not one.group(2).startswith(("<", str(HERE))):
                yield one.end(), end

    def _cut(self, said: str) -> bool:
        """Cut away declarations that do not compile: at first launches, then others of the host, at last of the device.

        The kernel stays; what it needs of the others is an error of its own then.
        """
        masked = _masked(self.text)
        items = list(_items(masked))
        cut = [one for one in items if not one.is_device and "<<<" in masked[one.first : one.end]]
        if not cut:
            errors = [one for one in _ERROR.findall(said) if not one[0].startswith(str(HERE))]
            wrong = self._offsets({(one[0], int(one[1])) for one in errors})
            kernel = re.compile(rf"__global__[^;{{]*\b{self.function.rpartition(':')[2]}\s*\(")
            cut = [one for one in items if any(one.first < end and first < one.end for first, end in wrong)]
            cut = [one for one in cut if not kernel.search(masked, one.first, one.end)]
            if any(not one.is_device for one in cut):
                cut = [one for one in cut if not one.is_device]
            elif cut:
                self.without += [f"{Path(one[0]).name}:{one[1]}: {one[2]}" for one in errors]
        self.text = _cut_out(self.text, [(one.first, one.end, "") for one in cut])
        return bool(cut)

    def _offsets(self, lines: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
        """Places in the text of lines of files."""
        marks = list(_MARKER.finditer(self.text))
        starts = [0, *(one.end() + 1 for one in re.finditer(r"$", self.text, re.MULTILINE))]
        found = []
        for mark, after in zip(marks, [*marks[1:], None], strict=True):
            end = after.start() if after else len(self.text)
            wanted = [number for file, number in lines if file == mark.group(2) and number >= int(mark.group(1))]
            at = bisect_right(starts, mark.end())
            for number in wanted:
                line = at + number - int(mark.group(1))
                if line < len(starts) and starts[line] < end:
                    found.append((starts[line], starts[line + 1] if line + 1 < len(starts) else end))
        return found

    def refuse(self, said: str) -> NoReturn:
        """Raise the compiler's first error."""
        errors = _ERROR.findall(said)
        first = next((one for one in errors if "_entry" not in one[0]), errors[0] if errors else None)
        words = f"{Path(first[0]).name}:{first[1]}: {first[2]}" if first else said.strip()[-300:]
        more = f" (and {len(errors) - 1} errors more)" if len(errors) > 1 else ""
        more += f"; {self.left_out}" if self.left_out else ""
        raise CaptureError(
            f"{self.path.name}: not followed: {words}{more}; give folders of headers and macros by "
            'flags=("-I...", "-D..."); tensor-core, TMA and library intrinsics are not followed',
            code="not-followed",
        )


def parameters_of(text: str, function: str) -> dict[str, str] | None:
    """Types of the parameters of a ``__global__`` function by name; None where a text has none of that name."""
    masked = _masked(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL))
    for found in re.finditer(rf"\b{re.escape(function.rpartition(':')[2])}\s*\(", masked):
        head = masked[max(masked.rfind(mark, 0, found.start()) for mark in ";}{") + 1 : found.start()]
        close = _closing(masked, found.end() - 1)
        if "__global__" in head and re.match(r"\)\s*\{", masked[close : close + 400]):
            listed = re.split(r",(?![^<]*>)", masked[found.end() : close])
            parts = [re.search(r"^(.*?)(\w+)\s*(?:\[\w*\])?\s*(?:=.*)?$", one, re.DOTALL) for one in listed]
            return {one[2]: " ".join(one[1].split()) for one in parts if one}
    return None


def _masked(text: str) -> str:
    """Text of the same length whose literals are blank, but for the language of ``extern "C"``."""
    return _TEXT.sub(lambda one: one.group() if one.group() in ('"C"', '"C++"') else " " * len(one.group()), text)


def _closing(masked: str, at: int) -> int:
    """Place of the bracket that closes the one at a place."""
    depth = 0
    for one in re.compile(r"[()]").finditer(masked, at):
        depth += 1 if one.group() == "(" else -1
        if not depth:
            return one.start()
    return len(masked) - 1


def _items(masked: str) -> Iterator[Item]:
    """Declarations outside functions and classes."""
    first, depth, is_statement = 0, 0, False
    for one in re.compile(r"[{};]").finditer(masked):
        at, mark = one.start(), one.group()
        if mark == "{":
            if not depth:
                head = re.sub(r"^# .*$", "", masked[first:at], flags=re.MULTILINE)
                if _SCOPE.search(head) and "(" not in head.replace("((", ""):
                    first = at + 1
                    continue
                is_statement = "(" not in head or re.search(r"=\s*$", head) is not None
            depth += 1
        elif mark == "}":
            if not depth:  # the end of a namespace
                first = at + 1
                continue
            depth -= 1
            if not depth and not is_statement:
                yield Item(first, at + 1, _DEVICE.search(masked, first, at) is not None)
                first = at + 1
        elif not depth:
            yield Item(first, at + 1, _DEVICE.search(masked, first, at) is not None)
            first = at + 1


def _cut_out(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Text with parts replaced; line breaks and markers of lines in them stay."""
    parts, last = [], 0
    for first, end, new in sorted(edits):
        if first < last:
            continue
        kept = re.findall(r"^# .*$|\n", text[first:end], re.MULTILINE)
        parts += [text[last:first], new, "".join(kept)]
        last = end
    return "".join([*parts, text[last:]])


def _gnu(alignment: str) -> str:
    """``alignas`` as an attribute, which may stand among other words."""
    return re.sub(r"alignas\s*\(([^()]*(?:\([^()]*\))?[^()]*)\)", r"__attribute__((aligned(\1)))", alignment)


def _without_asm(inside: str) -> str:
    """Statement for inline assembly: zeros as its results where it stays in registers, else a refusal if reached."""
    ended = re.sub(r'"(?:[^"\\]|\\.)*"', lambda one: one.group().replace(":", ";"), inside).partition(":")[0]
    instructions = " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', ended))
    if _MEMORY.search(instructions):
        return f'swz_refuse("inline assembly ({re.sub(r"[^A-Za-z0-9_. ]", "", instructions)[:40].strip()})", __LINE__)'
    masked = _masked(inside)
    spans = [(one.end(), _closing(masked, one.end() - 1)) for one in _OUTPUT.finditer(inside)]
    outputs = [f"({inside[first:close]}) = 0" for first, close in spans]
    return f"(({', '.join(outputs)}))" if outputs else "((void)0)"


def drafted(source: Path, function: str, beside: str) -> tuple[str, list[str]]:
    """Declaration of a kernel from its signature, for a person to complete, and what it leaves open."""
    try:
        text = read_bytes(source).decode("utf-8", "replace")
    except OSError as error:
        raise CaptureError(f"{source}: cannot be read ({error.strerror})", code="declaration") from None
    parameters = parameters_of(text, function)
    if parameters is None:
        raise CaptureError(f"{source.name} holds no __global__ function {function}", code="declaration")
    lines = [f'        "{name}": {_drafted_value(kind)}' for name, kind in parameters.items()]
    open_points = [*parameters, "grid", "block"]
    return DRAFT.format(file=beside, function=function, arguments="\n".join(lines)), open_points


def _drafted_value(kind: str) -> str:
    """Draft of an argument of a type of C."""
    if "*" not in kind:
        return f"...,  # {kind}"
    dtype = next((ours for theirs, ours in TYPES.items() if re.search(rf"(?:\\b|_){theirs}", kind)), "fp32")
    role = "" if "const" in kind else ', role="inout"'
    return f'Array(shape=..., dtype="{dtype}"{role}),  # {"" if "float" in kind else "CHECK "}{kind}'
