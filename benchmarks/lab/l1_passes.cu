// Cycles that the L1 of an NVIDIA SM takes for one warp's load by where its lanes read: what lab's `l1-passes` compiles
// and runs.
//
// Lane `l` reads `bytes` bytes at  (l / lanes) * pitch + (l % lanes) * step + shift,  which all hit the L1 but the first
// time. One block of `kWarps` warps loads so again and again; prints CSV lines of cycles a load of one warp.

#include <cstdint>
#include <cstdio>

#include "check.cuh"

constexpr int kWarps = 16, kTurns = 64, kLoads = 8, kSpan = 1 << 20;

template <int kBytes>
__device__ __forceinline__ unsigned load(const char* from) {
  unsigned a, b = 0, c = 0, d = 0;
  if constexpr (kBytes == 2) {
    unsigned short small;
    asm volatile("ld.global.ca.u16 %0, [%1];" : "=h"(small) : "l"(from));
    a = small;
  } else if constexpr (kBytes == 4) {
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(a) : "l"(from));
  } else if constexpr (kBytes == 8) {
    asm volatile("ld.global.ca.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(from));
  } else {
    asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(from));
  }
  return a ^ b ^ c ^ d;
}

template <int kBytes>
__global__ void loads(const char* base, int lanes, int step, int pitch, int shift, long long* out) {
  int lane = threadIdx.x % 32;
  const char* from = base + lane / lanes * pitch + lane % lanes * step + shift;
  unsigned sum = load<kBytes>(from);
  __syncthreads();
  long long begin = clock64();
#pragma unroll 1
  for (int turn = 0; turn < kTurns; ++turn) {  // other lines each time: equal loads would be merged
    const char* here = from + turn % 2 * kLoads * 128;
    unsigned got[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) got[i] = load<kBytes>(here + i * 128);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) sum ^= got[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) out[0] = clock64() - begin;
  if (sum == 0x12345678) out[1] = sum;
}

template <int kBytes>
void measure(const char* data, long long* out) {
  for (int lanes : {1, 2, 4, 8, 16, 32}) {
    for (int step = kBytes; step <= 16; step = step < 16 ? 16 : 17) {
      if (lanes == 1 && step > kBytes) continue;  // the same
      for (int lines : {1, 2, 3, 4, 46, 64, 104, 142}) {
        for (int beyond : {0, 4, 8, 16, 32, 48, 64, 96}) {
          if (beyond % kBytes || (lanes == 32 && (lines > 1 || beyond))) continue;
          for (int shift : {0, 128 - kBytes}) {
            int pitch = lines * 128 + beyond;
            long long took[2];
            for (int again = 0; again < 2; ++again) {
              loads<kBytes><<<1, 32 * kWarps>>>(data, lanes, step, pitch, shift, out);
              CHECK(cudaGetLastError());
              CHECK(cudaMemcpy(took, out, sizeof(took), cudaMemcpyDeviceToHost));
            }
            std::printf("%d,%d,%d,%d,%d,%.2f\n", kBytes, lanes, step, pitch, shift,
                        double(took[0]) / (kWarps * kTurns * kLoads));
          }
        }
      }
    }
  }
}

int main() {
  char* data;
  long long* out;
  CHECK(cudaMalloc(&data, kSpan));
  CHECK(cudaMemset(data, 0, kSpan));
  CHECK(cudaMalloc(&out, 16));
  std::printf("bytes,lanes,step_bytes,pitch_bytes,shift_bytes,cycles\n");
  measure<2>(data, out);
  measure<4>(data, out);
  measure<8>(data, out);
  measure<16>(data, out);
}
