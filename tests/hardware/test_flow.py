"""Does a bundle confirm itself on a node, whatever the node does to it? Everything here is replayed by stand-ins."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from swizzle_sim.hardware.bundle import Finalist, make_bundle
from swizzle_sim.hardware.node.launcher import SHOWN
from swizzle_sim.hardware.node.manifest import Refused, check_files, digest, identity, read_manifest
from swizzle_sim.language import family
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton
from tests.hardware.conftest import H200, STAND_IN, bundled, small
from xcd_model import gpu
from xcd_model.errors import HardwareError, NotBijective

COUNT = ("--no-time",)


@needs_triton
def test_all_steps(tmp_path, confirm):
    """Kernels, probes and checks really run, interpreted; times and counts are the stand-ins'."""
    bundle = tmp_path / "tiny"
    workload, device, _, baseline = small(specs=[], M=32, N=16)  # two workgroups: a hundred launches of each are timed
    found = [Finalist(name="reversed", source="pid = num_pids - 1 - pid\n")]
    make_bundle(workload, device, found, bundle, baseline=baseline, check=False)
    done = confirm(bundle, "--samples", "50", rocprofv3={"hits": {"candidate_1": 800, "original": 600}})
    assert done.code == 0, done.err
    result = done.result
    assert (result["kind"], result["state"], result["complete"]) == ("replayed", "finished", True)
    assert result["machine"]["arch"] == "gfx942" and "replayed" in result["profiler"]["version"]
    for name, entry in result["candidates"].items():
        assert entry["check_before"]["how"] == entry["check_after"]["how"] == "bitwise"
        assert entry["check_before"]["permutation"] == ("as launched" if name == "original" else "equal")
        for state in ("cold", "warm"):
            times = entry["time_us"][state]
            assert times["samples"] == len(times["all"]) == 50
            assert times["lowest"] <= times["lower_quartile"] <= times["median"] <= times["upper_quartile"]
        assert [one["state"] for one in entry["passes"]] == ["ok"] * 4
        assert all(sum(c.startswith("TCC_") for c in one["asked"]) <= 4 for one in entry["passes"])
        assert entry["counters"]["TCC_HIT_sum"]["launches"] == 3, "the launch that warms up does not count"
    assert result["candidates"]["candidate_1"]["counters"]["TCC_HIT_sum"]["value"] == 800
    assert "(replayed)" in done.out and "80.00 %" in done.out
    assert not list(bundle.rglob("__pycache__")), "nothing is left that a later run would load"
    assert read_manifest(bundle)["bundle"] == result["bundle"]


@needs_triton
def test_an_unsupported_counter_costs_itself_only(bundle, confirm):
    done = confirm(bundle, *COUNT, rocprofv3={"unsupported": ["TCC_READ_sum", "TCC_ATOMIC_sum"]})
    assert done.code == 0
    original, other = (done.result["candidates"][name] for name in ("original", "candidate_1"))
    assert {"TCC_HIT_sum", "TCC_MISS_sum", "TCC_EA0_WRREQ_sum"} <= set(original["counters"])
    assert original["counters"]["TCC_HIT_sum"]["pass"] == original["counters"]["TCC_MISS_sum"]["pass"]
    assert not {"TCC_READ_sum", "TCC_ATOMIC_sum"} & set(original["counters"])
    asked = [name for one in other["passes"] for name in one["asked"]]
    assert asked.count("TCC_READ_sum") == 2, "in its group and alone; what failed alone is not asked for again"


@needs_triton
def test_a_pass_that_hangs_is_killed_with_what_it_started(tmp_path, confirm):
    bundle = bundled(tmp_path / "one", specs=["contiguous"])
    done = confirm(bundle, *COUNT, "--limit", "2", rocprofv3={"hang_on": "TCC_BUBBLE_sum"})
    states = [one["state"] for one in done.result["candidates"]["original"]["passes"]]
    assert states == ["ok", "hung", "ok", "ok", "ok", "hung"], (
        "smaller groups after all others; two that hang are enough"
    )
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "time.sleep(600)" not in listed
    assert done.code == 0 and "TCC_HIT_sum" in done.result["candidates"]["candidate_1"]["counters"]
    assert any("no more are tried, for any candidate" in note for note in done.result["notes"])


@needs_triton
def test_cut_and_empty_and_old_files(bundle, confirm):
    done = confirm(bundle, *COUNT, rocprofv3={"old": True, "cut_on": "TCC_HIT_sum", "empty_on": "TCP_TCC_READ_REQ_sum"})
    first, *_, last = done.result["candidates"]["original"]["passes"]
    assert "ends within a line" in first["notes"][0]
    assert done.result["candidates"]["original"]["counters"]["TCC_HIT_sum"]["launches"] == 3
    assert last["state"] == "empty" and "no counter_collection.csv" in last["notes"][0]


@needs_triton
def test_without_a_profiler_the_rest_is_done(bundle, confirm):
    done = confirm(bundle, *COUNT, path=False)
    assert done.code == 1
    assert any("nothing is counted" in note and "rocprofiler-sdk" in note for note in done.result["notes"])
    assert done.result["candidates"]["candidate_1"]["check_after"]["how"] == "bitwise"


@needs_triton
def test_nsight_compute(tmp_path, confirm):
    folder = bundled(tmp_path / "nvidia", "h200", specs=["group_m(size=2)"])
    done = confirm(folder, *COUNT, gpu=H200, ncu={"unsupported": ["lts__t_sectors_srcunit_ltcfabric.sum"]})
    assert done.code == 0, done.err
    counters = done.result["candidates"]["candidate_1"]["counters"]
    assert counters["dram__bytes_read.sum"]["value"] == 1_000_002
    assert "lts__t_sectors_lookup_hit.sum" in counters and "lts__t_sectors_srcunit_ltcfabric.sum" not in counters
    assert done.result["kind"] == "replayed"


@needs_triton
@pytest.mark.parametrize(
    "gpu,words",
    [
        ({"name": "AMD Instinct MI325X"}, "this GPU is AMD Instinct MI325X; the bundle is for AMD Instinct MI300X"),
        (H200, "sm_90"),
        ({"name": ""}, "sees no GPU"),
    ],
)
def test_another_machine_is_refused(bundle, confirm, gpu, words):
    done = confirm(bundle, *COUNT, gpu=gpu)
    assert done.code == 2
    assert words in done.err and words in done.result["refused"]
    assert done.result["state"] == "refused"


def changed(bundle, name):
    (bundle / name).write_text((bundle / name).read_text() + "\n# one more line\n")


def described(bundle, name):
    (bundle / name).write_text((bundle / name).read_text().replace('"M": 48', '"M": 4096'))


def added(bundle, name):
    (bundle / name).parent.mkdir(exist_ok=True)
    (bundle / name).write_text("raise SystemExit('ran what it should not')")


def linked(bundle, name):
    aside = bundle.parent / "aside"
    (bundle / name).rename(aside) if (bundle / name).exists() else aside.mkdir()
    (bundle / name).symlink_to(aside)


@pytest.mark.parametrize(
    ("change", "name", "told"),
    [
        (changed, "candidate_1.py", "candidate_1.py was changed"),
        (described, "manifest.json", "manifest.json was changed"),
        *((linked, name, "is a link, or lies in one") for name in ("node", "node/flow.py", "candidate_1.py")),
        *((added, name, "not in the bundle's manifest") for name in ("torch.py", "node/more.py", "inputs/x.so")),
        (added, "numpy/__init__.py", "not in the bundle's manifest"),
        (linked, "triton", "Python could load it"),
    ],
)
def test_a_bundle_that_is_not_as_it_was_made_is_refused(bundle, confirm, change, name, told):
    change(bundle, name)
    linked_file = told.startswith("is a link")  # which confirm.py looks for before it loads anything
    if not linked_file:
        with pytest.raises(Refused, match=told):
            check_files(bundle, read_manifest(bundle))
    if linked_file or (change, name) in ((changed, "candidate_1.py"), (added, "torch.py")):
        done = confirm(bundle, *COUNT)
        assert done.code == 2 and told in done.err and done.result is None


def sealed_anew(bundle, changed):
    """Write files into a bundle and their digests into its manifest, so that every digest fits."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    for name, data in changed.items():
        (bundle / name).write_bytes(data)
        manifest["files"][name] = digest(data)
    manifest["bundle"] = identity(manifest)
    (bundle / "manifest.json").write_text(json.dumps(manifest))


LEFT = ("slurm-17.out", ".nfs000001", "core", "gpucore.123", ".rocprofv3/results.db", ".candidate_1.py.swp")
LEFT += ("candidate_1.py~", ".#confirm.py", ".ipynb_checkpoints/x-checkpoint.py", "notes.md")


def test_what_a_site_leaves_or_edits_is_no_reason_to_refuse(bundle, confirm):
    """Files of a queue, a file system, a crash, an editor and a profiler; and the files that say: add what you need."""
    for name in LEFT:
        (bundle / name).parent.mkdir(exist_ok=True)
        (bundle / name).write_text("hello")
    for name in ("job.sbatch", "run.sh", "README.md"):
        (bundle / name).write_text((bundle / name).read_text() + "#SBATCH --account=me\n")
    done = confirm(bundle, *COUNT, gpu={"name": ""})
    assert done.code == 2 and "sees no GPU" in done.err


@pytest.mark.skipif(shutil.which("sh") is None, reason="no sh")
def test_a_job_submitted_elsewhere_says_where(bundle, tmp_path):
    env = {**os.environ, "SLURM_SUBMIT_DIR": str(tmp_path)}
    done = subprocess.run(["sh", bundle / "job.sbatch"], env=env, capture_output=True, text=True)
    assert done.returncode == 2 and f"no confirm.py in {tmp_path}" in done.stderr


def test_an_order_that_is_no_bijection_is_refused(bundle, confirm):
    """Even where every digest fits: the node checks the permutation itself."""
    data = (bundle / "candidate_1_order.bin").read_bytes()
    sealed_anew(bundle, {"candidate_1_order.bin": data[4:8] + data[4:]})
    done = confirm(bundle, *COUNT)
    assert done.code == 2 and "no bijection of the 9 workgroups" in done.err


@needs_triton
def test_a_wrong_kernel_is_found_out_and_not_counted(bundle, confirm):
    """A candidate whose helper lies: outputs and permutation are checked on the GPU, not believed."""
    for name in ("candidate_1.py", "candidate_2_probe.py"):
        data = (bundle / name).read_bytes()
        changed = data.replace(b"return pid\n", b"return pid // 2\n")
        assert changed != data
        sealed_anew(bundle, {name: changed})
    done = confirm(bundle, *COUNT)
    entries = done.result["candidates"]
    assert entries["candidate_1"]["check_before"]["how"] == "differs"
    assert entries["candidate_2"]["check_before"]["permutation"] == "differs"
    assert "counters" in entries["original"]
    assert "counters" not in entries["candidate_1"] and "counters" not in entries["candidate_2"]


@needs_triton
def test_a_candidate_that_takes_its_process_with_it_costs_itself_only(bundle, confirm):
    """As a kernel that hangs, or writes where it must not and so ends the GPU's context."""
    sealed_anew(bundle, {"candidate_1.py": (bundle / "candidate_1.py").read_bytes() + b"\nimport os\nos._exit(3)\n"})
    done = confirm(bundle, *COUNT)
    entries = done.result["candidates"]
    assert done.code == 1 and entries["candidate_1"]["check_before"]["how"] == "failed"
    assert any("candidate_1: the process that checked it failed" in note for note in done.result["notes"])
    assert "counters" in entries["original"] and "counters" in entries["candidate_2"]
    assert str(STAND_IN) in done.result["machine"]["started_with"]["PYTHONPATH"]


def test_too_few_samples_are_refused(bundle, confirm):
    done = confirm(bundle, "--samples", "10")
    assert done.code == 2 and "at least 50" in done.err


@needs_triton
def test_without_swizzle_sim_installed(bundle, tmp_path):
    """A node has Triton and PyTorch and nothing of ours."""
    packages = [one for one in sys.path if one.endswith("site-packages")]
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-S", "-B", str(bundle / "confirm.py"), "worker"]
    env = {
        **os.environ,
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": os.pathsep.join([str(STAND_IN), *packages]),
    }
    gone = [sys.executable, "-S", "-c", "import swizzle_sim"]
    if subprocess.run(gone, cwd=bundle, env=env, capture_output=True).returncode == 0:
        pytest.skip("swizzle-sim is installed in the folder that Triton is in")
    rest = ["--out", str(out), "--flush-bytes", "4096"]
    done = subprocess.run([*command, "time", *rest], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counting = [*command, "count", *rest, "--candidates", "candidate_1"]
    assert subprocess.run(counting, cwd=tmp_path, env=env).returncode == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["how"] for line in lines if line["what"] == "check"] == ["bitwise"] * 6


def test_making_refuses(made, tmp_path):
    workload, device, found, _ = small()
    with pytest.raises(HardwareError, match="exists"):
        make_bundle(workload, device, found, made, check=False)
    with pytest.raises(HardwareError, match="nothing to confirm"):
        make_bundle(workload, device, [], tmp_path / "b", check=False)
    with pytest.raises(NotBijective):
        make_bundle(workload, device, [Finalist(name="bad", source="pid = pid % 4\n")], tmp_path / "b", check=False)
    assert not (tmp_path / "b").exists() and not list(tmp_path.glob(".*"))


def test_the_same_bundle_twice_is_the_same(made, tmp_path):
    workload, device, found, baseline = small()
    again = make_bundle(workload, device, found, tmp_path / "again", baseline=baseline, check=False)
    assert again["bundle"] == read_manifest(made)["bundle"]
    assert family("contiguous") in {one["source"] for one in again["candidates"]}


def test_scripts_and_readme(made):
    for name in ("run.sh", "job.sbatch"):
        assert os.access(made / name, os.X_OK)
        if shell := shutil.which("sh"):
            assert subprocess.run([shell, "-n", str(made / name)]).returncode == 0
    text = (made / "README.md").read_text()
    assert "rocprofv3" in text and "swizzle-sim import" in text and "group_m(size=2)" in text


@needs_triton
def test_a_kernel_that_races_is_not_blamed_on_its_order(tmp_path, confirm):
    """A workgroup of fdtd_2d reads what its neighbours write: its outputs are others in another order, or again.

    Of its launches in a row the profiler is shown the first: all of them hang it.
    """
    bundle, found = tmp_path / "bundle", [Finalist(name="reversed", source="pid = num_pids - 1 - pid\n")]
    make_bundle(replace(kernel("fdtd_2d", Nx=64, Ny=32), launches=6), gpu("h200"), found, bundle)
    assert all(one["races"] for one in read_manifest(bundle)["candidates"])
    done = confirm(bundle, *COUNT, gpu={**H200, "racing": "hz_ptr"}, ncu={"launches": SHOWN})
    assert done.code == 0, done.err
    entries = done.result["candidates"]
    assert [one["check_before"]["how"] for one in entries.values()] == ["races", "races"]
    assert entries["candidate_1"]["check_before"]["permutation"] == "equal"
    assert [one["counters"]["dram__bytes_read.sum"]["launches"] for one in entries.values()] == [3 * SHOWN, 3 * SHOWN]
    assert any(f"{SHOWN} of 6 launches in a row, of every order" in note for note in done.result["notes"])


@needs_triton
def test_a_kernel_that_differs_from_itself_here_races_whatever_its_bundle_says(bundle, confirm):
    done = confirm(bundle, *COUNT, gpu={"racing": "c_ptr"})
    assert {one["check_before"]["how"] for one in done.result["candidates"].values()} == {"races"}
