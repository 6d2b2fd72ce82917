// How long a workgroup waits for a burst of 16-byte copies from the L2 or the L1 to shared memory: lab's `fill`.
//
//     burst ->  t0 | issue copies of all threads | wait for all of them | t1     time = latency + bytes / fill path
//
// Each workgroup goes round a window of memory of its own, so the whole stays in the L2; with `ca` it is one burst, which an
// L1 keeps. `ahead` bursts are issued before the oldest is waited for, as in a loop of so many stages.
// Prints CSV lines: instruction (cg: past the L1, ca: through it), SMs in use, workgroups an SM, threads, bursts ahead,
// bytes of a burst, and clocks a burst: the median over workgroups of the mean of each.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.cuh"

constexpr int kTurns = 256, kWarm = 16;
constexpr uint32_t kMost = 48 << 10;  // of a burst

template <bool kThroughL1>
__device__ void copy16(uint32_t to, const char* from) {
  if (kThroughL1)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Addresses are known ahead, so that what is timed is copies and not their arithmetic.
template <bool kThroughL1, int kAhead, uint32_t kBurst, int kThreads>
__global__ void __launch_bounds__(kThreads) fill(const char* all, uint32_t window, long long* clocks) {
  extern __shared__ char shared[];
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared)) + threadIdx.x * 16;
  const char* mine = all + uint64_t(blockIdx.x) * window + threadIdx.x * 16;
  uint32_t place = 0, slot = 0;
  auto issue = [&] {
#pragma unroll
    for (uint32_t at = 0; at < kBurst; at += kThreads * 16) copy16<kThroughL1>(to + slot + at, mine + place + at);
    asm volatile("cp.async.commit_group;" ::: "memory");
    place = place + kBurst < window ? place + kBurst : 0;
    slot = slot == kAhead * kBurst ? 0 : slot + kBurst;
  };
  for (int turn = 0; turn < kAhead; ++turn) issue();
  long long began = 0;
  for (int turn = 0; turn < kTurns + kWarm; ++turn) {
    if (turn == kWarm) began = clock64();
    issue();
    asm volatile("cp.async.wait_group %0;" ::"n"(kAhead) : "memory");
    __syncthreads();
  }
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - began;
  asm volatile("cp.async.wait_all;" ::: "memory");
}

template <bool kThroughL1, int kAhead, uint32_t kBurst, int kThreads>
void run(const char* from, long long* clocks, int sms) {
  const auto kernel = fill<kThroughL1, kAhead, kBurst, kThreads>;
  const uint32_t bytes = (kAhead + 1) * kBurst, turns = kThroughL1 ? 1 : std::max<uint32_t>(2, (64 << 10) / kBurst);
  for (const int used : {1, sms})
    for (const int held : {1, 2}) {
      if (used == 1 && held == 2) continue;  // two workgroups would go to two SMs
      const int grid = used * held;
      // shared memory keeps a third workgroup from an SM, and of one a second
      const uint32_t asked = std::max<uint32_t>(bytes, held == 1 ? 116 << 10 : 78 << 10);
      CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, asked));
      std::vector<long long> took(grid);
      for (int time = 0; time < 3; ++time) kernel<<<grid, kThreads, asked>>>(from, turns * kBurst, clocks);
      CHECK(cudaGetLastError());
      CHECK(cudaMemcpy(took.data(), clocks, grid * sizeof(long long), cudaMemcpyDeviceToHost));
      std::nth_element(took.begin(), took.begin() + grid / 2, took.end());
      std::printf("%s,%d,%d,%d,%d,%u,%.1f\n", kThroughL1 ? "ca" : "cg", used, held, kThreads, kAhead, kBurst,
                  double(took[grid / 2]) / kTurns);
    }
}

template <bool kThroughL1, int kAhead, int kThreads, uint32_t... kBursts>
void run_all(const char* from, long long* clocks, int sms) {
  (run<kThroughL1, kAhead, kBursts, kThreads>(from, clocks, sms), ...);
}

template <bool kThroughL1, int kAhead>
void run_both(const char* from, long long* clocks, int sms) {
  run_all<kThroughL1, kAhead, 128, 2048, 4096, 8192, 16384, 32768>(from, clocks, sms);
  run_all<kThroughL1, kAhead, 256, 4096, 8192, 16384, 32768, kMost>(from, clocks, sms);
}

int main() {
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, 0));
  char* from;
  long long* clocks;
  CHECK(cudaMalloc(&from, 64 << 20));
  CHECK(cudaMemset(from, 0, 64 << 20));
  CHECK(cudaMalloc(&clocks, 4096 * sizeof(long long)));
  std::printf("copies,sms,workgroups_per_sm,threads,ahead,burst_bytes,clocks\n");
  run_both<false, 0>(from, clocks, card.multiProcessorCount);
  run_both<false, 1>(from, clocks, card.multiProcessorCount);
  run_both<true, 0>(from, clocks, card.multiProcessorCount);
  run_both<true, 1>(from, clocks, card.multiProcessorCount);
  return 0;
}
