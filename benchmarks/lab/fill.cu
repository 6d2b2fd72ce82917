// How long a workgroup waits for a burst of 16-byte copies from the L2 or the L1 to shared memory: lab's `fill`.
//
//     burst ->  t0 | issue copies of all threads | wait for all of them | t1     time = latency + bytes / fill path
//
// Each SM in use goes round a window of memory of its own, so the whole stays in the L2; with `ca` the window is 32 KiB,
// which an L1 keeps. `ahead` bursts are issued before the oldest is waited for, as in a loop of so many stages.
// Prints CSV lines: instruction (cg: past the L1, ca: through it), SMs in use, workgroups an SM, threads, bursts ahead,
// bytes of a burst, and clocks a burst: the median over workgroups of the mean of each.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.cuh"

constexpr int kTurns = 256, kWarm = 16;
constexpr uint32_t kMost = 32 << 10;  // of a burst

template <bool kThroughL1>
__device__ void copy16(uint32_t to, const char* from) {
  if (kThroughL1)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

template <bool kThroughL1, int kAhead>
__global__ void fill(const char* all, uint32_t window, uint32_t burst, long long* clocks) {
  extern __shared__ char shared[];
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const char* mine = all + uint64_t(blockIdx.x) * window;
  auto issue = [&](int turn) {
    const uint32_t place = uint64_t(turn) * burst % window, slot = turn % (kAhead + 1) * burst;
    for (uint32_t at = threadIdx.x * 16; at < burst; at += blockDim.x * 16)
      copy16<kThroughL1>(to + slot + at, mine + place + at);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int turn = 0; turn < kAhead; ++turn) issue(turn);
  long long began = 0;
  for (int turn = 0; turn < kTurns + kWarm; ++turn) {
    if (turn == kWarm) began = clock64();
    issue(turn + kAhead);
    asm volatile("cp.async.wait_group %0;" ::"n"(kAhead) : "memory");
    __syncthreads();
  }
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - began;
  asm volatile("cp.async.wait_all;" ::: "memory");
}

template <bool kThroughL1, int kAhead>
void run(const char* from, long long* clocks, int sms) {
  const uint32_t bytes = (kAhead + 1) * kMost;
  CHECK(cudaFuncSetAttribute(fill<kThroughL1, kAhead>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  for (const int used : {1, sms})
    for (const int held : {1, 2})
      for (const int threads : {128, 256})
        for (uint32_t burst = 2048; burst <= kMost; burst *= 2) {
          const uint32_t window = kThroughL1 ? 32 << 10 : 64 << 10;
          const int grid = used * held;
          if (used == 1 && held == 2) continue;  // two workgroups would go to two SMs
          // shared memory keeps a third workgroup from an SM, and of one a second
          const uint32_t asked = held == 1 ? std::max<uint32_t>(bytes, 116 << 10) : std::max<uint32_t>(bytes, 78 << 10);
          CHECK(cudaFuncSetAttribute(fill<kThroughL1, kAhead>, cudaFuncAttributeMaxDynamicSharedMemorySize, asked));
          std::vector<long long> took(grid);
          for (int time = 0; time < 3; ++time) fill<kThroughL1, kAhead><<<grid, threads, asked>>>(from, window, burst, clocks);
          CHECK(cudaGetLastError());
          CHECK(cudaMemcpy(took.data(), clocks, grid * sizeof(long long), cudaMemcpyDeviceToHost));
          std::nth_element(took.begin(), took.begin() + grid / 2, took.end());
          std::printf("%s,%d,%d,%d,%d,%u,%.1f\n", kThroughL1 ? "ca" : "cg", used, held, threads, kAhead, burst,
                      double(took[grid / 2]) / kTurns);
        }
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
  run<false, 0>(from, clocks, card.multiProcessorCount);
  run<false, 1>(from, clocks, card.multiProcessorCount);
  run<true, 0>(from, clocks, card.multiProcessorCount);
  run<true, 1>(from, clocks, card.multiProcessorCount);
  return 0;
}
