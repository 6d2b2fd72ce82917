"""Small and ragged sizes of every kernel of the suite, for tests."""

SIZES = {
    "attention": [
        {"B": 1, "H": 2, "S": 64, "D": 32},
        {"B": 2, "H": 3, "S": 43, "D": 16},
        {"B": 1, "H": 2, "S": 100, "D": 64, "CAUSAL": 1},
        {"B": 1, "H": 1, "S": 1, "D": 16, "CAUSAL": 1},
        {"B": 2, "H": 1, "S": 90, "D": 16, "CAUSAL": 1, "BLOCK_M": 16, "BLOCK_N": 64},
    ],
    "attention_gqa": [
        {"B": 2, "H": 4, "HKV": 2, "S": 38, "D": 16},
        {"B": 1, "H": 6, "HKV": 1, "S": 33, "D": 32, "CAUSAL": 1},
        {"B": 2, "H": 3, "HKV": 3, "S": 40, "D": 16, "CAUSAL": 1},
    ],
    "attention_decode": [
        {"B": 2, "H": 4, "HKV": 2, "S": 64, "D": 32, "SPLITS": 2, "BLOCK_N": 16},
        {"B": 3, "H": 2, "HKV": 1, "S": 77, "D": 16, "SPLITS": 3, "BLOCK_N": 8},
        {"B": 1, "H": 2, "HKV": 2, "S": 5, "D": 4, "SPLITS": 4, "BLOCK_N": 2},  # the last split has no keys
        {"B": 1, "H": 1, "HKV": 1, "S": 1, "D": 1, "SPLITS": 1, "BLOCK_N": 1},
    ],
    "attention_paged": [
        {"B": 3, "H": 4, "HKV": 2, "S": 64, "D": 32, "SPLITS": 2, "PAGE": 8},
        {"B": 2, "H": 3, "HKV": 1, "S": 77, "D": 16, "SPLITS": 3, "PAGE": 16, "SEED": 5},
        {"B": 4, "H": 2, "HKV": 2, "S": 9, "D": 4, "SPLITS": 4, "PAGE": 2},  # splits without pages
        {"B": 1, "H": 1, "HKV": 1, "S": 1, "D": 1, "SPLITS": 1, "PAGE": 1},
    ],
    "attention_persistent": [
        {"B": 1, "H": 4, "HKV": 2, "S": 80, "D": 16, "PROGRAMS": 10},
        {"B": 2, "H": 3, "HKV": 1, "S": 33, "D": 16, "CAUSAL": 0, "PROGRAMS": 4},
        {"B": 1, "H": 1, "HKV": 1, "S": 20, "D": 32, "PROGRAMS": 9},  # fewer tiles than programs
    ],
    "attention_varlen": [
        {"B": 3, "H": 4, "HKV": 2, "S": 80, "D": 16},
        {"B": 2, "H": 3, "HKV": 1, "S": 100, "D": 32, "CAUSAL": 0, "SEED": 5},
        {"B": 5, "H": 1, "HKV": 1, "S": 33, "D": 16, "BLOCK_M": 16, "BLOCK_N": 32, "SEED": 3},
        {"B": 1, "H": 2, "HKV": 2, "S": 1, "D": 16},
    ],
    "batched_gemm": [
        {"BATCH": 3, "M": 64, "N": 96, "K": 32},
        {"BATCH": 2, "M": 50, "N": 70, "K": 33},
        {"BATCH": 5, "M": 1, "N": 33, "K": 1},
    ],
    "gemm": [
        {"M": 64, "N": 96, "K": 32},
        {"M": 50, "N": 70, "K": 33},  # ragged in every dimension; rows begin within a line
        {"M": 33, "N": 1, "K": 17},
        {"M": 1, "N": 65, "K": 1},
        {"M": 97, "N": 203, "K": 31, "BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 64},
        {"M": 64, "N": 128, "K": 64, "BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 64},
    ],
    "gemm_cluster": [
        {"M": 64, "N": 96, "K": 32},
        {"M": 150, "N": 70, "K": 33, "MULTICAST": 0},
        {"M": 33, "N": 32, "K": 1},
    ],
    "gemm_dynamic": [
        {"M": 64, "N": 96, "K": 32, "PROGRAMS": 4, "POOLS": 2, "LOCAL": 75},
        {"M": 150, "N": 70, "K": 33, "PROGRAMS": 9, "POOLS": 8, "LOCAL": 50},
        {"M": 90, "N": 100, "K": 16, "PROGRAMS": 5, "POOLS": 1, "LOCAL": 100},
        {"M": 150, "N": 130, "K": 16, "PROGRAMS": 3, "POOLS": 4, "LOCAL": 60, "STEAL": 1},  # a pool without a program
        {"M": 33, "N": 32, "K": 1, "PROGRAMS": 30, "POOLS": 4, "LOCAL": 100},  # fewer tiles than pools
    ],
    "gemm_jagged": [
        {"GROUPS": 3, "S": 40, "N": 70, "K": 33},
        {"GROUPS": 2, "S": 50, "N": 33, "K": 16, "LEAST": 100},
        {"GROUPS": 5, "S": 33, "N": 32, "K": 40, "SEED": 3},
        {"GROUPS": 1, "S": 1, "N": 1, "K": 1},
    ],
    "gemm_splitk": [
        {"M": 64, "N": 96, "K": 64, "SPLITS": 2},
        {"M": 50, "N": 70, "K": 75, "SPLITS": 4},  # five steps: the third split has one, the last none
        {"M": 1, "N": 33, "K": 40, "SPLITS": 3},
        {"M": 33, "N": 32, "K": 1, "SPLITS": 1},
    ],
    "mla_decode": [
        {"B": 2, "H": 32, "S": 64, "LATENT": 64, "ROPE": 32, "SPLITS": 2},
        {"B": 3, "H": 20, "S": 77, "LATENT": 32, "ROPE": 16, "SPLITS": 3},
        {"B": 1, "H": 1, "S": 5, "LATENT": 16, "ROPE": 16, "SPLITS": 4},  # the last split has no tokens
    ],
    "mlp_megakernel": [
        {"M": 64, "K": 32, "H": 96, "N": 64, "PROGRAMS": 10, "POOLS": 1},
        {"M": 50, "K": 33, "H": 70, "N": 40, "PROGRAMS": 3, "POOLS": 1},
        {"M": 33, "K": 16, "H": 20, "N": 33, "PROGRAMS": 2, "POOLS": 1, "LOCAL": 50},
        {"M": 1, "K": 1, "H": 1, "N": 1, "PROGRAMS": 8, "POOLS": 1},
    ],
    "moe_gemm": [
        {"TOKENS": 5, "EXPERTS": 4, "TOPK": 2, "N": 70, "K": 33},
        {"TOKENS": 1, "EXPERTS": 3, "TOPK": 1, "N": 32, "K": 16},
        {"TOKENS": 9, "EXPERTS": 2, "TOPK": 2, "N": 128, "K": 128, "BLOCK_N": 64, "BLOCK_K": 64, "SEED": 7},
        {"TOKENS": 9, "EXPERTS": 3, "TOPK": 2, "N": 70, "K": 33, "K_FAST": True, "WARPS": 2},
    ],
    "grouped_gemm": [
        {"TOKENS": 50, "EXPERTS": 4, "TOPK": 2, "N": 70, "K": 33},
        {"TOKENS": 3, "EXPERTS": 8, "TOPK": 1, "N": 32, "K": 16},  # experts without tokens
        {"TOKENS": 64, "EXPERTS": 1, "TOPK": 1, "N": 96, "K": 32},
    ],
    "conv_2d": [
        {"N": 2, "H": 4, "W": 8, "C": 32, "K": 32},
        {"N": 1, "H": 7, "W": 5, "C": 17, "K": 19},
        {"N": 1, "H": 5, "W": 6, "C": 3, "K": 4, "R": 1, "S": 1},
        {"N": 2, "H": 3, "W": 3, "C": 16, "K": 16, "R": 2, "S": 5},
    ],
    "stencil_3d": [
        {"NX": 32, "NY": 4, "NZ": 4},
        {"NX": 21, "NY": 3, "NZ": 3},
        {"NX": 1, "NY": 1, "NZ": 1},
        {"NX": 70, "NY": 2, "NZ": 1, "BLOCK_X": 64, "BLOCK_Y": 1, "BLOCK_Z": 1},
    ],
}
PAPER = {
    "softmax": [{"M": 5, "N": 256}, {"M": 3, "N": 201}, {"M": 9, "N": 1}, {"M": 2, "N": 2500}],
    "layer_norm": [{"M": 4, "N": 256}, {"M": 5, "N": 77}, {"M": 3, "N": 1}],
    "fused_elementwise": [
        {"n_elements": 512, "BLOCK_SIZE": 128},
        {"n_elements": 1000, "BLOCK_SIZE": 256},
        {"n_elements": 1, "BLOCK_SIZE": 1024},
    ],
    "black_scholes": [
        {"n_assets": 512, "BLOCK_SIZE": 128},
        {"n_assets": 385, "BLOCK_SIZE": 128},
        {"n_assets": 1000, "BLOCK_SIZE": 256},
        {"n_assets": 1, "BLOCK_SIZE": 64},
    ],
    "smith_waterman": [
        {"M": 64, "N": 96},
        {"M": 50, "N": 33},
        {"M": 2, "N": 70, "BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64},
    ],
    "transpose": [{"M": 64, "N": 96}, {"M": 50, "N": 33}, {"M": 2, "N": 70, "BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64}],
    "stencil_2d": [
        {"M": 64, "N": 96},
        {"M": 50, "N": 33},
        {"M": 33, "N": 97},
        {"M": 2, "N": 70, "BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64},
    ],
    "fdtd_2d": [
        {"Nx": 64, "Ny": 96},
        {"Nx": 50, "Ny": 33},
        {"Nx": 33, "Ny": 97},
        {"Nx": 1, "Ny": 70, "BLOCK_SIZE_X": 16, "BLOCK_SIZE_Y": 64},
    ],
    "spmv": [
        {"M": 12, "N": 64, "NNZ_PER_ROW": 10, "BLOCK_SIZE": 16},
        {"M": 37, "N": 300, "NNZ_PER_ROW": 40, "BLOCK_SIZE": 32},
        {"M": 7, "N": 5, "NNZ_PER_ROW": 5, "BLOCK_SIZE": 128},
        {"M": 20, "N": 50, "NNZ_PER_ROW": 1, "BLOCK_SIZE": 8},
    ],
    "gemm_streamk": [
        # no whole tile, and shares that begin and end within tiles
        {"M": 64, "N": 64, "K": 80, "PROGRAMS": 7, "GROUP_M": 1},
        # two rounds of whole tiles and two tiles shared, ragged in every dimension
        {"M": 70, "N": 90, "K": 70, "PROGRAMS": 5, "GROUP_M": 2},
        # nothing shared
        {"M": 64, "N": 64, "K": 33, "PROGRAMS": 2, "GROUP_M": 8},
        # some workgroups have no share
        {"M": 50, "N": 130, "K": 30, "PROGRAMS": 9, "GROUP_M": 3},
        # a share of more than a tile
        {"M": 64, "N": 96, "K": 48, "PROGRAMS": 4, "GROUP_M": 8},
    ],
}
BLOCKS = {
    "attention": {"BLOCK_M": 32, "BLOCK_N": 16},
    "attention_gqa": {"BLOCK_M": 32, "BLOCK_N": 16},
    "attention_persistent": {"BLOCK_M": 32, "BLOCK_N": 16},
    "attention_varlen": {"BLOCK_M": 32, "BLOCK_N": 16},
    "batched_gemm": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
    **{name: {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16} for name in ("gemm", "gemm_cluster", "gemm_dynamic")},
    "gemm_streamk": {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 16},
    "gemm_jagged": {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 16},
    "gemm_splitk": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
    "mla_decode": {"BLOCK_H": 16, "BLOCK_N": 16},
    "mlp_megakernel": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
    "moe_gemm": {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 16},
    "grouped_gemm": {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 16},
    "conv_2d": {"BLOCK_H": 4, "BLOCK_W": 4, "BLOCK_K": 16, "BLOCK_C": 16},
    "stencil_3d": {"BLOCK_X": 16, "BLOCK_Y": 2, "BLOCK_Z": 2},
}
SIZES = {name: [BLOCKS.get(name, {}) | sizes for sizes in several] for name, several in {**SIZES, **PAPER}.items()}
CASES = [(name, sizes) for name, several in SIZES.items() for sizes in several]


def case_id(case):
    name, sizes = case
    return "-".join([name, *(str(value) for value in sizes.values())])
