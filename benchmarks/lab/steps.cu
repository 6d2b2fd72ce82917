// Clocks that a step of a pipelined product takes, by when its copies go out: what lab's `steps` compiles and runs.
//
// The loop is the one that Triton makes of a product in two stages: wait for the step's copies, multiply, issue the
// copies of the next step into the other buffer. Everything copied stays in the L2, operands are zeros.
// Prints CSV lines: tile (rows x columns x depth), what is done, workgroups an SM, clocks and nanoseconds a step: the
// median over workgroups of the mean of each (an SM slows down while it multiplies). What is done:
//
//     copies    nothing but the copies          before   copies go out before the products, into a third buffer
//     products  nothing but the products        beside   copies go out behind the products' instructions
//     each      as behind, and every product    behind   copies go out when the products are done
//               instruction waits for the last

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.cuh"
#include "product.cuh"

constexpr int kTurns = 4096, kWarm = 16;
constexpr uint32_t kWindow = 96 << 10;
enum What { kCopies, kProducts, kBefore, kBeside, kBehind, kEach };
const char* const kNames[] = {"copies", "products", "before", "beside", "behind", "each"};

template <int columns, int what>
__global__ void __launch_bounds__(kThreads) steps(const char* all, longlong2* took, float* unused) {
  extern __shared__ __align__(1024) char shared[];
  constexpr uint32_t kA = kRows * kDepth * 2, kB = columns * kDepth * 2, kStep = kA + kB;
  constexpr int kBuffers = what == kBefore ? 3 : 2;
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const char* mine = all + uint64_t(blockIdx.x) * kWindow;
  float d[columns / 2] = {};
  auto copy = [&](int turn) {
    const uint32_t place = turn % (kWindow / kStep) * kStep, slot = turn % kBuffers * kStep;
#pragma unroll
    for (uint32_t at = 0; at < kStep; at += kThreads * 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + slot + at + threadIdx.x * 16),
                   "l"(mine + place + at + threadIdx.x * 16)
                   : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  if (what != kProducts) copy(0);
  long long began = 0, began_ns = 0;
  for (int turn = 0; turn < kTurns + kWarm; ++turn) {
    if (turn == kWarm) began = clock64(), began_ns = nanoseconds();
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (what == kBefore) copy(turn + 1);
    if (what != kCopies) {
      const uint32_t a = to + turn % kBuffers * kStep + threadIdx.x / 128 * (kA / 2);
      const uint32_t b = to + turn % kBuffers * kStep + kA;
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int i = 0; i < kDepth / kInner; ++i) {
        multiply<columns>(d, descriptor(a + i * 32, 0), descriptor(b + i * 2048, 512));
        if (what == kEach) {
          asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
          asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        }
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      if (what == kBehind)
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      else
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    __syncthreads();
    if (what != kProducts && what != kBefore) copy(turn + 1);
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  if (threadIdx.x == 0) took[blockIdx.x] = make_longlong2(clock64() - began, nanoseconds() - began_ns);
  asm volatile("cp.async.wait_all;" ::: "memory");
  float all_of_it = 0;
  for (const float one : d) all_of_it += one;
  if (all_of_it != 0) *unused = all_of_it;  // zeros, which the compiler does not know
}

template <int columns, int what>
void measure(const char* from, longlong2* took, float* unused, int sms) {
  const int bytes = (what == kBefore ? 3 : 2) * (kRows + columns) * kDepth * 2;
  for (const int held : {1, 2}) {
    const int asked = std::max(bytes, held == 1 ? 116 << 10 : 78 << 10);  // keeps further workgroups from the SM
    if (held * asked > 227 << 10 || (held == 2 && columns == 256)) continue;  // by shared memory, by registers
    CHECK(cudaFuncSetAttribute(steps<columns, what>, cudaFuncAttributeMaxDynamicSharedMemorySize, asked));
    std::vector<longlong2> all(sms * held);
    for (int time = 0; time < 3; ++time) steps<columns, what><<<sms * held, kThreads, asked>>>(from, took, unused);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(all.data(), took, all.size() * sizeof(all[0]), cudaMemcpyDeviceToHost));
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end(),
                     [](longlong2 a, longlong2 b) { return a.y < b.y; });
    const longlong2 median = all[all.size() / 2];
    std::printf("%d x %d x %d,%s,%d,%.1f,%.1f\n", kRows, columns, kDepth, kNames[what], held,
                double(median.x) / kTurns, double(median.y) / kTurns);
  }
}

template <int columns>
void measure_all(const char* from, longlong2* took, float* unused, int sms) {
  measure<columns, kCopies>(from, took, unused, sms);
  measure<columns, kProducts>(from, took, unused, sms);
  measure<columns, kBefore>(from, took, unused, sms);
  measure<columns, kBeside>(from, took, unused, sms);
  measure<columns, kBehind>(from, took, unused, sms);
  measure<columns, kEach>(from, took, unused, sms);
}

int main() {
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, 0));
  char* from;
  longlong2* took;
  float* unused;
  CHECK(cudaMalloc(&from, 64 << 20));
  CHECK(cudaMemset(from, 0, 64 << 20));
  CHECK(cudaMalloc(&took, 4096 * sizeof(*took)));
  CHECK(cudaMalloc(&unused, sizeof(float)));
  std::printf("tile,what,workgroups_per_sm,clocks,ns\n");
  measure_all<128>(from, took, unused, card.multiProcessorCount);
  measure_all<256>(from, took, unused, card.multiProcessorCount);
}
