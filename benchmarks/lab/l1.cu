// What an NVIDIA SM's L1 holds next to shared memory, by reads alone: what lab's `l1` compiles and runs.
//
// Prints CSV lines: carve-out asked for (percent of the most shared memory), bytes between neighbours of the ring, lines
// or sectors in it, cycles a load.
// Method: one thread that follows pointers in a random ring, twice, the second time with a clock (Wong et al., ISPASS
// 2010). With `drawn` as its argument rings are of lines drawn from 8 MiB, and it prints carve-out, lines and cycles.
// With `launches` it only launches a kernel in many sizes, for a profiler to say what carve-out the driver chose.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "check.cuh"

constexpr int kLine = 128, kDrawnOf = 65536;

__global__ void follow(const uint64_t* ring, int steps, unsigned long long* out) {
  uint64_t at = 0;
  for (int pass = 0; pass < 2; ++pass) {
    long long cycle = clock64();
    for (int i = 0; i < steps; ++i) at = __ldca(ring + at);
    out[1] = at;
    out[0] = clock64() - cycle;
  }
}

// Cycles a load in a ring of `count` of `of` places, `stride` bytes apart: of all, or of the first and others drawn.
double cycles(uint64_t* on_gpu, unsigned long long* out, size_t stride, int count, int of) {
  std::vector<uint64_t> turn(of), ring(stride / sizeof(uint64_t) * of, 0);
  std::iota(turn.begin(), turn.end(), 0);
  std::mt19937_64 draw(stride + count);
  for (int i = of - 1; i > 1; --i) std::swap(turn[i], turn[1 + draw() % i]);
  for (int i = 0; i < count; ++i) {
    ring[turn[i] * (stride / sizeof(uint64_t))] = turn[(i + 1) % count] * (stride / sizeof(uint64_t));
  }
  CHECK(cudaMemcpy(on_gpu, ring.data(), ring.size() * sizeof(uint64_t), cudaMemcpyHostToDevice));
  follow<<<1, 1>>>(on_gpu, count, out);
  CHECK(cudaGetLastError());
  unsigned long long took[2];
  CHECK(cudaMemcpy(took, out, sizeof(took), cudaMemcpyDeviceToHost));
  return double(took[0]) / count;
}

void capacities() {
  uint64_t* on_gpu;
  unsigned long long* out;
  CHECK(cudaMalloc(&on_gpu, size_t(256) << 20));
  CHECK(cudaMalloc(&out, 16));
  std::printf("carve_out_pct,stride_bytes,places,cycles\n");
  for (int percent : {0, 5, 10, 20, 40, 50, 60, 75, 100}) {
    CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributePreferredSharedMemoryCarveout, percent));
    for (int lines = 32; lines <= 2048; lines += 32) {
      std::printf("%d,%d,%d,%.2f\n", percent, kLine, lines, cycles(on_gpu, out, kLine, lines, lines));
    }
  }
  CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributePreferredSharedMemoryCarveout, 0));
  for (size_t stride = 32; stride <= 65536; stride *= 2) {
    if (stride == kLine) continue;
    for (int places = stride < kLine ? 512 : 64; places <= (stride < kLine ? 8192 : 2048);
         places += stride < kLine ? 512 : 64) {
      std::printf("%d,%zu,%d,%.2f\n", 0, stride, places, cycles(on_gpu, out, stride, places, places));
    }
  }
}

void drawn() {
  uint64_t* on_gpu;
  unsigned long long* out;
  CHECK(cudaMalloc(&on_gpu, size_t(kDrawnOf) * kLine));
  CHECK(cudaMalloc(&out, 16));
  std::printf("carve_out_pct,lines,cycles\n");
  for (int percent : {0, 20, 50, 75}) {
    CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributePreferredSharedMemoryCarveout, percent));
    for (int lines = 64; lines <= 2048; lines += 64) {
      std::printf("%d,%d,%.2f\n", percent, lines, cycles(on_gpu, out, kLine, lines, kDrawnOf));
    }
  }
}

// About N registers a thread, all of them in use at once.
template <int N>
__global__ void hold(const float* from, float* to) {
  float held[N];
#pragma unroll
  for (int i = 0; i < N; ++i) held[i] = from[i * 37 + threadIdx.x];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum = sum * held[N - 1 - i] + held[i];
  if (sum == 12345.678f) *to = sum;
}

template <int N>
void launch_all(const float* from, float* to) {
  CHECK(cudaFuncSetAttribute(hold<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
  for (int threads : {32, 64, 128, 256, 512, 1024}) {
    if (threads * N > 60000) continue;
    for (int kib : {0, 1, 2, 4, 7, 10, 16, 24, 32, 48, 64, 96, 128, 160, 200, 227}) {
      hold<N><<<132, threads, kib << 10>>>(from, to);
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());
    }
  }
}

int main(int count, char** words) {
  if (count > 1 && !std::strcmp(words[1], "launches")) {
    float *from, *to;
    CHECK(cudaMalloc(&from, 1 << 20));
    CHECK(cudaMalloc(&to, 4));
    launch_all<8>(from, to);
    launch_all<80>(from, to);
    launch_all<180>(from, to);
    return 0;
  }
  if (count > 1 && !std::strcmp(words[1], "drawn")) {
    drawn();
  } else {
    capacities();
  }
}
