// Bytes a clock that SMs take in from the L2 while so many of a GPC read the same: what lab's `meeting` compiles and runs.
//
// Clusters of eight workgroups, one on each SM, which lie on one GPC. Each workgroup copies a window of lines round and
// round, one burst under way while the next is asked for, all of it in the L2; so many of a cluster copy the same window,
// and begin each burst together or not. Prints CSV lines, one a launch: readers of a window, whether they begin together,
// bytes of a burst, SMs, clocks of a burst and nanoseconds, the median over workgroups of the mean of each, and bytes that
// all of them asked for.

#include <algorithm>
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.cuh"

constexpr int kThreads = 512, kCluster = 8, kTurns = 4096, kWarm = 16, kWindow = 128 << 10;

__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

template <int burst, bool together>
__global__ void __launch_bounds__(kThreads) meet(const char* all, int readers, longlong2* took) {
  extern __shared__ __align__(128) char shared[];
  auto cluster = cooperative_groups::this_cluster();
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const uint64_t stream = (blockIdx.x / kCluster) * kCluster + cluster.block_rank() / readers;
  const char* mine = all + stream * uint64_t(kWindow);
  auto copy = [&](int turn) {
#pragma unroll
    for (uint32_t at = 0; at < burst; at += kThreads * 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + turn % 2 * burst + at + threadIdx.x * 16),
                   "l"(mine + uint64_t(turn % (kWindow / burst)) * burst + at + threadIdx.x * 16)
                   : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  copy(0);
  long long began = 0, began_ns = 0;
  for (int turn = 1; turn < kTurns + kWarm; ++turn) {
    if (turn == kWarm) began = clock64(), began_ns = nanoseconds();
    if (together) cluster.sync();
    copy(turn);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
  }
  if (threadIdx.x == 0) took[blockIdx.x] = make_longlong2(clock64() - began, nanoseconds() - began_ns);
  asm volatile("cp.async.wait_all;" ::: "memory");
  cluster.sync();
}

template <int burst, bool together>
void measure(const char* from, longlong2* took) {
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute shape;
  shape.id = cudaLaunchAttributeClusterDimension;
  shape.val.clusterDim.x = kCluster, shape.val.clusterDim.y = 1, shape.val.clusterDim.z = 1;
  config.attrs = &shape, config.numAttrs = 1;
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = std::max(2 * burst, 120 << 10);  // keeps a second workgroup from the SM
  CHECK(cudaFuncSetAttribute(meet<burst, together>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             int(config.dynamicSmemBytes)));
  int clusters;
  config.gridDim = dim3(kCluster);
  CHECK(cudaOccupancyMaxActiveClusters(&clusters, meet<burst, together>, &config));
  config.gridDim = dim3(clusters * kCluster);
  for (int readers : {1, 2, 4, 8}) {
    std::vector<longlong2> each(clusters * kCluster);
    CHECK(cudaLaunchKernelEx(&config, meet<burst, together>, from, readers, took));
    CHECK(cudaMemcpy(each.data(), took, each.size() * sizeof(each[0]), cudaMemcpyDeviceToHost));
    std::nth_element(each.begin(), each.begin() + each.size() / 2, each.end(),
                     [](longlong2 a, longlong2 b) { return a.y < b.y; });
    const longlong2 median = each[each.size() / 2];
    std::printf("%d,%d,%d,%d,%.1f,%.1f,%lld\n", readers, int(together), burst, clusters * kCluster,
                double(median.x) / kTurns, double(median.y) / kTurns,
                (long long)(clusters * kCluster) * burst * (kTurns + kWarm));
  }
}

int main() {
  char* from;
  longlong2* took;
  CHECK(cudaMalloc(&from, 64 << 20));
  CHECK(cudaMemset(from, 0, 64 << 20));
  CHECK(cudaMalloc(&took, 1024 * sizeof(*took)));
  std::printf("readers,together,burst,sms,clocks,ns,bytes\n");
  measure<16384, false>(from, took);
  measure<16384, true>(from, took);
  measure<65536, false>(from, took);
  measure<65536, true>(from, took);
}
