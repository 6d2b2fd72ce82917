"""Linear attention of fla-core, the convolution of flag-gems and the int8 GEMM of torchao."""

from swizzle_sim.capture import Array, Kernel


def cdiv(a, b):
    return -(-a // b)


SEQUENCE = {"BATCH": 2, "CONTEXT": 2048, "HEADS": 16}
CHUNK, WIDTH = 64, 128  # tokens of a chunk, key and value width of a head


def tokens(s, role="in"):
    return Array(shape=(s.BATCH, s.CONTEXT, s.HEADS, WIDTH), dtype="bf16", role=role)


def states(s, role="in"):
    return Array(shape=(s.BATCH, cdiv(s.CONTEXT, CHUNK), s.HEADS, WIDTH, WIDTH), dtype="bf16", role=role)


def gates(s):
    return Array(shape=(s.BATCH, s.CONTEXT, s.HEADS), dtype="fp32")


chunk_o = Kernel(
    "fla.ops.common.chunk_o:chunk_fwd_kernel_o",
    sizes=SEQUENCE,
    arguments=lambda s: {
        "q": tokens(s), "k": tokens(s), "v": tokens(s), "h": states(s), "g": gates(s), "g_gamma": None,
        "o": tokens(s, "out"), "cu_seqlens": None, "chunk_indices": None, "scale": WIDTH**-0.5, "T": s.CONTEXT,
    },
    constexprs=lambda s: {
        "H": s.HEADS, "HV": s.HEADS, "K": WIDTH, "V": WIDTH, "BT": CHUNK, "STATE_V_FIRST": False,
    },
    grid=lambda s: (cdiv(WIDTH, s.BV) * cdiv(s.CONTEXT, CHUNK), s.BATCH * s.HEADS),
)  # fmt: skip

chunk_h = Kernel(
    "fla.ops.common.chunk_h:chunk_fwd_kernel_h",
    sizes=SEQUENCE,
    arguments=lambda s: {
        "k": tokens(s), "v": tokens(s), "h": states(s, "out"), "g": gates(s), "g_gamma": None, "gk": None, "gv": None,
        "h0": None, "ht": None, "cu_seqlens": None, "split_offsets": None, "T": s.CONTEXT,
    },
    constexprs=lambda s: {
        "H": s.HEADS, "K": WIDTH, "V": WIDTH, "BT": CHUNK, "BS": CHUNK, "USE_G": True, "USE_G_GAMMA": False,
        "USE_GK": False, "USE_GV": False, "STATE_V_FIRST": False,
    },
    grid=lambda s: (cdiv(WIDTH, s.BK) * cdiv(WIDTH, s.BV) * s.BATCH * s.HEADS,),
)  # fmt: skip

IN, OUT = 64, 128  # channels


def convolution_strides(name, channels, side):
    names = ("c", "height", "width")
    first = f"{name}_n_stride"
    sides = dict(zip((f"{name}_{one}_stride" for one in names), (side * side, side, 1), strict=True))
    return {first: channels * side * side, **sides}


conv2d = Kernel(
    "flag_gems.ops.conv2d:conv2d_forward_kernel",
    sizes={"IMAGES": 8, "SIDE": 56},
    arguments=lambda s: {
        "input_pointer": Array(shape=(s.IMAGES, IN, s.SIDE, s.SIDE), dtype="fp16"),
        "weight_pointer": Array(shape=(OUT, IN, 3, 3), dtype="fp16"),
        "output_pointer": Array(shape=(s.IMAGES, OUT, s.SIDE, s.SIDE), dtype="fp16", role="out"),
        "bias_pointer": Array(shape=(OUT,), dtype="fp16"),
        "in_n": s.IMAGES, "input_height": s.SIDE, "input_width": s.SIDE, "out_c": OUT, "out_height": s.SIDE,
        "out_width": s.SIDE, **convolution_strides("input", IN, s.SIDE), **convolution_strides("weight", IN, 3),
        **convolution_strides("output", OUT, s.SIDE),
    },
    constexprs={
        "weight_c": IN, "weight_height": 3, "weight_width": 3, "stride_height": 1, "stride_width": 1,
        "padding_height": 1, "padding_width": 1, "dilation_height": 1, "dilation_width": 1, "groups": 1,
    },
    grid=lambda s: (cdiv(s.IMAGES * s.SIDE * s.SIDE, s.BLOCK_NI_HO_WO), cdiv(OUT, s.BLOCK_CO), 1),
)  # fmt: skip

int8_mm = Kernel(
    "torchao.prototype.quantized_training.int8_mm:_scaled_int8_mm_kernel",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "A_ptr": Array(shape=(s.M, s.K), dtype="int8"),
        "B_ptr": Array(shape=(s.K, s.N), dtype="int8", strides=(1, s.K)),
        "C_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"),
        "row_scale_ptr": Array(shape=(s.M,), dtype="bf16"), "col_scale_ptr": Array(shape=(s.N,), dtype="bf16"),
        "M": s.M, "N": s.N, "K": s.K, "stride_am": s.K, "stride_ak": 1, "stride_bk": 1, "stride_bn": s.K,
        "stride_cm": s.N, "stride_cn": 1,
    },
    constexprs={"COL_SCALE_SCALAR": False},
    grid=lambda s: (cdiv(s.M, s.BLOCK_M) * cdiv(s.N, s.BLOCK_N),),
    tiles=lambda s: (cdiv(s.M, s.BLOCK_M), cdiv(s.N, s.BLOCK_N)),
    flops=lambda s: 2.0 * s.M * s.N * s.K,
)  # fmt: skip

fp8_mm = Kernel(
    "torchao.prototype.blockwise_fp8_training.kernels:triton_fp8_gemm_1x128_128x128_kernel",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "a_ptr": Array(shape=(s.M, s.K), dtype="fp8e4"), "a_stride_dim_0": s.K, "a_stride_dim_1": 1,
        "b_ptr": Array(shape=(s.K, s.N), dtype="fp8e4", strides=(1, s.K)), "b_stride_dim_0": 1,
        "b_stride_dim_1": s.K, "c_ptr": Array(shape=(s.M, s.N), dtype="bf16", role="out"), "c_stride_dim_0": s.N,
        "c_stride_dim_1": 1, "a_s_ptr": Array(shape=(s.M, s.K // 128), dtype="fp32", strides=(1, s.M)),
        "a_s_stride_dim_0": 1, "a_s_stride_dim_1": s.M,
        "b_s_ptr": Array(shape=(s.K // 128, s.N // 128), dtype="fp32", strides=(1, s.K // 128)),
        "b_s_stride_dim_0": 1, "b_s_stride_dim_1": s.K // 128, "M": s.M,
    },
    constexprs=lambda s: {"N": s.N, "K": s.K, "out_dtype": "tl.bfloat16", "BLOCK_SIZE_K": 128},
    grid=lambda s: (cdiv(s.M, s.BLOCK_SIZE_M), cdiv(s.N, s.BLOCK_SIZE_N)),
)  # fmt: skip

any_mm = Kernel(
    "torchao.prototype.common.triton.matmul:_kernel",
    sizes={"M": 2048, "N": 2048, "K": 1024},
    arguments=lambda s: {
        "A": Array(shape=(s.M, s.K), dtype="bf16"), "B": Array(shape=(s.K, s.N), dtype="bf16"),
        "C": Array(shape=(s.M, s.N), dtype="bf16", role="out"), "M": s.M, "N": s.N, "K": s.K,
        "stride_am": s.K, "stride_ak": 1, "stride_bk": s.N, "stride_bn": 1, "stride_cm": s.N, "stride_cn": 1,
    },
    constexprs={
        "acc_dtype": "tl.float32", "input_precision": None, "fp8_fast_accum": True, "AB_DTYPE": None, "GROUP_M": 8,
        "BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "SPLIT_K": 1,
    },
    grid=lambda s: (cdiv(s.M, 128) * cdiv(s.N, 128), 1),
    tiles=lambda s: (cdiv(s.M, 128), cdiv(s.N, 128)),
    num_warps=8,
    num_stages=3,
)  # fmt: skip
