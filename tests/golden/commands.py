"""Commands whose JSON is pinned: every suite kernel under both replays, four GPUs, searches, and measured rows."""

CONTIGUOUS = "contiguous"
SIZES = {
    "attention": "B=1 H=16 S=1024 D=64",
    "attention_decode": "",
    "attention_gqa": "B=1 H=16 HKV=4 S=1024 D=64 CAUSAL=1",
    "attention_paged": "B=4 H=16 HKV=4 S=512 SPLITS=4",
    "attention_persistent": "H=16 HKV=4 S=2048 PROGRAMS=64",
    "attention_varlen": "B=4 H=8 HKV=2 S=1024 D=64",
    "batched_gemm": "BATCH=4 M=1024 N=1024 K=256",
    "black_scholes": "n_assets=1000000",
    "conv_2d": "N=4 H=28 W=28 C=64 K=128",
    "fdtd_2d": "Nx=1024 Ny=1056",
    "fused_elementwise": "",
    "gemm": "M=3072 N=2048 K=512",
    "gemm_dynamic": "M=2048 N=2048 K=512 BLOCK_M=128 BLOCK_N=128 PROGRAMS=64 LOCAL=50",
    "gemm_jagged": "GROUPS=12 S=1024",
    "gemm_splitk": "M=256 N=2048 K=4096",
    "gemm_streamk": "M=2048 N=2048 K=512",
    "grouped_gemm": "TOKENS=512 EXPERTS=8 TOPK=2 N=1024 K=512",
    "layer_norm": "M=1024 N=8192",
    "mla_decode": "S=8192",
    "mlp_megakernel": "M=2048 K=256 H=1024 N=256 PROGRAMS=64",
    "smith_waterman": "M=2048 N=2048",
    "softmax": "M=2048 N=4096",
    "spmv": "",
    "stencil_2d": "M=2048 N=2000",
    "stencil_3d": "NX=64 NY=64 NZ=64",
    "transpose": "M=2048 N=2000",
}
CLUSTERED = {"gemm_cluster": "M=2048 N=2048 K=512"}  # by kernel, on a GPU that dispatches clusters
OTHER_GPUS = [
    (gpu, kernel) for gpu in ("mi355x", "h200", "mi300a-cpx") for kernel in ("gemm", "transpose", "layer_norm")
]


def _score(kernel, gpu, replay, swizzle=CONTIGUOUS, *more):
    smaller = ("BLOCK_M=128", "BLOCK_N=128") if (kernel, gpu) == ("gemm", "h200") else ()
    return (
        "score",
        kernel,
        *{**SIZES, **CLUSTERED}[kernel].split(),
        *smaller,
        "--gpu",
        gpu,
        "--replay",
        replay,
        "--swizzle",
        swizzle,
        *more,
    )


def commands():
    """Name of a file without its ending, and the words typed, of each pinned command."""
    found = {}
    for replay in ("lockstep", "timed"):
        for kernel in SIZES:
            found[f"score-{kernel}-mi300x-{replay}"] = _score(kernel, "mi300x", replay)
        for gpu, kernel in [*OTHER_GPUS, *(("h200", kernel) for kernel in CLUSTERED)]:
            found[f"score-{kernel}-{gpu}-{replay}"] = _score(kernel, gpu, replay)
    found["score-gemm-row-seeds"] = _score("gemm", "mi300x", "timed", "row", "--seeds", "3", "--jitter", "20")
    for kernel, words in (("gemm", SIZES["gemm"]), ("stencil_2d", "M=512 N=500")):  # by symmetry, and without
        sizes = words.split()
        found[f"optimize-{kernel}"] = ("optimize", kernel, *sizes, "--replay", "lockstep", "--out", "run")
        found[f"optimize-{kernel}-timed"] = ("optimize", kernel, *sizes, "--out", "run")
    found["optimize-gemm-search"] = (
        *("optimize", "gemm", *SIZES["gemm"].split(), "--proposer", "search"),
        *("--evaluations", "12", "--out", "run"),
    )
    found["optimize-layer_norm-h200"] = (
        *("optimize", "layer_norm", *SIZES["layer_norm"].split(), "--gpu", "h200"),
        *("--out", "run"),
    )
    found["optimize-gemm-tune"] = ("optimize", "gemm", "M=2048", "N=2048", "K=1024", "--tune", "--evaluations", "12")
    # Compiled figures are those of one version of Triton: these are of the resources that the kernels declare.
    return {name: (*words, "--no-compile", "--json") for name, words in found.items()}
