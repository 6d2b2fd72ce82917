// Sectors that reach the L2 when several SMs read the same lines at the same time: what lab's `coalescer` compiles and
// runs under Nsight Compute.
//
// One workgroup on each SM. In each round the SMs that take part wait for each other, some of them a while longer, and
// read the same 32 KiB, which lie in the L2 and are not read again for 64 rounds. Prints CSV lines, one a launch: which
// SMs take part (a pair, the first so many, or all), how many, and how many cycles those of odd number come late.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.cuh"

constexpr int kThreads = 256, kEach = 8, kRounds = 256, kChunks = 64;
constexpr size_t kChunk = size_t(kThreads) * kEach * sizeof(uint4);

__device__ unsigned arrived;

__global__ __launch_bounds__(kThreads) void together(const uint4* from, const int* place, unsigned members, long long late,
                                                     unsigned* unused) {
  extern __shared__ char taken[];
  unsigned sm, sum = threadIdx.x == 2048 ? taken[0] : 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const int mine = place[sm];
  if (mine < 0) return;
  for (unsigned round = 0; round < kRounds; ++round) {
    if (threadIdx.x == 0) {
      atomicAdd(&arrived, 1u);
      while (*reinterpret_cast<volatile unsigned*>(&arrived) < (round + 1) * members) {
      }
    }
    __syncthreads();
    if (mine & 1) {
      const long long began = clock64();
      while (clock64() - began < late) {
      }
    }
    const uint4* chunk = from + round % kChunks * (kThreads * kEach) + threadIdx.x;
    uint4 value[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(value[i].x), "=r"(value[i].y), "=r"(value[i].z), "=r"(value[i].w)
                   : "l"(chunk + i * kThreads));
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum ^= value[i].x ^ value[i].y ^ value[i].z ^ value[i].w;
  }
  if (sum == 1) *unused = sum;
}

int main(int, char** arguments) {
  int sms;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  uint4* from;
  int* place;
  unsigned* unused;
  void* counter;
  CHECK(cudaMalloc(&from, kChunk * kChunks));
  CHECK(cudaMemset(from, 0, kChunk * kChunks));
  CHECK(cudaMalloc(&place, 1024 * sizeof(int)));
  CHECK(cudaMalloc(&unused, sizeof(unsigned)));
  CHECK(cudaGetSymbolAddress(&counter, arrived));
  const int asked = 116 << 10;  // keeps a second workgroup from the SM
  CHECK(cudaFuncSetAttribute(together, cudaFuncAttributeMaxDynamicSharedMemorySize, asked));
  auto launch = [&](const char* kind, const std::vector<int>& members, long long late) {
    std::vector<int> places(1024, -1);
    for (size_t i = 0; i < members.size(); ++i) places[members[i]] = static_cast<int>(i);
    CHECK(cudaMemcpy(place, places.data(), places.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(counter, 0, sizeof(unsigned)));
    together<<<sms, kThreads, asked>>>(from, place, static_cast<unsigned>(members.size()), late, unused);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::printf("%s,%d,%zu,%lld,%zu\n", kind, members.back(), members.size(), late, members.size() * kRounds * kChunk);
  };
  std::printf("kind,last,members,late,bytes\n");
  auto first = [&](int n, int step) {
    std::vector<int> found;
    for (int sm = 0; sm < n * step && sm < sms; sm += step) found.push_back(sm);
    return found;
  };
  for (int other = 1; other < sms; ++other) launch("pair", {0, other}, 0);
  for (int n : {1, 2, 3, 4, 6, 8, 12, 16, 18, 24, 32, 48, 64, 96, 132}) launch("first", first(n, 1), 0);
  for (int n : {2, 4, 8, 16, 32, 66}) launch("even", first(n, 2), 0);
  for (long long late : {50, 100, 200, 300, 400, 600, 800, 1200, 1600, 3200}) launch("first", first(132, 1), late);
  for (long long late : {50, 100, 200, 300, 400, 600, 800, 1200, 1600, 3200}) launch("pair", {0, 1}, late);
}
