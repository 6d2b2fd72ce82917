// Kernels of a library as one finds them: headers that are not here, templates, host code that launches them.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <torch/extension.h>

#include <cstdio>

#include "library_of_the_host.h"

#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))

namespace tiles {

template <int SIDE>
__global__ void __launch_bounds__(SIDE * 8) transpose(const float *__restrict__ in, float *out, int rows, int cols) {
  __shared__ float tile[SIDE][SIDE + 1];
  int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
  for (int j = 0; j < SIDE; j += 8)
    if (x < cols && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
  __syncthreads();
  x = blockIdx.y * SIDE + threadIdx.x, y = blockIdx.x * SIDE + threadIdx.y;
  for (int j = 0; j < SIDE; j += 8)
    if (x < rows && y + j < cols) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

}  // namespace tiles

struct alignas(16) Eight { half item[8]; };

// A row of the output for each workgroup, the rows of the input by an index, sixteen bytes a lane.
__global__ void gather(Eight *out, const Eight *table, const int *index, const float *scale, int width) {
  namespace cg = cooperative_groups;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  extern __shared__ __align__(16) float partial[];
  int part = threadIdx.x < 8 ? index[blockIdx.x * 8 + threadIdx.x] : 0;
  int row = cg::reduce(warp, part, cg::plus<int>());  // all parts of it
  partial[threadIdx.x] = scale ? scale[row] : 1.0f;
  __syncthreads();
  Eight mine = table[row * width + threadIdx.x];
  for (int i = 0; i < 8; ++i) mine.item[i] = __float2half(__half2float(mine.item[i]) * partial[threadIdx.x ^ 1]);
  out[blockIdx.x * width + threadIdx.x] = mine;
}

__global__ void histogram(const float *values, int *counts) {
  int bin = (int)values[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&counts[bin], 1);
}

__global__ void past_its_end(const float *values, float *out) {
  out[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x + 1];
}

__global__ void in_assembly(const float *values, float *out) {
  float value, twice;
  asm("mul.f32 %0, %1, %1;" : "=f"(twice) : "f"(values[threadIdx.x]));
  out[threadIdx.x] = twice;
  if (threadIdx.x >= blockDim.x / 2) asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(values + threadIdx.x));
}

__global__ void on_tensor_cores(const half *values, float *out) {
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> a;
  out[0] = 1;
}

__global__ void curious(float *out) {  // a file, a socket, a process: none is there
  FILE *file = fopen("/etc/passwd", "r");
  out[file ? 1 : 0] = 1;
  out[system("true") == 0 ? 3 : 2] = 1;
}

void launch(const at::Tensor &in, at::Tensor &out) {
  TORCH_CHECK(in.is_cuda());
  dim3 grid(CEIL_DIV(in.size(1), 32), CEIL_DIV(in.size(0), 32)), block(32, 8);
  tiles::transpose<32><<<grid, block>>>(in.data_ptr<float>(), out.data_ptr<float>(), in.size(0), in.size(1));
}

TORCH_LIBRARY(tiles, m) { m.def("transpose", launch); }
