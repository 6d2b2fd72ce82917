"""Candidates that emitters must get right, and how an emitted function is called for one workgroup."""

from swizzle_sim.language import FAMILIES, Grid, arguments, family
from swizzle_sim.language.grid import bind

GRIDS = (
    *(Grid((1,), (1, 1)), Grid((99,), (9, 11)), Grid((64,), (8, 8)), Grid((5, 13)), Grid((34,), (2, 17))),
    Grid((5, 3, 4)),
)
NUM_XCDS = 8

FAMILY_TEXTS = {name: family(name) for name in FAMILIES}
FAMILY_TEXTS["composed"] = family("contiguous+chunked(chunk=3)+group_m(size=3)")
FAMILY_TEXTS["chunked_hilbert"] = family("chunked(chunk=2)+hilbert")

# Every construct, and every trap: most are no bijection, which an emitter does not ask for.
TEXTS = {
    "keywords": "new = pid % 3\nregister = new + 1\ndelete = register * 2\npid = delete - new\n",
    "helper_names": "swizzle_min = pid\nunix = swizzle_min + 1\nswizzle_tile = min(unix, 5)\npid = swizzle_tile\n",
    "own_name": "swizzle = pid + 1\nlinux = swizzle\npid = linux\n",
    "hoisted": "if pid % 2 == 0:\n    a = pid\n    b = 1\nelse:\n    a = pid - 1\n    b = 2\npid = a * 2 + b\n",
    "elif": "if pid < 3:\n    a = 1\nelif pid < 5:\n    a = 2\n    c = a\nelse:\n    a = 3\npid = a\n",
    "nested": "if pid > 2:\n    if pid > 4:\n        a = 1\n    else:\n        a = 2\nelse:\n    a = 0\npid = a\n",
    "loop_makes": "for i in range(3):\n    a = i * pid\n    for j in range(2, 9, 3):\n        b = a + j\npid = b\n",
    "loop_carries": "a = 1\nb = 0\nfor i in range(pid % 7):\n    a, b = a + b, a\npid = a\n",
    "loop_same_name": "a = 0\nfor i in range(3):\n    t = i\n    a += t\nfor i in range(4):\n    t = 2 * i\npid = a",
    "loop_var_later": "a = 0\nfor i in range(3):\n    a += i\ni = a + 1\npid = i\n",
    "loops_eight_deep": "a = b = 0\n"
    + "".join("  " * k + f"for i{k} in range({1 + (k < 3)}):\n" for k in range(8))
    + "  " * 8
    + "a, b = a + b + i0, a ^ pid ^ i2\npid = a\n",
    "loop_in_branch": "if pid > 3:\n    for i in range(2):\n        a = pid + i\nelse:\n    a = 7\npid = a\n",
    "select": "a = (pid if pid > 3 else 2) if pid > 5 else (1 if pid < 2 else 4)\npid = a + (1 if a > 2 else 0) * 3\n",
    "conditions": "a = pid > 3 and not (pid > 7 or pid == 5) and (pid < 9 or pid > 20)\npid = a\n",
    "mixed": "c = (pid > 1 or pid > 2) and (pid > 3 or (pid < 5 or pid == 0))\npid = -(~pid) + c - -1\n",
    "bits": "a = ((pid & 3) << 2) | (pid >> 1) ^ (5 & pid | 2)\npid = a + (a < (pid ^ 3)) + (1 << (a & 3))\n",
    "sums": "pid = pid - (3 - pid) - (pid + 2) * 3 + 7 * (pid * 2) - (pid // 2) * 2 - pid % 5 * 3 - pid // (7 % 4)\n",
    "negative": "a = -2147483648\nb = a + pid\npid = max(b, -5) + abs(3 - pid) - (-7) // (-2)\n",
    "truth": "a = -(-0) + pid - -(-5)\nb = -True + ~False\npid = a * b - (-False) - (-(-True))\n",
    "calls": "pid = tl.cdiv(pid + 1, 3) + tl.maximum(min(pid, 3, 7), tl.minimum(2, pid)) + tl.where(pid > 2, 1, pid)\n",
    "changed_input": "for i in range(2):\n    num_pids += 1\n    num_xcds = num_xcds * 2\npid = num_pids + num_xcds\n",
    "both_spellings": "pid = num_xcds + NUM_XCDS + pid\n",
    "sizes": "pid = pid % SIZE + tl.cdiv(SIZE, 16)\n",
    "axes": "pid = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)\n",
    "kept": "if pid_m > 1:\n    pid_m = pid_m - 1\npid_n = pid_n\n",
    "one_axis": "pid_m = pid_m + 1\n",
    "unused": "a = pid + 1\nb = 3\npid = pid\n",
    "deep_zero": "x = 0\nif pid > 0:\n    pass\nelse:\n    x = 5\npid = pid * 2 + x\n",
}
SIZES = {"SIZE": 37}


def values(form, grid):
    """Values of every name that a form reads, and each argument's, by workgroup: ``(environment, arguments)``."""
    for known in environments(form.inputs, grid, SIZES):
        yield known, [known[name] for name in arguments(form)]


def environments(names, grid, sizes):
    """Values of the names, by workgroup."""
    bound = bind(names, grid, NUM_XCDS, sizes)
    for pid in range(grid.num_pids):
        yield bound.constants | {name: pid // one.stride % one.extent for name, one in bound.digits.items()}


def has_grid(form, grid):
    """Whether a grid has the coordinates that a form computes or reads."""
    read = (name.removeprefix("num_") for name in form.inputs if name.startswith(("pid", "num_pid_")))
    return {*form.results, *read} <= grid.coordinates.keys()
