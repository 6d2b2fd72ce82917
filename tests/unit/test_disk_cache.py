"""Does a cache give back what was stored, to every process, execute nothing, and do without a folder?"""

import pickle
import sqlite3
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest

from swizzle_sim.base.disk_cache import DiskCache, cache_home

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


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache("kind", tmp_path / "file" / "kind")
    cache.put("key", DOCUMENT)
    assert cache.get("key") is None


def test_a_store_that_is_no_database_is_done_without(tmp_path):
    (tmp_path / "cache.db").write_bytes(b"not a database" * 100)
    cache = DiskCache("kind", tmp_path)
    cache.put("key", DOCUMENT)
    assert cache.get("key") is None
