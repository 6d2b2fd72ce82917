"""How a documented command is run by the tests: at which size, or why it is only parsed.

This is the whole list. Sizes and efforts are made smaller, an option that opens a window goes, and nothing else
changes; what needs a GPU, a key, a network, Triton or minutes is held against the command's arguments and options.
"""

import re

SIZES = "M=1024 N=512 K=128"
EXAMPLE = "examples/causal_attention_kernel.py"  # what `init-kernel examples/attention.py:attend` writes
SMALLER = [  # (pattern, what takes its place), in this order
    (r"\bM=5120 N=5120\b", "M=512 N=1024 K=128"),  # the size held out stays another one
    (r"\bM=(4096|2048)\b( N=\d+)?( K=\d+)?", SIZES),
    (r"(?<= )gemm(?! M=\d)(?= |$)(?!.*--over)(?! K=)", f"gemm {SIZES}"),
    (r"\bgemm( K=1024)?(?= --over)", "gemm K=128"),
    (r"(?<= )conv_2d(?= |$)", "conv_2d N=1 H=32 W=32 C=128 K=128"),
    (r"(?<= )softmax(?= |$)", "softmax M=1024 N=1024"),
    (r"1024\.\.16384 step 1024|1024\.\.4096 step 512", "512..1024 step 512"),
    (r"powers 1024\.\.4096", "powers 512..1024"),
    (r"\bmoe_gemm( TOKENS=128)?(?= --)", "moe_gemm TOKENS=16 EXPERTS=8 N=256 K=256"),
    (r"\bH=64 S=2048", "H=16 S=512"),
    (r"1024,2048,4096", "256,512"),
    (r"(?<=optimize )attention(?=.*--out)", "attention --no-uncertainty"),
    (r"--evaluations \d+", "--evaluations 5"),
    (r"--proposer search(?!.*--evaluations)", "--proposer search --evaluations 5"),
    (r"--proposer ceiling(?!.*--evaluations)", "--proposer ceiling --evaluations 4"),
    (r"(?<=^swizzle-sim )(sweep|policy) (.*)", r"\1 \2 --backend serial"),
    (rf"(?<=optimize ){EXAMPLE}", f"{EXAMPLE} heads=2 S=256 --no-uncertainty"),
    (r" --open\b", ""),
]

PARSED = {  # pattern -> why it is only parsed, and what runs it instead
    r"--model|--replay runs/\S+-llm-": "needs a key or a recorded run of a model: tests/agent",
    r"optimize --resume runs": "needs a run of a model: tests/agent",
    r"swizzle-sim keep": "needs a run of a model: tests/search/test_templates.py",
    r"swizzle-sim lab mcp": "a server: tests/agent/test_mcp.py",
    r"--scheduler": "needs a Dask cluster: tests/search",
    r"swizzle-sim (import|lab counters)": "replays what an H200 or a profiler wrote, at its size: tests/hardware",
    r"swizzle-sim lab calibrate": "needs the GPU, or rows of the checkout: tests/hardware",
    r"confirm\.py": "needs the GPU: tests/hardware runs the flow on a stand-in",
    r"swizzle-sim (capture|rewrite|bundle)": "needs Triton and seconds: tests/capture, rewrite, hardware",
    r"(my|matmul)_kernel\.py|calls\.json|my\.trace\.npz": "needs Triton and seconds: tests/capture",
    r"--tune": "compiles many kernels: tests/tuning",
    r"calls\.csv|recordings/|swizzle-sim (retune|fleet)": "needs a table or recordings, or minutes: tests/search",
    r"\bbias_add\b": "needs a package of one's own: tests/docs/test_suite_kernel.py",
    r"sgemm\.cu": "needs a file of CUDA: tests/capture",
    r"captured\.trace\.npz": "needs Triton and seconds: tests/capture",
    r"check (gemm\.py|src/)": "needs a kernel of one's own: tests/testing",
    r"swizzle-sim explore": "a server: tests/explore",
    r"swizzle-sim kernels": "traces every kernel once, or takes minutes: tests/cli, tests/search/test_patience.py",
}
STATUS = {  # shown because there is no bijection
    "swizzle-sim check mine.txt --grid 1000 --xcds 7": 1,
    "swizzle-sim check examples/src/": 1,
}


def smaller(text: str) -> str:
    """Documented command at the size at which the tests run it."""
    for pattern, instead in SMALLER:
        text = re.sub(pattern, instead, text)
    return text


def apart(text: str) -> str:
    """What tells commands apart: the order of words, and where they read and write, do not."""
    text = re.sub(r" (--out|-o) \S+| --gpu mi355x", "", smaller(text))
    return " ".join(sorted(re.sub(r"runs/\S+|RUN", "RUN", text).split()))


def only_parsed(text: str) -> str:
    """Why a command is not run, or nothing."""
    return next((why for pattern, why in PARSED.items() if re.search(pattern, text)), "")
