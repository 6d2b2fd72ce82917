// Cycles from one instruction to the next that needs its result, in a wave with nothing beside it: what lab's
// `instructions` compiles and runs.
//
// Prints CSV lines: instruction, and cycles each. Barriers and fences are of a workgroup of four waves.

#include <cstdint>
#include <cstdio>

#include "check.cuh"

constexpr int kTurns = 64, kEach = 64;

enum Kind { kShuffle, kExp2, kConvert, kShared, kMatrix, kLocal, kProduct, kBarrier, kFence, kKinds };
const char* kNames[] = {"shuffle", "exp2", "convert", "shared", "matrix", "local", "product", "barrier", "fence"};

template <int kind>
__global__ void chain(long long* cycles, uint32_t* sink) {
  __shared__ __align__(16) uint32_t words[1024];
  volatile uint32_t own[32];
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(words));
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = base;
  for (int i = 0; i < 32; ++i) own[i] = i & (sink == nullptr);  // zeros that the compiler does not know
  __syncthreads();
  uint32_t x = kind == kLocal ? own[threadIdx.x & 31] : kind == kShuffle ? clock() * (threadIdx.x + 1) : base;
  float f = clock() * 1e-9f, c0 = 0.f, c1 = 0.f, c2 = 0.f, c3 = 0.f;
  const long long begin = clock64();
  __syncthreads();  // the compiler moves no instruction across it, nor past the clock
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (kind == kShuffle) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x));
      if (kind == kExp2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(f));
      if (kind == kConvert) asm volatile("{ .reg .s32 t; cvt.rni.s32.f32 t, %0; mov.b32 %0, t; }" : "+f"(f));
      if (kind == kShared) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(x));
      if (kind == kMatrix) asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%0];" : "+r"(x));
      if (kind == kLocal) x = own[x];
      if (kind == kProduct)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
            "{%0, %1, %2, %3};"
            : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
            : "r"(0));
      if (kind == kBarrier) asm volatile("bar.sync 0;" ::: "memory");
      if (kind == kFence) {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + 4 * threadIdx.x), "r"(base) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      }
    }
  }
  sink[threadIdx.x] = x ^ __float_as_uint(f + c0 + c1 + c2 + c3);  // all of it is needed, and before the end
  __syncthreads();
  const long long end = clock64();
  if (threadIdx.x == 0) *cycles = end - begin;
}

template <int kind>
void all(long long* cycles, uint32_t* sink) {
  const int threads = kind == kBarrier || kind == kFence ? 128 : 32;
  for (int run = 0; run < 2; ++run) chain<kind><<<1, threads>>>(cycles, sink);  // the first fetches the code
  CHECK(cudaDeviceSynchronize());
  long long taken;
  CHECK(cudaMemcpy(&taken, cycles, sizeof taken, cudaMemcpyDeviceToHost));
  std::printf("%s,%.2f\n", kNames[kind], static_cast<double>(taken) / (kTurns * kEach));
  if constexpr (kind + 1 < kKinds) all<kind + 1>(cycles, sink);
}

int main() {
  long long* cycles;
  uint32_t* sink;
  CHECK(cudaMalloc(&cycles, sizeof *cycles));
  CHECK(cudaMalloc(&sink, 128 * sizeof *sink));
  std::printf("instruction,cycles\n");
  all<0>(cycles, sink);
}
