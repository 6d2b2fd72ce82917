"""Do the small parts under everything hold: files written whole, caches, interruptions, entry points, errors?"""

from __future__ import annotations

import errno
import io
import os
import pickle
import shlex
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from swizzle_sim.base import progress
from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.base.disk_cache import DiskCache, cache_home
from swizzle_sim.base.interruption import go_on_with, how
from swizzle_sim.base.progress import LOG_EVERY_S, Progress
from swizzle_sim.capture.trace_file import read_trace
from swizzle_sim.cli.app import app
from swizzle_sim.workload.kernels import registered
from xcd_model import errors
from xcd_model.errors import CaptureError, RunError
from xcd_model.files import read_bytes, read_text


def test_a_file_is_new_or_as_it_was(tmp_path):
    path = tmp_path / "best.txt"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(RunError, match="cannot be written"):
        write_whole(tmp_path / "none" / "best.txt", b"three")
    with pytest.raises(RunError, match="cannot be written"):
        write_whole(tmp_path, b"three")


def test_a_link_and_a_pipe_are_written_to_and_stay(tmp_path):
    """As root a rename took the place of /dev/full."""
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"")
    link.symlink_to(target)
    write_whole(link, b"through")
    assert link.is_symlink() and target.read_bytes() == b"through"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"read")
    reader.join()
    assert found == [b"read"] and pipe.is_fifo()


@pytest.mark.parametrize("read", [read_bytes, read_text, read_trace], ids=lambda one: one.__name__)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises((OSError, CaptureError), match=r"nobody writes|no trace file"):
        read(tmp_path / "pipe")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_a_full_device_is_an_error_and_stays():
    with pytest.raises(RunError, match="No space left"):
        write_whole(Path("/dev/full"), b"x")
    assert not os.path.isfile("/dev/full")


def test_a_folder_that_refuses_even_the_removal_is_one_error(tmp_path, monkeypatch):
    def refuse(*given, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(RunError, match=r"page: cannot be written \(Read-only file system\)"):
        write_whole(tmp_path / "page", b"new")


# ---- Does a cache give back what was stored, to every process, execute nothing, and do without a folder?
DOCUMENT = {"figures": {"l2_hit_rate": 0.25, "time_us": None}, "counts": [1, 2**40, -3]}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_a_document_comes_back_in_this_and_another_process(home):
    DiskCache("kind").put("key", DOCUMENT)
    assert DiskCache("kind").get("key") == DOCUMENT
    assert DiskCache("kind").get("another key") is DiskCache("another").get("key") is None
    code = "from swizzle_sim.base.disk_cache import DiskCache; print(DiskCache('kind').get('key'))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == str(DOCUMENT)
    assert cache_home() == home / "swizzle-sim"


def _fill(folder, first):
    cache = DiskCache("kind", folder)
    for i in range(first, first + 50):
        cache.put(str(i), i)


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_fill, [tmp_path, tmp_path], [0, 50]))
    assert [DiskCache("kind", tmp_path).get(str(i)) for i in range(100)] == list(range(100))


class Hostile:
    def __reduce__(self):
        return (pytest.fail, ("a pickle in the cache was executed",))


def test_a_pickle_put_there_is_not_read(tmp_path):
    DiskCache("kind", tmp_path).put("key", DOCUMENT)
    with sqlite3.connect(tmp_path / "cache.db") as database:
        database.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(Hostile()),))
    database.close()
    assert DiskCache("kind", tmp_path).get("key") is None


def test_a_folder_or_a_store_that_cannot_be_used_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "cache.db").write_bytes(b"not a database" * 100)
    for folder in (tmp_path / "file" / "kind", tmp_path):
        cache = DiskCache("kind", folder)
        cache.put("key", DOCUMENT)
        assert cache.get("key") is None


# ---- Does Ctrl-C name the command that goes on, from when there is something to go on with?
@pytest.fixture
def stored(tmp_path):
    folder = tmp_path / "run 1"
    folder.mkdir()
    yield folder
    go_on_with(None, "")


def test_nothing_stored(stored):
    go_on_with(stored, "history.sqlite")
    assert how(["sweep", "gemm", "--out", str(stored)]) == (
        f"start again with: swizzle-sim sweep gemm --out '{stored}'"
    )  # the folder alone is no run
    go_on_with(None, "history.sqlite")
    assert how(["score", "gemm"]) == "start again with: swizzle-sim score gemm"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        *((["sweep", *out, "gemm"], "sweep gemm --resume {}") for out in (["--out", "{}"], ["-o", "{}"], ["-o{}"], [])),
        (["sweep", "--out={}", "gemm", "--json"], "sweep gemm --json --resume {}"),
        (["sweep", "--resume", "{}"], "sweep --resume {}"),
        (["optimize", "--", "gemm"], "optimize --resume {} -- gemm"),  # behind two dashes is no option
        (["optimize", "--", "-o"], "optimize --resume {} -- -o"),
    ],
)
def test_stored(stored, typed, said):
    go_on_with(stored, "history.sqlite")
    (stored / "history.sqlite").touch()
    assert how([word.format(stored) for word in typed]) == f"go on with: swizzle-sim {said}".format(f"'{stored}'")
    assert how(["sweep", f"--resume={stored}"]).count("--resume") == 1


@pytest.mark.parametrize(
    ("words", "runs", "file"),
    [
        (("fleet", "softmax", "--no-compile"), "swizzle_sim.cli.sweeping.run_points", "sweep.sqlite"),
        (("sweep", "gemm", "--over", "K", "--values", "64,128"), "swizzle_sim.cli.sweeping.run_points", "sweep.sqlite"),
    ],
)
def test_a_command_that_is_interrupted_has_said_where_it_stores(stored, monkeypatch, words, runs, file):
    def interrupted(*given, **more):
        (stored / file).touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, interrupted)
    done = CliRunner().invoke(app, [*words, "--out", str(stored)])
    assert done.exit_code == 130
    resumed = shlex.join(["swizzle-sim", *words, "--resume", str(stored)])
    assert how([*words, "--out", str(stored)]) == f"go on with: {resumed}"


# ---- Are entry points read once, and again where a package came or went?
GROUP = "swizzle_sim.kernels"


def test_they_are_those_of_the_installed_packages_whatever_a_caller_does_to_them():
    assert registered(GROUP) == {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    registered(GROUP).clear()
    assert "gemm" in registered(GROUP) and registered("no.such.group") == {}


def test_a_package_that_is_installed_meanwhile_is_found_and_one_removed_is_not(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    assert "ours" not in registered(GROUP)
    info = tmp_path / "late-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    assert "ours" not in registered(GROUP)  # an installer is still writing
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nours = late:ours\n")
    assert registered(GROUP)["ours"].value == "late:ours"
    info.rename(tmp_path / "kept")
    assert "ours" not in registered(GROUP)


# ---- Errors come out of another process as they were raised there.
RAISED = [
    errors.UnknownName("kernel", "gem", ["gemm", "softmax"]),
    errors.LanguageError("no", filename="a.txt", line=2, column=3, source_line="x = y", code="name"),
    errors.RewriteError("no", path="kernel.py", line=4),
    errors.HardwareError("no", code="other-gpu"),
    errors.MissingExtra("no"),
    errors.SpecError("no"),
]


@pytest.mark.parametrize("raised", RAISED, ids=lambda one: type(one).__name__)
def test_an_error_is_the_same_in_another_process(raised):
    found = pickle.loads(pickle.dumps(raised))
    assert (type(found), str(found), vars(found)) == (type(raised), str(raised), vars(raised))
    assert found.code == raised.code


# ---- Does progress stay one line on a terminal, and a line now and then in a log?
class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves only where a test moves it."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def printed(monkeypatch, stream, clock, seconds, term="xterm"):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("COLUMNS", raising=False)
    with Progress("counting", "sheep") as count:
        for i in range(1, 1001):
            clock[0] += seconds / 1000
            count(i, 1000, note="asleep")
    return stream.getvalue()


def test_a_log_gets_a_line_after_ten_seconds_and_then_one_a_minute(monkeypatch, clock):
    assert printed(monkeypatch, io.StringIO(), clock, 9.9) == ""
    lines = printed(monkeypatch, io.StringIO(), clock, 200.0).splitlines()
    assert len(lines) == 1 + (200 - 10) // LOG_EVERY_S
    assert lines[0] == "counting: 50 of 1000 sheep, 3 min left, asleep"
    assert lines[-1].startswith("counting: 95") and lines[-1].endswith(" s left, asleep")


def test_a_terminal_gets_one_line_that_goes(monkeypatch, clock):
    text = printed(monkeypatch, Terminal(), clock, 1.0)
    assert "counting" in text and "1000/1000" in text and "sheep" in text
    assert text.endswith("\x1b[2K")  # and the line is erased


def test_a_terminal_that_cannot_go_back_is_a_log(monkeypatch, clock):
    text = printed(monkeypatch, Terminal(), clock, 150.0, term="dumb")
    assert "\r" not in text and "\x1b" not in text and len(text.splitlines()) == 3


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_without_a_count_nothing_is_shown(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", shown := stream())
    with Progress("counting"):
        pass
    assert shown.getvalue() == ""


def test_a_step_without_counts_is_shown_once_it_takes_long(monkeypatch):
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "SOON_S", 0.01)
    with Progress("thinking"):
        time.sleep(0.2)
    assert "thinking" in shown.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_line_that_is_said_stays(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", shown := stream())
    monkeypatch.setenv("TERM", "xterm")
    with Progress("counting") as count:
        count(1, 2)
        count.say("one of them [bold] is done")
    assert "one of them [bold] is done\n" in shown.getvalue()
