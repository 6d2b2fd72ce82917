// Constants of a GPU by loads, stores and clocks alone: what `swizzle-sim lab calibrate` compiles (nvcc, hipcc) and runs.
//
// Prints CSV lines: what, two parameters, value, unit. Latency is by one thread that follows pointers in a random ring
// (Wong et al., ISPASS 2010), timed from the host; lines that a cache keeps at a stride, by rings of that stride.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#if defined(__HIPCC__) || defined(__HIP__)
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
using Properties = hipDeviceProp_t;
#else
#include <cuda_runtime.h>
#define GPU(name) cuda##name
using Properties = cudaDeviceProp;
#endif

#define CHECK(call)                                                                          \
  do {                                                                                       \
    GPU(Error_t) status = (call);                                                            \
    if (status != GPU(Success)) {                                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, GPU(GetErrorString)(status));          \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20, kLine = 128, kMost = uint64_t(4) << 30;
constexpr int kThreads = 256, kRuns = 5, kUnroll = 4;

// A load that the L1 does not answer.
__device__ uint64_t past_l1(const uint64_t* at) {
#if defined(__HIPCC__) || defined(__HIP__)
  return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
#else
  return __ldcg(reinterpret_cast<const unsigned long long*>(at));
#endif
}

// XCD, and CU within it; of an NVIDIA GPU 0 and the SM.
__device__ void whereabouts(unsigned* xcd, unsigned* cu) {
#if defined(__HIPCC__) || defined(__HIP__)
#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__)
  *xcd = __builtin_amdgcn_s_getreg(20 | 3 << 11);  // XCC_ID, four bits
#else
  *xcd = 0;  // one die
#endif
  *cu = __builtin_amdgcn_s_getreg(4 | 8 << 6 | 7 << 11);  // HW_ID: CU, shader array, shader engine
#else
  *xcd = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(*cu));
#endif
}

// Goes on where the launch before it stopped, so that a ring of more places than steps is never met again too soon.
template <bool through_l1>
__global__ void follow(const uint64_t* ring, long steps, unsigned long long* out) {
  uint64_t at = out[1];
  const long long begin = clock64();
  for (long i = 0; i < steps; ++i) {
    at = through_l1 ? ring[at] : past_l1(ring + at);
  }
  out[0] = clock64() - begin;
  out[1] = at;
}

__global__ void stream(const uint4* from, uint4* to, uint64_t items, int passes, uint4* unused) {
  uint4 sum = {0, 0, 0, 0};
  const uint64_t all = uint64_t(gridDim.x) * blockDim.x;
  for (int pass = 0; pass < passes; ++pass) {
    const unsigned group = (blockIdx.x + 97 * pass) % gridDim.x;  // another part in each pass, so that no L1 helps
    for (uint64_t i = uint64_t(group) * blockDim.x + threadIdx.x; i < items; i += kUnroll * all) {
      uint4 got[kUnroll];
      for (int k = 0; k < kUnroll; ++k) got[k] = from && i + k * all < items ? from[i + k * all] : sum;
      for (int k = 0; k < kUnroll; ++k) {
        sum.x ^= got[k].x, sum.y ^= got[k].y, sum.z ^= got[k].z, sum.w ^= got[k].w;
        if (to && i + k * all < items) to[i + k * all] = got[k];
      }
    }
  }
  if (sum.x == 0xdeadbeef && sum.y == 5) *unused = sum;
}

// Permutation of the numbers of so many bits: products with odd numbers and shifted XORs.
__device__ uint32_t drawn(uint32_t x, int bits, uint32_t seed) {
  const uint32_t mask = bits < 32 ? (1u << bits) - 1 : ~0u;
  x = (x ^ seed) & mask;
  for (int i = 0; i < 2; ++i) {
    x = x * 0x9E3779B1u & mask;
    x ^= x >> (bits + 1) / 2;
    x = x * 0x85EBCA6Bu & mask;
    x ^= x >> (bits + 2) / 3;
  }
  return x;
}

template <bool write>
__global__ void pieces(uint4* base, int bits, int lanes, uint32_t seed, uint4* unused) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4* at = base + uint64_t(drawn(i / lanes, bits, seed)) * lanes + i % lanes;
  if (write) {
    *at = uint4{i, i * 3, ~i, i * 7};
  } else {
    const uint4 got = *at;
    if ((got.x ^ got.y ^ got.z ^ got.w) == 0x5eed) *unused = got;
  }
}

struct Span {
  unsigned xcd, cu;
  unsigned long long begin, end;
};

__global__ void spin(long long cycles, Span* spans) {
  __shared__ float unused[8192];  // 32 KiB, so that few fit
  const long long begin = clock64();
  float x = threadIdx.x;
  while (clock64() - begin < cycles) x += 1;
  unused[threadIdx.x] = x;
  __syncthreads();
  if (threadIdx.x == 0) {
    Span mine = {0, 0, (unsigned long long)begin, (unsigned long long)clock64()};
    whereabouts(&mine.xcd, &mine.cu);
    if (unused[0] == 0.25f) mine.begin = 0;
    spans[blockIdx.x] = mine;
  }
}

template <typename Launch>
double best_ms(Launch launch, int runs = kRuns) {
  GPU(Event_t) begin, end;
  CHECK(GPU(EventCreate)(&begin));
  CHECK(GPU(EventCreate)(&end));
  float best = 1e30f;
  for (int run = 0; run < runs; ++run) {
    CHECK(GPU(EventRecord)(begin, nullptr));
    launch();
    CHECK(GPU(GetLastError)());
    CHECK(GPU(EventRecord)(end, nullptr));
    CHECK(GPU(EventSynchronize)(end));
    float ms;
    CHECK(GPU(EventElapsedTime)(&ms, begin, end));
    if (run || runs == 1) best = std::min(best, ms);
  }
  CHECK(GPU(EventDestroy)(begin));
  CHECK(GPU(EventDestroy)(end));
  return best;
}

// Nanoseconds and cycles a hop in a ring of n places, a stride apart.
template <bool through_l1>
void chase(const char* what, uint64_t* memory, unsigned long long* out, uint64_t n, uint64_t stride) {
  std::vector<uint64_t> turn(n), ring(n);
  std::iota(turn.begin(), turn.end(), 0);
  std::mt19937_64 draw(n * 31 + stride);
  for (uint64_t i = n - 1; i > 0; --i) std::swap(turn[i], turn[draw() % (i + 1)]);
  const uint64_t words = stride / sizeof(uint64_t);
  for (uint64_t i = 0; i < n; ++i) ring[turn[i]] = turn[(i + 1) % n] * words;
  CHECK(GPU(Memcpy2D)(memory, stride, ring.data(), sizeof(uint64_t), sizeof(uint64_t), n, GPU(MemcpyHostToDevice)));
  const long steps = through_l1 ? 400000 : std::min<long>(200000, std::max<long>(4000, 3 * n));  // an L1 begins empty
  CHECK(GPU(Memset)(out, 0, 16));
  follow<through_l1><<<1, 1>>>(memory, std::min<long>(n, 100000), out);
  const double ms = best_ms([&] { follow<through_l1><<<1, 1>>>(memory, steps, out); }, 3);
  unsigned long long took[2];
  CHECK(GPU(Memcpy)(took, out, 16, GPU(MemcpyDeviceToHost)));
  const unsigned long long a = n, b = stride;
  std::printf("%s,%llu,%llu,%.2f,ns\n", what, a, b, ms * 1e6 / steps);
  std::printf("%s,%llu,%llu,%.2f,cycles\n", what, a, b, double(took[0]) / steps);
}

void latencies(uint64_t* memory, unsigned long long* out) {
  for (uint64_t kib : {4, 8, 12, 16, 24, 28, 32, 48, 64, 96, 128, 160, 192, 224, 256, 320}) {
    chase<true>("latency through the L1", memory, out, kib * kKiB / kLine, kLine);
  }
  for (uint64_t kib = 512; kib <= kMost / kKiB / 2; kib = kib * 5 / 4) {
    chase<false>("latency past the L1", memory, out, kib * kKiB / kLine, kLine);
  }
  for (uint64_t stride = kLine; stride <= 16 * kMiB; stride *= 2) {
    for (uint64_t n = 8; n <= uint64_t(1) << 19 && n * stride <= kMost; n *= 2) {
      chase<false>("ring past the L1", memory, out, n, stride);
    }
  }
}

void bandwidths(uint4* memory, int cus, uint64_t l2_bytes) {
  const int groups = cus * 8;
  uint4 *from = memory, *to = memory + kMost / 2 / sizeof(uint4), *unused = memory;
  const auto gbps = [&](const char* what, const uint4* read, uint4* write, uint64_t bytes, int passes) {
    const uint64_t items = bytes / sizeof(uint4);
    const double ms = best_ms([&] { stream<<<groups, 1024>>>(read, write, items, passes, unused); });
    const int ways = (read != nullptr) + (write != nullptr);
    const double moved = double(bytes) * passes * ways;
    std::printf("%s,%llu,%d,%.1f,GB/s\n", what, (unsigned long long)bytes, passes, moved / ms / 1e6);
  };
  gbps("copied", from, to, kMost / 2, 1);
  gbps("read", from, nullptr, kMost / 2, 1);
  gbps("written", nullptr, to, kMost / 2, 1);
  gbps("read of the L2", from, nullptr, l2_bytes / 4, 200);
}

void memory_rows(uint4* memory, uint4* unused) {
  const uint32_t n = 1 << 22;
  for (int lanes = 2; lanes <= 64; lanes *= 2) {  // 32 B to 1 KiB
    int bits = 0;
    while ((kMost / sizeof(uint4) / lanes) >> (bits + 1)) ++bits;
    uint32_t seed = 1;
    const unsigned groups = uint64_t(n) * lanes / kThreads;
    const auto next = [&] { return seed += 0x9E3779B9u; };
    const double read = best_ms([&] { pieces<false><<<groups, kThreads>>>(memory, bits, lanes, next(), unused); });
    const double wrote = best_ms([&] { pieces<true><<<groups, kThreads>>>(memory, bits, lanes, next(), unused); });
    std::printf("read in random order,%d,0,%.2f,ps\n", lanes * 16, read * 1e9 / n);
    std::printf("written in random order,%d,0,%.2f,ps\n", lanes * 16, wrote * 1e9 / n);
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void workgroups(int cus, int per_cu) {
  Span* on_gpu;
  const int n = cus * per_cu * 40;
  std::vector<Span> spans(n);
  CHECK(GPU(Malloc)((void**)&on_gpu, n * sizeof(Span)));
  for (int turn = 0; turn < 2; ++turn) spin<<<n, kThreads>>>(20000, on_gpu);
  CHECK(GPU(Memcpy)(spans.data(), on_gpu, n * sizeof(Span), GPU(MemcpyDeviceToHost)));
  for (int w = 0; w < std::min(n, 64); ++w) std::printf("dispatched to,%d,%u,%u,XCD\n", w, spans[w].cu, spans[w].xcd);
  std::vector<uint64_t> places;
  for (const Span& span : spans) places.push_back(uint64_t(span.xcd) << 32 | span.cu);
  std::vector<uint64_t> distinct = places;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<double> gaps;
  for (uint64_t place : distinct) {
    std::vector<unsigned long long> begins, ends;
    for (int w = 0; w < n; ++w) {
      if (places[w] == place) begins.push_back(spans[w].begin), ends.push_back(spans[w].end);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    for (size_t i = per_cu; i < begins.size(); ++i) gaps.push_back(double(begins[i]) - double(ends[i - per_cu]));
  }
  std::printf("places of workgroups,%d,%d,%zu,CUs\n", n, per_cu, distinct.size());
  std::printf("from one workgroup to the next,%d,%d,%.0f,cycles\n", n, per_cu, median(gaps));
  CHECK(GPU(Free)(on_gpu));
}

int main() {
  Properties about;
  CHECK(GPU(GetDeviceProperties)(&about, 0));
  const int cus = about.multiProcessorCount;
  int per_cu;
  CHECK(GPU(OccupancyMaxActiveBlocksPerMultiprocessor)(&per_cu, spin, kThreads, 0));
  std::printf("what,first,second,value,unit\n");
  std::printf("name,0,0,%s,text\n", about.name);
  std::printf("CUs,0,0,%d,CUs\n", cus);
  std::printf("L2 as reported,0,0,%d,bytes\n", about.l2CacheSize);
  uint64_t* memory;
  unsigned long long* out;
  CHECK(GPU(Malloc)((void**)&memory, kMost + kMiB));
  CHECK(GPU(Malloc)((void**)&out, 64));
  CHECK(GPU(Memset)(memory, 0, kMost));
  latencies(memory, out);
  bandwidths(reinterpret_cast<uint4*>(memory), cus, about.l2CacheSize);
  memory_rows(reinterpret_cast<uint4*>(memory), reinterpret_cast<uint4*>(memory) + kMost / sizeof(uint4));
  workgroups(cus, per_cu);
}
