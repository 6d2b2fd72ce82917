"""Measures what ``levers`` predicted, on a machine with the GPU: needs torch and Triton, and predicted.json beside it.

Outputs of every instance are compared with those of the kernel as it is, then each is timed by events over `LAUNCHES`
launches, `ROUNDS` times in turn, with a buffer larger than the L2 written before each launch; the median counts.
"""

import importlib.util
import json
import statistics
import sys
from pathlib import Path

import numpy
import torch

LAUNCHES, ROUNDS, WARM = 20, 5, 5
FLUSH_BYTES = 256 << 20
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
DTYPES |= {"int8": torch.int8, "int32": torch.int32, "int64": torch.int64}


def function_of(folder, told):
    """Triton function of an instance."""
    path = folder / told["file"]
    spec = importlib.util.spec_from_file_location(f"instance_{abs(hash(told['file']))}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, told["function"])


def arguments_of(folder, told, seed):
    """Arguments of a launch; what is read is drawn by a seed, the same for every instance, but for the indices."""
    indices = (folder / told["file"]).with_suffix(".npz")
    known = dict(numpy.load(indices)) if indices.exists() else {}
    made, outputs, draw = {}, [], torch.Generator(device="cuda").manual_seed(seed)
    for name, one in told["arguments"].items():
        if "value" in one:
            made[name] = one["value"]
            continue
        about = one["array"]
        if name in known:
            made[name] = torch.from_numpy(known[name]).cuda()
            continue
        if about["is_index"] or about["dtype"] not in DTYPES:
            raise ValueError(f"{told['function']}: {name} is no tensor of plain numbers")
        shape, dtype = about["shape"], DTYPES[about["dtype"]]
        values = torch.randn(shape, generator=draw, device="cuda", dtype=torch.float32)
        whole = values.to(dtype) if about["role"] != "out" else torch.zeros(shape, device="cuda", dtype=dtype)
        made[name] = whole
        if about["role"] != "in":
            outputs.append(whole)
    return made, outputs


def launcher(folder, told, made):
    """Launch of an instance, without arguments."""
    function, grid = function_of(folder, told), tuple(told["grid"])
    options = {"num_warps": told["num_warps"], "num_stages": told["num_stages"], **told.get("options", {})}
    return lambda: function[grid](**made, **told["constexprs"], **options)


def timed_us(launch, flush):
    """Median time of some launches with a cold L2."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    found = []
    for _ in range(LAUNCHES):
        flush.zero_()
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        found.append(1e3 * begin.elapsed_time(end))
    return statistics.median(found)


def measured(folder, kernel):
    """Times of the instances of one kernel, and how far their outputs are from those of the kernel as it is."""
    launches, outputs, far, same, first = {}, {}, {}, {}, {}
    for arm, told in kernel["instances"].items():
        key = json.dumps({name: one for name, one in told.items() if name not in ("file", "predicted_us")})
        same[arm] = first.setdefault(key, arm)
        if same[arm] != arm:  # the same instance: its time is that one's
            continue
        made, outputs[arm] = arguments_of(folder, told, seed=0)
        launches[arm] = launcher(folder, told, made)
        launches[arm]()
        torch.cuda.synchronize()
        pairs = zip(outputs["as it is"], outputs[arm], strict=True)
        far[arm] = max(float((a.float() - b.float()).abs().max() / a.float().abs().max()) for a, b in pairs)
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    rounds = {arm: [] for arm in launches}
    for turn in range(WARM + ROUNDS):
        for arm, launch in launches.items():
            time = timed_us(launch, flush)
            rounds[arm] += [time] if turn >= WARM else []
    return {
        arm: {"measured_us": statistics.median(rounds[one]), "rounds_us": rounds[one], "outputs_differ_by": far[one]}
        for arm, one in same.items()
    }


def main(folder):
    """Measure every kernel, print a table, and write measured.json."""
    predicted = json.loads((folder / "predicted.json").read_text())
    found, won = [], 0
    for kernel in predicted["kernels"]:
        try:
            times = measured(folder, kernel)
        except Exception as error:
            print(f"{kernel['name']}: not measured: {type(error).__name__}: {error}")
            found.append({"name": kernel["name"], "error": str(error)})
            continue
        found.append({"name": kernel["name"], "instances": times})
        print(kernel["name"])
        for arm, one in times.items():
            told = kernel["instances"][arm]
            print(f"  {arm:14} predicted {told['predicted_us']:9.2f} us, measured {one['measured_us']:9.2f} us, "
                  f"{one['outputs_differ_by']:.0e} of the largest output apart")  # fmt: skip
        alone = [one["measured_us"] for arm, one in times.items() if arm not in ("both", "as it is")]
        won += "both" in times and times["both"]["measured_us"] < min(alone)
    print(f"both is measured faster than either lever alone on {won} of {len(predicted['kernels'])} kernels")
    about = {"kind": "measured", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "kernels": found}
    (folder / "measured.json").write_text(json.dumps(about, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
