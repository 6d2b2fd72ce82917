// Latencies and bandwidths of an NVIDIA GPU's memory levels, by reads alone: what lab's `latency` compiles and runs.
//
// Prints CSV lines: what, bytes of the buffer, workgroups that read the same address at one time, value, unit.
// Method: latency by one thread that follows pointers in a random ring, one a line of 128 bytes (Wong et al., ISPASS
// 2010); bandwidth by all SMs reading sixteen bytes a lane, past the L1 or through it.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "check.cuh"

constexpr int kLine = 128;
constexpr int kUnroll = 8;

__device__ unsigned long long now_ns() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__device__ unsigned sm() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

// out: ns and cycles of `steps` dependent loads on SM `wanted` from a place of the ring on, after as many unmeasured ones.
template <bool kThroughL1>
__global__ void follow(const uint64_t* ring, uint64_t at, unsigned wanted, long steps, unsigned long long* out) {
  if (sm() != wanted || atomicAdd(out + 3, 1ull)) return;
  for (int pass = 0; pass < 2; ++pass) {
    unsigned long long begin = now_ns();
    long long cycle = clock64();
    for (long i = 0; i < steps; ++i) at = kThroughL1 ? __ldca(ring + at) : __ldcg(ring + at);
    out[2] = at;
    out[1] = clock64() - cycle;
    out[0] = now_ns() - begin;
  }
}

// Every workgroup reads `rounds` pieces of blockDim * kUnroll items from a place of its group on, in a ring of mask + 1.
template <bool kThroughL1>
__global__ void sweep(const uint4* data, size_t mask, size_t skip, int together, int rounds, uint4* sink) {
  size_t at = (blockIdx.x / together) * skip + threadIdx.x;
  uint4 sum = {0, 0, 0, 0};
  for (int round = 0; round < rounds; ++round) {
    uint4 got[kUnroll];
    for (int i = 0; i < kUnroll; ++i, at += blockDim.x) {
      got[i] = kThroughL1 ? __ldca(data + (at & mask)) : __ldcg(data + (at & mask));
    }
    for (int i = 0; i < kUnroll; ++i) {
      sum.x ^= got[i].x, sum.y ^= got[i].y, sum.z ^= got[i].z, sum.w ^= got[i].w;
    }
  }
  if (sum.x == 0xdeadbeef && sum.y == 1 && sum.z == 2 && sum.w == 3) *sink = sum;
}

template <bool kThroughL1>
void latency(const char* what, size_t bytes, int n_sms) {
  size_t n = bytes / kLine, words = kLine / sizeof(uint64_t);
  std::vector<uint64_t> turn(n), ring(n * words, 0);
  std::iota(turn.begin(), turn.end(), 0);
  std::mt19937_64 draw(bytes);
  for (size_t i = n - 1; i > 0; --i) std::swap(turn[i], turn[draw() % (i + 1)]);
  for (size_t i = 0; i < n; ++i) ring[turn[i] * words] = turn[(i + 1) % n] * words;
  uint64_t* on_gpu;
  unsigned long long* out;
  CHECK(cudaMalloc(&on_gpu, bytes));
  CHECK(cudaMalloc(&out, 32));
  CHECK(cudaMemcpy(on_gpu, ring.data(), bytes, cudaMemcpyHostToDevice));
  long steps = n < 300000 ? long(n) : 300000;
  for (unsigned wanted = 0; wanted < unsigned(n_sms); wanted += 17) {
    CHECK(cudaMemset(out, 0, 32));
    follow<kThroughL1><<<4 * n_sms, 32>>>(on_gpu, turn[draw() % n] * words, wanted, steps, out);
    CHECK(cudaGetLastError());
    unsigned long long took[4];
    CHECK(cudaMemcpy(took, out, 32, cudaMemcpyDeviceToHost));
    if (took[3] == 0) continue;  // no workgroup came to this SM
    std::printf("%s,%zu,1,%.2f,ns\n", what, bytes, double(took[0]) / steps);
    std::printf("%s,%zu,1,%.2f,cycles\n", what, bytes, double(took[1]) / steps);
  }
  CHECK(cudaFree(on_gpu));
  CHECK(cudaFree(out));
}

template <bool kThroughL1>
void bandwidth(const char* what, size_t bytes, int together, int n_sms) {
  const int threads = 1024, blocks = n_sms, rounds = 2048;  // one workgroup an SM: what its own threads share is nothing
  size_t items = bytes / sizeof(uint4), piece = size_t(threads) * kUnroll;
  size_t groups = (blocks + together - 1) / together;
  size_t skip = items / groups / (kLine / sizeof(uint4)) * (kLine / sizeof(uint4));
  uint4 *data, *sink;
  CHECK(cudaMalloc(&data, bytes));
  CHECK(cudaMalloc(&sink, sizeof(uint4)));
  CHECK(cudaMemset(data, 1, bytes));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  for (int run = 0; run < 4; ++run) {
    CHECK(cudaEventRecord(begin));
    sweep<kThroughL1><<<blocks, threads>>>(data, items - 1, skip, together, rounds, sink);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    double read = double(blocks) * rounds * piece * sizeof(uint4);
    if (run) std::printf("%s,%zu,%d,%.1f,GB/s\n", what, bytes, together, read / ms / 1e6);
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFree(data));
  CHECK(cudaFree(sink));
}

int main() {
  cudaDeviceProp about;
  CHECK(cudaGetDeviceProperties(&about, 0));
  int n_sms = about.multiProcessorCount;
  std::printf("what,bytes,together,value,unit\n");
  latency<true>("latency through the L1", 16 << 10, n_sms);
  for (size_t mib : {1, 4, 16, 24, 32, 48, 256}) latency<false>("latency past the L1", mib << 20, n_sms);
  for (size_t mib : {4, 16, 32, 256}) {
    for (int together : {1, 2, 4, 8, 16, 66, 132}) bandwidth<false>("reads past the L1", mib << 20, together, n_sms);
  }
  bandwidth<false>("reads past the L1", size_t(8) << 30, 1, n_sms);
  bandwidth<true>("reads through the L1", 16 << 10, 132, n_sms);
}
