"""Listings of SwizzlePerf, arXiv 2508.20258, sections A.3 and A.4, letter by letter as printed."""

FIGURE_6 = """
pid_m = tl.program_id(0)
num_xcds = 8
num_blocks = M

blocks_per_xcd = (num_blocks + num_xcds - 1) // num_xcds
xcd_id = (pid_m // num_xcds) % num_xcds

local_block_id = pid_m % num_xcds
offset = (local_block_id // num_xcds) * num_xcds + xcd_id

pid = offset * blocks_per_xcd + local_block_id
"""
FIGURE_7 = """
num_xcds = 8
num_blocks = tl.num_programs(0)

pid = tl.program_id(0)

blocks_per_xcd = (num_blocks + num_xcds - 1) // num_xcds
xcd_id = (pid // num_xcds) % num_xcds
block_in_xcd = pid % num_xcds
new_pid = xcd_id * blocks_per_xcd + block_in_xcd
pid = new_pid
"""
FIGURE_8 = """
pid_x = tl.program_id(0)
pid_y = tl.program_id(1)

num_XCD = 8
num_blocks_x = (Nx + BLOCK_SIZE_X - 1) // BLOCK_SIZE_X
num_blocks_y = (Ny + BLOCK_SIZE_Y - 1) // BLOCK_SIZE_Y
num_blocks = num_blocks_x * num_blocks_y

# Calculate new block index using a different swizzling pattern
block_id = pid_y * num_blocks_x + pid_x
xcd_id = (block_id // num_blocks_x) % num_XCD
new_block_id = (block_id % num_blocks_x) * num_XCD + xcd_id

# Map new block id back to 2D grid
pid_x = new_block_id // num_blocks_x
pid_y = new_block_id % num_blocks_x
"""
FIGURE_9 = """
pid_m = tl.program_id(0)
pid_n = tl.program_id(1)

num_blocks_m = (M + BLOCK_SIZE_M - 1) // BLOCK_SIZE_M
num_blocks_n = (N + BLOCK_SIZE_N - 1) // BLOCK_SIZE_N
total_blocks = num_blocks_m * num_blocks_n

block_id = pid_m * num_blocks_n + pid_n
xcd_id = (block_id // num_blocks_m) % 8
round_id = block_id // (8 * num_blocks_m)
new_block_id = round_id * 8 + xcd_id

pid_m = new_block_id // num_blocks_n
pid_n = new_block_id % num_blocks_n
"""
# The formula is wrapped without a bracket in print.
FIGURE_10 = """
num_xcds = 8
pid_m = tl.program_id(0)
pid_n = tl.program_id(1)

pid = pid_m * (N // BLOCK_SIZE_N) + pid_n
xcd_idx = (pid // num_xcds) % num_xcds
pid = xcd_idx * (N // BLOCK_SIZE_N) * (M // BLOCK_SIZE_M) // num_xcds + pid //
    num_xcds

pid_m = pid // (N // BLOCK_SIZE_N)
pid_n = pid % (N // BLOCK_SIZE_N)
"""
FIGURE_11 = """
pid_m = tl.program_id(0)
pid_n = tl.program_id(1)

num_xcds = 8
num_blocks_m = (M + BLOCK_SIZE_M - 1) // BLOCK_SIZE_M
num_blocks_n = (N + BLOCK_SIZE_N - 1) // BLOCK_SIZE_N
total_blocks = num_blocks_m * num_blocks_n

original_block_index = pid_m * num_blocks_n + pid_n

xcd_id = original_block_index % num_xcds
round_id = original_block_index // num_xcds
new_block_index = round_id + xcd_id * (total_blocks // num_xcds)

pid_m = new_block_index // num_blocks_n
pid_n = new_block_index % num_blocks_n
"""
FIGURE_12 = """
pid = tl.program_id(0)

# Swizzle the program IDs to improve cache locality
pid_m = pid // (N // BLOCK_SIZE_N)
pid_n = pid % (N // BLOCK_SIZE_N)
"""
FIGURE_13 = """
pid = tl.program_id(0)

# Swizzle the pid to improve cache locality
pid = ((pid >> 1) & 0x55555555) | ((pid & 0x55555555) << 1)
"""

LISTINGS = {
    6: FIGURE_6,
    7: FIGURE_7,
    8: FIGURE_8,
    9: FIGURE_9,
    10: FIGURE_10,
    11: FIGURE_11,
    12: FIGURE_12,
    13: FIGURE_13,
}
