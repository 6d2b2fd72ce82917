// Clocks that an SM takes for products whose operands lie in shared memory, while its threads store there.
//
//     step ->  wait for the barrier | issue products | store 16 bytes a thread, again and again | once more
//
// Nothing is read from outside the SM, and operands are zeros, so that power slows nothing down. As many workgroups as
// are asked for go round the loop on each SM. They begin together; one may go first, and the others end later.
// Prints CSV lines: columns of a product (of 64 rows, 16 deep), warpgroups of a workgroup, products of each of them a
// step, KiB that the workgroup stores a step, workgroups an SM, and clocks a step over the workgroups of an SM, by the
// workgroup that takes longest.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.cuh"
#include "product.cuh"

constexpr int kTurns = 2048, kMost = 4;
constexpr uint32_t kOperands = 48 << 10, kStored = 16 << 10;

template <int columns, int groups, int products, int kib>
__global__ void __launch_bounds__(groups * 128) step(long long* took, float* unused) {
  extern __shared__ __align__(1024) char shared[];
  const uint32_t a = static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + threadIdx.x / 128 * (8 << 10);
  const uint32_t b = static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + (16 << 10);
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + kOperands;
  for (uint32_t at = threadIdx.x * 4; at < kOperands; at += groups * 512) *reinterpret_cast<int*>(shared + at) = 0;
  float d[columns / 2] = {};
  __syncthreads();
  asm volatile("fence.proxy.async;" ::: "memory");
  const long long began = clock64();
  for (int turn = 0; turn < kTurns; ++turn) {
    __syncthreads();
    if constexpr (products > 0) {
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int i = 0; i < products; ++i)
        multiply<columns>(d, descriptor(a + i % 4 * 32, 0), descriptor(b + i % 4 * 2048, 512));
      asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    if constexpr (kib > 0) {
#pragma unroll
      for (uint32_t at = 0; at < kib << 10; at += groups * 2048)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to + (at + threadIdx.x * 16) % kStored), "r"(turn)
                     : "memory");
    }
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  if (threadIdx.x == 0) took[blockIdx.x] = clock64() - began;
  float all_of_it = 0;
  for (const float one : d) all_of_it += one;
  if (all_of_it != 0) *unused = all_of_it;  // zeros, which the compiler does not know
}

template <int columns, int groups, int products, int kib>
void measure(long long* took, float* unused, int sms) {
  const auto kernel = step<columns, groups, products, kib>;
  const int bytes = kOperands + kStored;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  for (int held = 1; held <= kMost; ++held) {
    const int asked = std::max<int>(bytes, (227 << 10) / held - (2 << 10));  // keeps further workgroups from the SM
    int fit;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kernel, groups * 128, asked));
    if (fit < held) continue;
    std::vector<long long> all(sms * held);
    for (int time = 0; time < 3; ++time) {
      kernel<<<sms * held, groups * 128, asked>>>(took, unused);
      CHECK(cudaGetLastError());
      CHECK(cudaMemcpy(all.data(), took, all.size() * sizeof(all[0]), cudaMemcpyDeviceToHost));
    }
    const long long longest = *std::max_element(all.begin(), all.end());
    std::printf("%d,%d,%d,%d,%d,%.1f\n", columns, groups, products, kib, held, double(longest) / kTurns / held);
  }
}

template <int columns, int groups, int products, int... kib>
void measure_all(long long* took, float* unused, int sms) {
  (measure<columns, groups, products, kib>(took, unused, sms), ...);
}

template <int columns, int groups>
void measure_products(long long* took, float* unused, int sms) {
  measure_all<columns, groups, 0, 16, 32, 48>(took, unused, sms);
  measure_all<columns, groups, 4, 0, 8, 16, 32, 48>(took, unused, sms);
  measure_all<columns, groups, 8, 0, 8, 16, 32, 48>(took, unused, sms);
}

int main() {
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, 0));
  long long* took;
  float* unused;
  CHECK(cudaMalloc(&took, 4096 * sizeof(*took)));
  CHECK(cudaMalloc(&unused, sizeof(float)));
  std::printf("columns,warpgroups,products,kib_stored,workgroups_per_sm,clocks\n");
  measure_products<64, 1>(took, unused, card.multiProcessorCount);
  measure_products<64, 2>(took, unused, card.multiProcessorCount);
  measure_products<128, 1>(took, unused, card.multiProcessorCount);
  measure_products<128, 2>(took, unused, card.multiProcessorCount);
  measure_products<256, 2>(took, unused, card.multiProcessorCount);
  return 0;
}
