// L2 hits of lines that SMs read repeatedly: what lab's `l2` compiles and runs under Nsight Compute.
//
// Each pass reads a buffer, in pieces of 512 B, and stores beside it to places that are not read again; only the last
// pass of a kind is profiled. Prints CSV lines, one a kind: SMs that read each piece, whether the pieces come in the same
// order in every pass, and MiB that a pass reads and stores.

#include <cuda_profiler_api.h>

#include <cstdint>
#include <cstdio>

#include "check.cuh"

constexpr uint64_t kMiB = 1 << 20, kPiece = 512, kStored = uint64_t(4) << 30, kMost = 128 * kMiB;
constexpr int kThreads = 256, kPerSm = 4, kPasses = 9;

// Item i of a pass is a read or a store, spread evenly; items that follow each other are on different workgroups.
__global__ __launch_bounds__(kThreads) void pass(const uint4* from, uint64_t pieces, int readers, uint64_t step,
                                                 uint64_t shift, uint4* to, uint64_t first, uint64_t stores,
                                                 unsigned* unused) {
  const uint64_t waves = uint64_t(gridDim.x) * (blockDim.x / 32), lane = threadIdx.x % 32;
  const uint64_t reads = pieces * readers, total = reads + stores;
  unsigned sum = 0;
  for (uint64_t i = uint64_t(threadIdx.x / 32) * gridDim.x + blockIdx.x; i < total; i += waves) {
    const uint64_t before = i * reads / total;
    if ((i + 1) * reads / total > before) {
      const uint64_t piece = (before / readers * step + shift) % pieces;
      const uint4 value = __ldcg(from + piece * 32 + lane);
      sum ^= value.x ^ value.y ^ value.z ^ value.w;
    } else {
      const uint64_t place = (first + i - before) % (kStored / kPiece);
      __stcg(to + place * 32 + lane, make_uint4(1, 2, 3, lane));
    }
  }
  if (sum == 1) *unused = sum;
}

int main() {
  int sms;
  uint4 *from, *to;
  unsigned* unused;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaMalloc(&from, kMost));
  CHECK(cudaMalloc(&to, kStored));
  CHECK(cudaMalloc(&unused, sizeof(unsigned)));
  CHECK(cudaMemset(from, 0, kMost));
  std::printf("readers,order,read_mib,stored_mib\n");
  const uint64_t steps[] = {1000003, 7368787, 15485863, 32452843, 49979687, 67867967, 86028121, 104395301};  // primes
  uint64_t first = 0;
  auto kind = [&](int readers, bool same, int read, int stored) {
    const uint64_t pieces = read * kMiB / kPiece, stores = stored * kMiB / kPiece;
    for (int i = 0; i < kPasses; ++i) {
      CHECK(cudaDeviceSynchronize());
      if (i == kPasses - 1) CHECK(cudaProfilerStart());
      pass<<<sms * kPerSm, kThreads>>>(from, pieces, readers, same ? 1 : steps[i % 8], same ? 0 : 977 * i, to, first,
                                       stores, unused);
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());
      if (i == kPasses - 1) CHECK(cudaProfilerStop());
      first += stores;
    }
    std::printf("%d,%s,%d,%d\n", readers, same ? "same" : "drawn", read, stored);
  };
  for (int readers : {1, 8, sms}) {
    for (bool same : {true, false}) {
      for (int read : {8, 16, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 48, 52, 56, 64, 80, 96, 128}) {
        kind(readers, same, read, 0);
      }
      for (int read : {8, 16, 24}) {
        for (int stored : {2, 4, 8, 16, 32, 64}) kind(readers, same, read, stored);
      }
    }
  }
}
