"""Kill -9 at random instants of runs, and go on: is anything lost, doubled, or asked twice?

    python -m tests.attack.kills --kills 70 --seed 1      70 kills seen to land in each of families, search and llm

A child is forked from a process that has everything loaded, so that most kills land in the run and not in its imports.
A kill counts as landed if the child lived, the run was there and not all its attempts were. A run is killed again and
again until it ends by itself; then its attempts are those of a run that nobody killed, but for times.

A question is a place in the run (iteration, purpose, candidate, try) and its words. The server writes down the words of
each request, the child the place before it sends, and the transcript holds both. No place is sent twice. Two places may
have the same words: after a question that nobody answered the next iteration knows as much, and asks in the same ones.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from swizzle_agent.cached_lm import CachedLM
from swizzle_agent.loop import propose
from swizzle_agent.providers import load_dspy
from swizzle_agent.settings import Settings
from swizzle_agent.transcript import Transcript
from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.search.history import FILE, History
from swizzle_sim.search.ranking import read_objectives
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.search.strategies.halving import SearchPlan, search
from tests.attack.scripted_process import digest_of
from xcd_model import gpu

KERNEL = gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64)
LARGER = gemm(M=768, N=640, K=128, BLOCK_M=64, BLOCK_N=64)
GPU = gpu("mi300x")
MOST_FAILED = 3
MOST_KILLS = 20  # of one run; then it may end, however slow the machine has become
ITERATIONS = 12  # of the llm runs


def families(folder, resume, base):
    """Try the published families."""
    optimize(KERNEL, GPU, folder, replay="lockstep", threads=2, resume=resume)


def searched(folder, resume, base):
    """Search templates."""
    plan = SearchPlan(evaluations=60, objectives=read_objectives("l2_hit_rate,time"))  # no bound ends it early
    search([LARGER], GPU, folder, plan, replay="lockstep", threads=2, resume=resume)


def llm(folder, resume, base):
    """Ask the scripted model; each question is written down before it is sent."""
    send = CachedLM._request

    def noted(lm, request, asked):
        with open(folder.with_suffix(".sent"), "a") as file:
            file.write(f"{asked.position}\n")
        return send(lm, request, asked)

    CachedLM._request = noted
    settings = Settings(models=("openai/scripted",), api_base=base, iterations=ITERATIONS, timeout_s=60.0)
    propose(KERNEL, GPU, folder, settings, replay="lockstep", resume=resume, objective="time")  # no bound ends it early


MODES = {"families": families, "search": searched, "llm": llm}


def start(mode, folder, base, errors):
    """Fork a child that makes or resumes a run; gives its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            MODES[mode](folder, folder.exists(), base)
        status = 0
    except BaseException:
        errors.write_text(traceback.format_exc())
    finally:
        os._exit(status)


def ended(child, seconds):
    """Exit status of a child that ends within a time, or None."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    return None


def facts(folder):
    """Attempts of a run without their times."""
    with History(folder) as history:
        rows = [
            [a.number, a.name, a.source, a.proposer, dict(a.verdict), a.score and a.score.as_dict(), a.critique]
            for a in history
        ]
        return [json.dumps(row, sort_keys=True) for row in rows], history.state


def questions(folder):
    """Words of each question of a run, and how many of them got an answer that nobody knows."""
    with Transcript(folder) as transcript:
        asked = list(transcript)
    texts = [json.loads(one.request)["messages"][-1]["parts"][0]["text"] for one in asked]
    return collections.Counter(map(digest_of, texts)), sum(one.code == "unanswered" for one in asked)


class Attack:
    """Kills of one mode until enough have landed."""

    def __init__(self, mode, where, base, log):
        self.mode, self.where, self.base, self.log = mode, where, base, log
        self.counts = collections.Counter()
        self.problems = []
        self.kills_of_run = 0
        folder = where / f"{mode}-reference"
        began = time.monotonic()
        self._finish(folder)
        self.took_s = time.monotonic() - began
        self.reference = facts(folder)[0]

    def _finish(self, folder):
        errors = self.where / "error.txt"
        status = ended(start(self.mode, folder, self.base, errors), 600)
        if status != 0:
            raise SystemExit(f"{self.mode}: a run that nobody kills ends with {status}: {errors.read_text()}")

    def run(self, kills, draw):
        """Kill runs until ``kills`` have landed."""
        number = 0
        while self.counts["landed"] < kills and self.counts["resume failed"] < MOST_FAILED:
            self._one_run(self.where / f"{self.mode}-{number}", draw)
            number += 1

    def _one_run(self, folder, draw):
        asked_before, self.kills_of_run = self._asked(), 0
        while True:
            errors = self.where / "error.txt"
            child = start(self.mode, folder, self.base, errors)
            wait_s = draw.uniform(0, self.took_s * draw.choice((0.02, 0.1, 0.4)))
            status = ended(child, wait_s if self.kills_of_run < MOST_KILLS else 600)
            if status is not None:
                break
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self.kills_of_run += 1
            self._look(folder)
        if status != 0:
            self.counts["resume failed"] += 1
            self.problems.append(errors.read_text())
        else:
            self._compare(folder, asked_before)
        shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps({self.mode: self.counts}), file=sys.stderr, flush=True)

    def _look(self, folder):
        """Count a kill by where it landed."""
        if not (folder / FILE).is_file():
            self.counts["before the run was made"] += 1
            if folder.exists():
                self.problems.append(f"half a run folder: {sorted(os.listdir(folder))}")
            return
        have, state = facts(folder)
        landed = state == "stopped" and len(have) < len(self.reference)
        self.counts["landed" if landed else "after the last attempt"] += 1

    def _compare(self, folder, asked_before):
        self.counts["runs"] += 1
        have, state = facts(folder)
        given_up = self._compare_questions(folder, asked_before) if self.mode == "llm" else 0
        if state != "finished":
            self.problems.append(f"state {state} after the end")
        if not given_up and have != self.reference:
            self.counts["runs that differ"] += 1
            self.problems.append(f"{len(have)} attempts, {len(self.reference)} without kills")
        if [json.loads(row)[0] for row in have] != list(range(len(have))):
            self.problems.append("numbers with gaps")

    def _compare_questions(self, folder, asked_before):
        """Count what was sent; gives the questions whose answers a kill took."""
        asked = collections.Counter(self._asked()[len(asked_before) :])
        words, given_up = questions(folder)
        sent = collections.Counter(folder.with_suffix(".sent").read_text().splitlines())
        self.counts["requests"] += sum(asked.values())
        self.counts["unanswered"] += given_up
        self.counts["next iteration in the same words"] += sum(times - 1 for times in words.values())
        self.counts["asked twice"] += sum(times - 1 for times in sent.values()) + (asked - words).total()
        if given_up > self.kills_of_run:
            self.problems.append(f"{given_up} questions lost by {self.kills_of_run} kills")
        return given_up

    def _asked(self):
        return self.log.read_text().split() if self.log.exists() else []


def main(arguments):
    """Run the attack; the counts as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=70, help="kills that land, in each mode")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--answer-s", type=float, default=0.1, help="that the scripted model takes to answer")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES))
    given = parser.parse_args(arguments)
    where = Path(tempfile.mkdtemp(prefix="kills-"))
    log, draw = where / "asked.log", random.Random(given.seed)
    found, problems, server = {}, [], None
    command = [sys.executable, "-m", "tests.attack.scripted_process", str(log), str(given.answer_s)]
    try:
        base = ""
        if "llm" in given.modes:
            server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            base = server.stdout.readline().strip()
            load_dspy()
        for mode in given.modes:
            attack = Attack(mode, where, base, log)
            attack.run(given.kills, draw)
            found[mode] = {"attempts of a run": len(attack.reference), **attack.counts}
            problems += attack.problems
            print(json.dumps({mode: found[mode], "problems": attack.problems}), file=sys.stderr, flush=True)
    finally:
        if server:
            server.stdin.close()
            server.wait()
        shutil.rmtree(where, ignore_errors=True)
    print(json.dumps({"kills": found, "problems": problems}, indent=2))
    return 1 if problems or any(counts.get("asked twice") for counts in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
