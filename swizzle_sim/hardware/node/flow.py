"""The flow on the node: check the machine, check and time the candidates, count them, and write down each step."""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .counting import MOST_HUNG, REPLAYED, Counting, Passes, find_program, medians, profiler_for, summary
from .formulas import doubts_of, hit_rate, quantities
from .launcher import SHOWN, STORED
from .machine import amd_topology, check_compiler, check_machine, in_the_way, nvidia_driver, rocm_version
from .manifest import FORMAT, RAW, RESULT, RIGHT, Refused, Store, check_files, lines_of, read_manifest, read_order
from .processes import run

LEAST_SAMPLES = 50
BOARD = ("clock_mhz", "power_w", "energy_j")  # energy: of a batch of rounds
PROBE_S = 60.0  # after which counting one counter of one candidate is given up
MISSING = {
    "rocprofv3": "It comes with ROCm 6.3 and later (package rocprofiler-sdk), usually in /opt/rocm/bin.",
    "ncu": "It comes with the CUDA toolkit, usually in /usr/local/cuda/bin.",
}


def main(words: list[str], folder: Path) -> int:
    """Confirm a bundle; returns the exit status: 0 done, 1 something is missing or wrong, 2 refused."""
    given = _arguments(words)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        manifest = read_manifest(folder)
        check_files(folder, manifest)
        out = given.out or folder
        out.mkdir(parents=True, exist_ok=True)
        return Flow(folder, manifest, out.resolve(), given).run()
    except Refused as refusal:
        print(f"confirm: {refusal}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nconfirm: interrupted; what was found so far is in the result file", file=sys.stderr)
        return 130


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="confirm.py", description="Check, time and count a bundle's candidates here.")
    parser.add_argument("--out", type=Path, help="folder for result.json and the raw files; by default the bundle")
    parser.add_argument("--samples", type=int, default=100, help="timed launches a candidate, cold and warm (>= 50)")
    parser.add_argument("--profiler", help="path of rocprofv3 or ncu; by default the one on the PATH")
    parser.add_argument("--probe", action="store_true", help="a minute: does this node count? and if not, why")
    parser.add_argument("--no-time", action="store_true", help="check and count only")
    parser.add_argument("--no-count", action="store_true", help="check and time only")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a pass is killed")
    parser.add_argument("--flush-mib", type=int, default=512, help="size of the buffer that empties the caches")
    given = parser.parse_args(words)
    if given.samples < LEAST_SAMPLES:
        parser.error(f"--samples {given.samples}: a median with a spread needs at least {LEAST_SAMPLES}")
    return given


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


class Flow:
    """One confirmation."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], out: Path, given: argparse.Namespace):
        self.folder, self.manifest, self.out, self.given = folder, manifest, out, given
        self.raw = out / RAW / datetime.datetime.now().strftime("%Y%m%d-%H%M%S-%f")
        self.raw.mkdir(parents=True)
        keys = ("bundle", "kernel", "function", "problem", "source_sha256", "gpu", "seed")
        self.store = Store(
            out / RESULT,
            {
                "format": FORMAT,
                **{key: manifest[key] for key in keys},
                "kind": "measured",
                "state": "running",
                "began": _now(),
                "machine": {},
                "notes": [],
                "profiler": None,
                "candidates": {one["id"]: {"name": one["name"]} for one in manifest["candidates"]},
            },
        )

    def run(self) -> int:
        """Take all steps; each is in the result file before the next begins."""
        try:
            return self._steps()
        except Refused as refusal:
            self.store.document |= {"state": "refused", "refused": str(refusal), "ended": _now()}
            self.store.save()
            raise
        except BaseException as error:
            self.store.document |= {"state": "interrupted", "refused": type(error).__name__, "ended": _now()}
            self.store.save()
            raise

    def _steps(self) -> int:
        for one in self.manifest["candidates"]:
            if one["order"] is not None:
                read_order(self.folder, self.manifest, one)
        self._machine()
        if self.given.probe:
            return self._probe()
        right = self._check_and_time()
        if not self.given.no_count and right:
            self._count(right)
        shutil.rmtree(self.stored, ignore_errors=True)
        wanted = {"time_us": not self.given.no_time, "counters": not self.given.no_count}
        entries = self.store.document["candidates"].values()
        complete = all(entry.get(key) for entry in entries for key in wanted if wanted[key])
        self.store.document |= {"state": "finished", "complete": complete, "ended": _now()}
        self.store.save()
        self._tell()
        return 0 if complete else 1

    @property
    def stored(self) -> Path:
        """Folder of code objects and inputs, for as long as they are launched."""
        return self.raw / "launches"

    def _start(self, *words: str) -> list[str]:
        """Words that start this bundle's ``confirm.py`` as another process."""
        return [sys.executable, "-B", str(self.folder / "confirm.py"), *words]

    def _note(self, text: str) -> None:
        print(f"confirm: {text}", file=sys.stderr, flush=True)
        self.store.document["notes"].append(text)
        self.store.save()

    def _machine(self) -> None:
        out = self.raw / "device.jsonl"
        words = self._start("worker", "describe", "--out", str(out))
        ended = run(words, log=self.raw / "device.log", limit_s=300, cwd=self.raw)
        found = next((line for line in lines_of(out) if line.get("what") == "device"), None)
        if found is None:
            last = ended.tail.strip().splitlines()[-1:] or ["it said nothing"]
            raise Refused(
                f"the GPU does not answer ({ended.state}): {last[0]}; this needs torch and Triton in this Python, "
                "and a GPU that torch sees"
            )
        del found["what"]
        found["started_with"] = started_with()
        if found["vendor"] == "amd":
            topology = amd_topology()
            found = {**topology, **found, "rocm": rocm_version()}
        else:
            found["nvidia_smi"] = nvidia_driver(self.raw / "nvidia-smi.log")
        self.store.document["machine"] = found
        if REPLAYED in found["versions"]["torch"]:
            self.store.document["kind"] = "replayed"
        self.store.save()
        compiler = check_compiler(self.manifest.get("priced_with"), found["versions"]["triton"])
        for note in [*check_machine(self.manifest["gpu"], found), *compiler]:
            self._note(note)

    def _check_and_time(self) -> list[str]:
        """Check and time in one process; returns the candidates whose outputs were right."""
        print("confirm: checking and timing ...", file=sys.stderr, flush=True)
        times: dict[str, dict[str, list[float]]] = {}
        states: dict[str, str] = {}
        board: list[dict[str, float]] = []  # after each batch of rounds
        for line in self._time_lines():
            if line["what"] == "check":
                check = {key: value for key, value in line.items() if key not in ("what", "when", "candidate")}
                self.store.candidate(line["candidate"])[f"check_{line['when']}"] = check
            elif line["what"] == "not stored":
                self._note(f"{line['candidate']}: launched by PyTorch under the profiler, as {line['why']}")
            elif line["what"] == "times":
                states = line["states"]
                board.append(line["board"])
                for name, by_state in line["times"].items():
                    for state, values in by_state.items():
                        times.setdefault(name, {}).setdefault(state, []).extend(values)
        for name, by_state in times.items():
            timing = {state: {**summary(values), "all": values} for state, values in by_state.items()}
            self.store.candidate(name)["time_us"] = timing
        self.store.document["timing"] = {"states": states, "unit": "us", "how": "GPU events, orders taken in turn"}
        self.store.document["timing"]["board"] = {
            name: summary(values) for name in BOARD if (values := [one[name] for one in board if name in one])
        }
        self.store.save()
        right = []
        for name, entry in self.store.document["candidates"].items():
            before, after = entry.get("check_before", {}), entry.get("check_after", {})
            if before.get("how") in RIGHT and after.get("how") in RIGHT and before.get("permutation") != "differs":
                right.append(name)
            else:
                self._note(f"{name}: not counted, its outputs were not found right before and after: {before} {after}")
        return right

    def _time_lines(self) -> list[dict[str, Any]]:
        """What the process said; one that a candidate hung or killed is started again without that candidate."""
        samples = "0" if self.given.no_time else str(self.given.samples)
        names = [one["id"] for one in self.manifest["candidates"]]
        skip: list[str] = []
        while True:
            out, log = (self.raw / f"time{len(skip) or ''}.{end}" for end in ("jsonl", "log"))
            words = self._start("worker", "time", "--out", str(out), "--samples", samples, *self._flush())
            words += [] if self.given.no_count else ["--store", str(self.stored)]
            words += ["--candidates", *(name for name in names if name not in skip)]
            ended = run(words, log=log, limit_s=6 * self.given.limit, cwd=self.raw)
            lines = list(lines_of(out))
            if ended.state == "ok":
                return lines
            lost = under_way(lines)
            if lost is None or lost == self.manifest["candidates"][0]["id"]:
                self._note(f"checking and timing {ended.state}: {ended.tail[-400:]}")
                return lines
            self.store.candidate(lost)["check_before"] = {"how": ended.state, "why": ended.tail[-400:]}
            self._note(f"{lost}: the process that checked it {ended.state}; the others go on without it")
            skip.append(lost)

    def _flush(self) -> list[str]:
        return ["--flush-bytes", str(self.given.flush_mib << 20)]

    def _counting(self, names: list[str]) -> tuple[Counting, list[str]] | None:
        """Profiler with the process that it can be put around, found with one counter; None, and why, if none can."""
        profiler = profiler_for(self.manifest["gpu"]["vendor"])
        program = find_program(profiler, self.given.profiler)
        if program is None:
            self._note(f"no {self.given.profiler or profiler.name} found: nothing is counted. {MISSING[profiler.name]}")
            return None
        version = profiler.version(program, self.raw / "version.log")
        self.store.document["profiler"] = {"name": profiler.name, "version": version, "caches": profiler.cold}
        if REPLAYED in version:
            self.store.document["kind"] = "replayed"
        self.store.save()
        launches, limit = self.manifest["launch"]["launches"], self.given.limit
        if launches > SHOWN:
            self._note(f"counted: {SHOWN} of {launches} launches in a row, of every order; a counter is of one launch")
            launches = SHOWN
        counting = Counting(profiler, program, self.manifest["function"], names, launches, self.raw, limit)
        first = replace(counting, names=names[:1], limit_s=min(PROBE_S, limit))
        for way, start in self._ways(program, profiler.flushes, names):
            work = [*start, "--out", str(self.raw / f"{way}.jsonl"), "--candidates"]
            (found,) = first.run_pass(profiler.probe, [*work, *names[:1]], self.raw / f"probe_{way}").values()
            if found["dispatches"]:
                self.store.document["profiler"]["launched_by"] = way
                print(
                    f"confirm: {profiler.name} counts ({found['seconds']:.0f} s a start), launched by {way}",
                    file=sys.stderr,
                )
                return counting, [*work, *names]
            self._note(f"nothing counted, launched by {way}: {found['state']}, {'; '.join(found['notes'][:2])}")
        for why in in_the_way(self.store.document["machine"], Path(program), version):
            self._note(f"perhaps why: {why}")
        self._note(f"nothing is counted; what the profiler said is in {self.raw}/probe_*/log.txt")
        return None

    def _ways(self, program: str, flushes: bool, names: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Processes that launch candidates, the one without PyTorch first."""
        flush = self._flush() if flushes else []
        if {*names} <= {one.get("candidate") for one in lines_of(self.stored / STORED)}:
            library = next(iter(sorted(Path(program).resolve().parents[1].glob("lib/libamdhip64.so"))), None)
            own = ["--library", str(library)] if library else []
            yield "launcher", self._start("launcher", "--stored", str(self.stored), *own, *flush)
        yield "torch", self._start("worker", "count", *self._flush())

    def _count(self, right: list[str]) -> None:
        found = self._counting(right)
        if found is None:
            return
        counting, work = found
        entries = {name: self.store.candidate(name) for name in right}

        def on_pass(found: Passes) -> None:
            for name, one in found.items():
                passes = entries[name].setdefault("passes", [])
                passes.append(one)
                entries[name]["counters"] = medians(passes)
            self.store.save()
            states = ", ".join(sorted({one["state"] for one in found.values()}))
            print(f"confirm: {', '.join(one['asked'][:3])} ...: {states}", file=sys.stderr, flush=True)

        counting.count(work, counting.profiler.passes(self.manifest["gpu"]["arch"]), self.raw / "counted", on_pass)
        if counting.hung >= MOST_HUNG:
            self._note(
                f"{counting.hung} passes hung for {self.given.limit:.0f} s: no more are tried, for any candidate"
            )
        for line in lines_of(self.raw / "launcher.jsonl"):
            if line["how"] == "differs":
                self._note(f"{line['candidate']}: outputs under the profiler are not those that were checked")

    def _probe(self) -> int:
        """Count one counter of the launch order; 0 if that is counted."""
        first = self.manifest["candidates"][0]["id"]
        words = self._start("worker", "store", "--out", str(self.raw / "store.jsonl"), "--store", str(self.stored))
        ended = run([*words, "--candidates", first], log=self.raw / "store.log", limit_s=300, cwd=self.raw)
        if ended.state != "ok":
            self._note(f"the launch order does not run ({ended.state}): {ended.tail[-300:]}")
            return 1
        counts = self._counting([first]) is not None
        shutil.rmtree(self.stored, ignore_errors=True)
        self.store.document |= {"state": "probed", "complete": False, "ended": _now()}
        self.store.save()
        return 0 if counts else 1

    def _tell(self) -> None:
        document, known = self.store.document, {one["id"]: one for one in self.manifest["candidates"]}
        print(f"\n{document['kernel']} on {document['machine']['name']} ({document['kind']})")
        for name, entry in document["candidates"].items():
            cold = entry.get("time_us", {}).get("cold", {}).get("median")
            counted = {key: value["value"] for key, value in entry.get("counters", {}).items()}
            share = hit_rate(quantities(counted, self.manifest["gpu"]["arch"]))
            rate = "-" if share is None else f"{100 * share:.2f} %"
            time = "-" if cold is None else f"{cold:.1f} us"
            print(f"  {name:12} {entry['name'][:40]:40} cold {time:>12}   L2 hit rate {rate:>9}{_price(known[name])}")
        doubts = (
            f"  doubt: {name}: {one}"
            for name, e in document["candidates"].items()
            for one in doubts_of(e.get("passes", []))
        )
        print("".join(f"{line}\n" for line in list(doubts)[:12]), end="")
        print(f"written: {self.store.path}; on your machine: swizzle-sim import {self.store.path.name}")


def started_with() -> dict[str, str | None]:
    """What stands before the installed packages of this Python, and was loaded before any check could look at it."""
    loaded = {name: getattr(sys.modules.get(name), "__file__", None) for name in ("sitecustomize", "usercustomize")}
    return {"python": sys.executable, "PYTHONPATH": os.environ.get("PYTHONPATH"), **loaded}


def under_way(lines: list[dict[str, Any]]) -> str | None:
    """Candidate whose first check had begun and not ended well when the process ended."""
    begun = [line["candidate"] for line in lines if line["what"] == "begin"]
    fine = {line["candidate"] for line in lines if line["what"] == "check" and line["how"] != "failed"}
    return begun[-1] if begun and begun[-1] not in fine else None


def _price(candidate: Mapping[str, Any]) -> str:
    """Registers and workgroups a CU that the candidate was compiled to where it was bundled; empty if it was not."""
    price = (candidate["predicted"] or {}).get("price")
    if not price:
        return ""
    old, new = price["before"], price["after"]
    return f"   registers {old['registers']} -> {new['registers']}, workgroups a CU or SM " + (
        f"{old['workgroups_per_cu']} -> {new['workgroups_per_cu']}"
    )
