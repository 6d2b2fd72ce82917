"""The flow on the node: check the machine, check and time the candidates, count them, and write down each step."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .counting import REPLAYED, Counting, find_program, medians, profiler_for, summary
from .machine import amd_topology, check_compiler, check_machine, nvidia_driver, rocm_version
from .manifest import FORMAT, RAW, RESULT, Refused, Store, check_files, lines_of, read_manifest, read_order
from .processes import run

LEAST_SAMPLES = 50
WARMUPS = 1  # launches in a counting run that do not count
PAIRS = (("TCC_HIT_sum", "TCC_MISS_sum"), ("lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"))
MISSING = {
    "rocprofv3": "It comes with ROCm 6.2 and later (package rocprofiler-sdk), usually in /opt/rocm/bin.",
    "ncu": "It comes with the CUDA toolkit, usually in /usr/local/cuda/bin.",
}


def main(words: list[str], folder: Path) -> int:
    """Confirm a bundle; returns the exit status: 0 done, 1 something is missing or wrong, 2 refused."""
    given = _arguments(words)
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
        right = self._check_and_time()
        if not self.given.no_count:
            self._count(right)
        complete = self._complete()
        self.store.document |= {"state": "finished", "complete": complete, "ended": _now()}
        self.store.save()
        self._tell()
        return 0 if complete else 1

    def _worker(self, *words: str) -> list[str]:
        flush = ("--flush-bytes", str(self.given.flush_mib << 20)) if words[0] != "describe" else ()
        return [sys.executable, "-B", "-m", "node.worker", *words, "--bundle", str(self.folder), *flush]

    def _note(self, text: str) -> None:
        print(f"confirm: {text}", file=sys.stderr, flush=True)
        self.store.document["notes"].append(text)
        self.store.save()

    def _machine(self) -> None:
        out = self.raw / "device.jsonl"
        ended = run(
            self._worker("describe", "--out", str(out)), log=self.raw / "device.log", limit_s=300, cwd=self.folder
        )
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
        for line in self._time_lines():
            if line["what"] == "check":
                check = {key: value for key, value in line.items() if key not in ("what", "when", "candidate")}
                self.store.candidate(line["candidate"])[f"check_{line['when']}"] = check
            elif line["what"] == "times":
                states = line["states"]
                for name, by_state in line["times"].items():
                    for state, values in by_state.items():
                        times.setdefault(name, {}).setdefault(state, []).extend(values)
        for name, by_state in times.items():
            timing = {state: {**summary(values), "all": values} for state, values in by_state.items()}
            self.store.candidate(name)["time_us"] = timing
        self.store.document["timing"] = {"states": states, "unit": "us", "how": "GPU events, orders taken in turn"}
        self.store.save()
        good = ("bitwise", "tolerance")
        right = []
        for name, entry in self.store.document["candidates"].items():
            before, after = entry.get("check_before", {}), entry.get("check_after", {})
            if before.get("how") in good and after.get("how") in good and before.get("permutation") != "differs":
                right.append(name)
            else:
                self._note(f"{name}: not counted, its outputs were not found right before and after: {before} {after}")
        return right

    def _time_lines(self) -> list[dict[str, Any]]:
        """What the process said; one that a candidate hung or killed is started again without that candidate."""
        samples = "0" if self.given.no_time else str(self.given.samples)
        skip: list[str] = []
        while True:
            out, log = (self.raw / f"time{len(skip) or ''}.{end}" for end in ("jsonl", "log"))
            words = self._worker("time", "--out", str(out), "--samples", samples, "--skip", *skip)
            ended = run(words, log=log, limit_s=6 * self.given.limit, cwd=self.folder)
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

    def _count(self, right: list[str]) -> None:
        profiler = profiler_for(self.manifest["gpu"]["vendor"])
        program = find_program(profiler, self.given.profiler)
        if program is None:
            self._note(f"no {self.given.profiler or profiler.name} found: nothing is counted. {MISSING[profiler.name]}")
            return
        version = profiler.version(program, self.raw / "version.log")
        self.store.document["profiler"] = {"name": profiler.name, "version": version, "caches": profiler.cold}
        if REPLAYED in version:
            self.store.document["kind"] = "replayed"
        self.store.save()
        counting = Counting(profiler, program, self.manifest["function"], self.folder, self.given.limit, WARMUPS)
        for name in right:
            entry = self.store.candidate(name)
            entry["passes"] = []

            def on_pass(found: dict[str, Any], name: str = name, entry: dict[str, Any] = entry) -> None:
                entry["passes"].append(found)
                entry["counters"] = medians(entry["passes"])
                self.store.save()
                said = f"confirm: {name}: {', '.join(found['asked'][:3])} ...: {found['state']}"
                print(said, file=sys.stderr, flush=True)

            work = self._worker("count", "--candidate", name, "--out", str(self.raw / f"{name}.jsonl"))
            counting.count(work, self.raw / name, on_pass)

    def _complete(self) -> bool:
        wanted = [key for key, off in (("time_us", self.given.no_time), ("counters", self.given.no_count)) if not off]
        entries = self.store.document["candidates"].values()
        return all(entry.get(key) for entry in entries for key in wanted)

    def _tell(self) -> None:
        document, known = self.store.document, {one["id"]: one for one in self.manifest["candidates"]}
        print(f"\n{document['kernel']} on {document['machine']['name']} ({document['kind']})")
        for name, entry in document["candidates"].items():
            cold = entry.get("time_us", {}).get("cold", {}).get("median")
            counted = {key: value["value"] for key, value in entry.get("counters", {}).items()}
            pair = next((p for p in PAIRS if p[0] in counted and p[1] in counted), None)
            hits, misses = (counted[key] for key in pair) if pair else (0, 0)
            rate = f"{100 * hits / max(hits + misses, 1):.2f} %" if pair else "-"
            time = "-" if cold is None else f"{cold:.1f} us"
            print(f"  {name:12} {entry['name'][:40]:40} cold {time:>12}   L2 hit rate {rate:>9}{_price(known[name])}")
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
