// Nanoseconds that a step of a product takes, by where its operands come from: what lab's `operands` compiles and runs.
//
// One workgroup on each SM goes through 8 tiles of 128 x 256, one after the other, in steps of 64 of a depth of 9216, as
// GEMM of 7680 x 5120 x 9216 does: wait for the step's copies, multiply, issue the copies of the next step. Operands
// are zeros. Prints CSV lines: whether it multiplies, the order of the tiles, which operand's copies go out first, which
// operands come from memory (the others stay in the L2), whether a step of a tile of A lies in rows 18 KiB apart or in
// one piece, nanoseconds a step (median over workgroups, of five launches).

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.cuh"
#include "product.cuh"

constexpr int kColumns = 256, kSteps = 144, kTiles = 8, kResident = 4, kSms = 132, kTimes = 5;
constexpr int kRowTiles = 60, kColumnTiles = 20;
constexpr uint32_t kA = kRows * kDepth * 2, kB = kColumns * kDepth * 2, kStep = kA + kB;
constexpr long kPitchA = kSteps * kDepth * 2, kPitchB = kColumnTiles * kColumns * 2;
constexpr long kWholeA = kRowTiles * kRows * kPitchA, kWholeB = kSteps * kDepth * kPitchB;

// Where a tile's step of an operand is: of which of the matrices behind each other, and how deep.
struct Place {
  int matrix = 0, depth = 0;
  __device__ void next(bool from_memory) {
    if (++depth == (from_memory ? kSteps : kResident)) depth = 0, matrix += from_memory;
  }
};

struct Setup {
  int high, wide;  // tiles of the grid that the workgroups are on
  bool down, b_first, a_from_memory, b_from_memory, in_one_piece;
};

template <bool products>
__global__ void __launch_bounds__(kThreads) operands(const char* a, const char* b, long long* took, float* unused, Setup at) {
  extern __shared__ __align__(1024) char shared[];
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared)), thread = threadIdx.x;
  const long row = at.down ? blockIdx.x % at.high : blockIdx.x / at.wide;
  const long column = at.down ? blockIdx.x / at.high : blockIdx.x % at.wide;
  Place in_a, in_b;
  float d[kColumns / 2] = {};
  auto copy_a = [&](uint32_t slot) {
    const long first = at.in_one_piece ? (row * kSteps + in_a.depth) * kA : row * kRows * kPitchA + in_a.depth * 128;
    const char* mine = a + in_a.matrix * kWholeA + first + thread % 8 * 16;
#pragma unroll
    for (uint32_t i = 0; i < kA; i += kThreads * 16) {
      const uint32_t line = i / 128 + thread / 8;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + slot + i + thread * 16),
                   "l"(mine + line * (at.in_one_piece ? 128 : kPitchA))
                   : "memory");
    }
  };
  auto copy_b = [&](uint32_t slot) {
    const char* mine = b + in_b.matrix * kWholeB + in_b.depth * kDepth * kPitchB + column * kColumns * 2 + thread % 32 * 16;
#pragma unroll
    for (uint32_t i = 0; i < kB; i += kThreads * 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + slot + kA + i + thread * 16),
                   "l"(mine + (i / 512 + thread / 32) * kPitchB)
                   : "memory");
  };
  auto copy = [&](uint32_t slot) {
    if (at.b_first) copy_b(slot);
    copy_a(slot);
    if (!at.b_first) copy_b(slot);
    asm volatile("cp.async.commit_group;" ::: "memory");
    in_a.next(at.a_from_memory), in_b.next(at.b_from_memory);
  };
  copy(0);
  const long long began = nanoseconds();
  for (uint32_t turn = 0; turn < kTiles * kSteps; ++turn) {
    const uint32_t slot = turn % 2 * kStep;
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (products) {
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int i = 0; i < kDepth / kInner; ++i)
        multiply<kColumns>(d, descriptor(to + slot + thread / 128 * (kA / 2) + i * 32, 0),
                           descriptor(to + slot + kA + i * 2048, 512));
      asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    __syncthreads();
    copy(kStep - slot);
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  if (thread == 0) took[blockIdx.x] = nanoseconds() - began;
  asm volatile("cp.async.wait_all;" ::: "memory");
  float all_of_it = 0;
  for (const float one : d) all_of_it += one;
  if (all_of_it != 0) *unused = all_of_it;  // zeros, which the compiler does not know
}

template <bool products>
double measured(const char* a, const char* b, long long* took, float* unused, Setup at) {
  const int asked = 116 << 10;  // keeps a second workgroup from the SM
  CHECK(cudaFuncSetAttribute(operands<products>, cudaFuncAttributeMaxDynamicSharedMemorySize, asked));
  std::vector<double> found;
  std::vector<long long> all(kSms);
  for (int time = 0; time < kTimes; ++time) {
    operands<products><<<kSms, kThreads, asked>>>(a, b, took, unused, at);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(all.data(), took, all.size() * sizeof(all[0]), cudaMemcpyDeviceToHost));
    std::nth_element(all.begin(), all.begin() + kSms / 2, all.end());
    found.push_back(double(all[kSms / 2]) / (kTiles * kSteps));
  }
  std::nth_element(found.begin(), found.begin() + kTimes / 2, found.end());
  return found[kTimes / 2];
}

int main() {
  char *a, *b;
  long long* took;
  float* unused;
  CHECK(cudaMalloc(&a, kWholeA * (kTiles + 1)));
  CHECK(cudaMemset(a, 0, kWholeA * (kTiles + 1)));
  CHECK(cudaMalloc(&b, kWholeB * (kTiles + 1)));
  CHECK(cudaMemset(b, 0, kWholeB * (kTiles + 1)));
  CHECK(cudaMalloc(&took, kSms * sizeof(*took)));
  CHECK(cudaMalloc(&unused, sizeof(float)));
  const struct {
    const char* name;
    int high, wide;
    bool down;
  } orders[] = {{"row", 7, 20, false}, {"column", 60, 3, true}, {"group_m(size=8)", 8, 17, true}};
  std::printf("products,order,first,from_memory,a_lies_in,ns\n");
  const char* const sources[] = {"none", "A", "B", "both"};
  for (const bool products : {false, true})
    for (const auto& order : orders)
      for (const bool b_first : {false, true})
        for (int source = 0; source < 4; ++source)
          for (const bool in_one_piece : {false, true}) {
            const Setup at{order.high, order.wide, order.down, b_first, bool(source & 1), bool(source & 2), in_one_piece};
            const double ns = (products ? measured<true> : measured<false>)(a, b, took, unused, at);
            std::printf("%d,%s,%s,%s,%s,%.1f\n", products, order.name, b_first ? "B" : "A", sources[source],
                        in_one_piece ? "one piece" : "rows", ns);
          }
}
