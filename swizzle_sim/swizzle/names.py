"""Every name that some grid can give a value; which ones a certain grid has is `binding`'s business."""

AXES = ("x", "y", "z")

# Canonical coordinate names: they differ between workgroups.
COORDINATES = frozenset(
    {"pid", "pid_m", "pid_n", *AXES, *(f"pid_{a}" for a in AXES), *(f"program_id({k})" for k in range(3))}
)
# Counts: the same for every workgroup of a launch.
COUNTS = frozenset(
    {
        "num_pids",
        "num_pid_m",
        "num_pid_n",
        "num_xcds",
        "NUM_XCDS",
        *(f"num_pid_{a}" for a in AXES),
        *(f"num_programs({k})" for k in range(3)),
    }
)
GRID_NAMES = COORDINATES | COUNTS
