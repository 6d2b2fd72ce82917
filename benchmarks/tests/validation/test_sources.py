"""The digest that keeps predictions apart: it sees all the code of the model that a count passes through."""

import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import xcd_model
from swizzle_benchmarks.validation import sources


def test_every_module_that_a_replay_runs_takes_part():
    behind = sources.modules_behind("swizzle_sim.pricing.replaying", "swizzle_benchmarks.validation.variants")
    folders = ("spec", "trace", "dispatch", "cache", "nvidia", "replay", "fast")
    found = [one.name for one in pkgutil.walk_packages(xcd_model.__path__, "xcd_model.") if not one.ispkg]
    parts = [name for name in found if name.split(".")[1] in folders and name not in sources.IDLE]
    assert len(parts) > 20 and set(parts) <= set(behind)


def test_a_package_and_what_it_imports_from_itself(tmp_path, monkeypatch):
    package = tmp_path / "followed_for_this_test"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import f\n")
    (package / "inner.py").write_text("'words'\ndef f(): return 1\n")
    (tmp_path / "user_of_it.py").write_text("from followed_for_this_test import f\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sources, "FOLLOWED", ("followed_for_this_test",))
    assert "followed_for_this_test.inner" in sources.modules_behind("user_of_it")

    def digest():
        sources.digest_of.cache_clear()
        return sources.digest_of("user_of_it")

    before = digest()
    (package / "inner.py").write_text("'other words'\ndef f(): return 1\n")
    assert digest() == before
    (package / "inner.py").write_text("'words'\ndef f(): return 2\n")
    assert digest() != before
    (tmp_path / "table.csv").write_text("1\n")
    monkeypatch.setattr(sources, "TABLES", {"user_of_it": "table.csv"})
    with_table = digest()
    (tmp_path / "table.csv").write_text("2\n")
    assert digest() != with_table
    for name in ("followed_for_this_test", "user_of_it"):
        sys.modules.pop(name, None)


def test_tables_that_modules_read_take_part():
    behind = sources.modules_behind("swizzle_sim.pricing.replaying", "swizzle_benchmarks.validation.variants")
    assert set(sources.TABLES) <= set(behind)
    for module, table in sources.TABLES.items():
        found = import_module(module)
        assert found.STENCIL_TABLE.samefile(Path(str(found.__file__)).parent / table)
