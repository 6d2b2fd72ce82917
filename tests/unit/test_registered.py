"""Are entry points read once, and again where a package came or went?"""

from importlib import metadata

from swizzle_sim.workload.kernels import registered

GROUP = "swizzle_sim.kernels"


def test_they_are_those_of_the_installed_packages():
    assert registered(GROUP) == {entry.name: entry for entry in metadata.entry_points(group=GROUP)}
    assert "gemm" in registered(GROUP) and registered("no.such.group") == {}


def test_what_a_caller_does_to_them_is_not_seen_by_the_next():
    registered(GROUP).clear()
    assert "gemm" in registered(GROUP)


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
