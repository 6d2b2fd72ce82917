// How long a read takes while all SMs load memory, and how soon a workgroup follows another: what lab's `waits`
// compiles and runs. Needs a GPU with 6 GiB of memory.
//
// Prints CSV lines: loads and stores of 512 B that a wave does in one go, bytes that lie together, cycles it then pauses,
// bytes moved a nanosecond, and nanoseconds that a read takes of a thread that has nothing else to do.
// With `starts` as its argument: threads and shared bytes of a workgroup, workgroups an SM, and the median of the cycles
// from the end of one to the first instruction of the next on its SM.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "check.cuh"

constexpr uint64_t kBytes = uint64_t(2) << 30;
constexpr uint64_t kLength = 1500000, kWarm = 300000;  // of a launch, and of it before anything counts [ns]
constexpr int kFollowers = 4, kHops = 400, kThreads = 512, kGo = 2048;

struct Notes {
  unsigned long long begin, moved, waited, hops, unused;
};

__device__ uint64_t now() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

__device__ uint64_t look(const char* at) {
  uint64_t value;
  asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}

// A step of a linear congruential generator (Knuth, MMIX).
__device__ uint64_t stepped(uint64_t x) { return x * 6364136223846793005ull + 1442695040888963407ull; }

// Finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
__device__ uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Follow addresses, each made of what was read at the one before; the buffer holds zeros.
__device__ void follow(const char* from, uint64_t begin, Notes* notes) {
  uint64_t at = stepped(blockIdx.x + 1);
  while (now() < begin + kWarm) at = stepped(at + look(from + ((at >> 20) * 128) % kBytes));
  const uint64_t first = now();
  for (int i = 0; i < kHops; ++i) at = stepped(at + look(from + ((at >> 20) * 128) % kBytes));
  atomicAdd(&notes->waited, now() - first);
  atomicAdd(&notes->hops, at == 1 ? 0 : kHops);
}

__global__ __launch_bounds__(kThreads, 4) void load(const char* followed, const uint4* from, uint4* to, int loads,
                                                    int stores, int piece, int pause, Notes* notes) {
  __shared__ uint64_t first;
  if (threadIdx.x == 0) {
    const uint64_t mine = now(), other = atomicCAS(&notes->begin, 0ull, mine);
    first = other ? other : mine;
  }
  __syncthreads();
  const uint64_t begin = first;
  if (blockIdx.x < kFollowers) {
    if (threadIdx.x == 0) follow(followed, begin, notes);
    return;
  }
  const uint64_t waves = (gridDim.x - kFollowers) * (blockDim.x / 32);
  const uint64_t wave = (blockIdx.x - kFollowers) * (blockDim.x / 32) + threadIdx.x / 32;
  const int shift = 31 - __clz(piece);  // pieces are powers of two
  unsigned sum = 0;
  uint64_t moved = 0, time;
  for (uint64_t turn = wave; (time = now()) < begin + kLength; turn += waves) {
    uint64_t at[4];
    uint4 value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint64_t in = i * 512 + threadIdx.x % 32 * 16;
      const uint64_t place = piece == kGo ? turn : mixed(turn * 16 + (in >> shift) + 1);
      at[i] = (((place << shift) + (in & (piece - 1))) & (kBytes - 1)) / 16;
      value[i] = make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < loads) value[i] = __ldcg(from + at[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < stores) __stcg(to + at[i], value[i]);
      sum ^= value[i].x;
    }
    if (time > begin + kWarm) moved += 512 * (loads + stores);
    for (long long from_now = clock64(); clock64() - from_now < pause;) continue;
  }
  if (sum) notes->unused = sum;
  if (threadIdx.x % 32 == 0) atomicAdd(&notes->moved, moved);
}

void waits(int sms) {
  char* followed;
  uint4 *from, *to;
  Notes *notes, found;
  CHECK(cudaMalloc(&followed, kBytes));
  CHECK(cudaMalloc(&from, kBytes));
  CHECK(cudaMalloc(&to, kBytes));
  CHECK(cudaMalloc(&notes, sizeof(Notes)));
  CHECK(cudaMemset(followed, 0, kBytes));
  CHECK(cudaMemset(from, 0, kBytes));
  std::printf("loads,stores,piece_bytes,pause_cycles,gb_per_s,wait_ns\n");
  const int mixes[][2] = {{4, 0}, {4, 1}, {4, 2}, {4, 4}, {2, 4}, {1, 4}, {0, 4}};
  for (auto mix : mixes) {
    for (int piece : {kGo, 128}) {
      for (int pause : {800000, 60000, 40000, 30000, 24000, 20000, 17000, 15000, 13000, 11500, 10000, 9000, 8000, 7000,
                        6000, 5000, 4000, 2500, 1000, 0}) {
        CHECK(cudaMemset(notes, 0, sizeof(Notes)));
        load<<<kFollowers + 3 * (sms - kFollowers), kThreads>>>(followed, from, to, mix[0], mix[1], piece, pause, notes);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&found, notes, sizeof(Notes), cudaMemcpyDeviceToHost));
        std::printf("%d,%d,%d,%d,%.0f,%.1f\n", mix[0], mix[1], piece, pause,
                    double(found.moved) / (kLength - kWarm), double(found.waited) / found.hops);
      }
    }
  }
}

struct Span {
  unsigned long long sm, start, end;
};

__global__ void spin(int cycles, Span* spans) {
  const long long start = clock64();
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  while (clock64() - start < cycles) continue;
  if (threadIdx.x == 0) spans[blockIdx.x] = {sm, (unsigned long long)start, (unsigned long long)clock64()};
}

// Median of the cycles from the end of a workgroup to the start of the one that has its place.
double gap(const std::vector<Span>& spans, int sms, int per_sm) {
  std::vector<std::vector<unsigned long long>> starts(sms), ends(sms);
  for (const Span& span : spans) {
    starts[span.sm].push_back(span.start);
    ends[span.sm].push_back(span.end);
  }
  std::vector<double> gaps;
  for (int sm = 0; sm < sms; ++sm) {
    std::sort(starts[sm].begin(), starts[sm].end());
    std::sort(ends[sm].begin(), ends[sm].end());
    for (size_t i = per_sm; i < starts[sm].size(); ++i) gaps.push_back(double(starts[sm][i]) - ends[sm][i - per_sm]);
  }
  std::sort(gaps.begin(), gaps.end());
  return gaps[gaps.size() / 2];
}

void starts(int sms) {
  std::vector<Span> spans(sms * 400);
  Span* on_gpu;
  CHECK(cudaMalloc(&on_gpu, spans.size() * sizeof(Span)));
  CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  std::printf("threads,shared_bytes,per_sm,gap_cycles\n");
  for (int threads : {32, 128, 256, 512, 1024}) {
    for (int shared : {14000, 40000, 100000, 200000}) {
      for (int turn = 0; turn < 2; ++turn) spin<<<spans.size(), threads, shared>>>(3000, on_gpu);
      CHECK(cudaGetLastError());
      CHECK(cudaMemcpy(spans.data(), on_gpu, spans.size() * sizeof(Span), cudaMemcpyDeviceToHost));
      int per_sm;
      CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, spin, threads, shared));
      std::printf("%d,%d,%d,%.0f\n", threads, shared, per_sm, gap(spans, sms, per_sm));
    }
  }
}

int main(int count, char** words) {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  if (count > 1 && !std::strcmp(words[1], "starts")) {
    starts(device.multiProcessorCount);
  } else {
    waits(device.multiProcessorCount);
  }
}
