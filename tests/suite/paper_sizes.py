"""Small and ragged sizes of the paper's kernels, for tests."""

SIZES = {
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
_SMALL = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 16}
SIZES["gemm_streamk"] = [_SMALL | sizes for sizes in SIZES["gemm_streamk"]]
CASES = [(name, sizes) for name, several in SIZES.items() for sizes in several]


def case_id(case):
    name, sizes = case
    return "-".join([name, *(str(value) for value in sizes.values())])
