// L2 partition of each SM, point of coherence of each line, and capacity of each partition: what lab's `partitions` runs.
//
// sides homes FILE   prints clocks of reads and atomics by side and home as CSV, and writes a byte for each 4 KiB: 0 at
//                    home on the side of SM 0, 1 on the other
// sides passes       reads parts of memory again and again, by home of the lines and side of the SMs, and beside that
//                    reads or stores what is not read again; only the last pass of a kind is profiled. Prints CSV
//                    lines, one a kind

#include <cuda_profiler_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.cuh"

constexpr uint64_t kMiB = 1 << 20, kBlock = 4096, kBytes = 3072 * kMiB, kBlocks = kBytes / kBlock, kPieces = kMiB / 512;
constexpr int kAlone = 200 * 1024;  // so much shared memory that a workgroup has an SM to itself
constexpr int kProbed = 128, kTries = 4, kPasses = 9, kThreads = 1024;
constexpr uint64_t kStreams = 160 * kMiB / kBlock;  // blocks of a home before those that are not read again

__device__ int this_sm() {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

__device__ int clocks(unsigned* at, bool atomic, volatile unsigned* there) {
  unsigned value;
  const long long begin = clock64();
  if (atomic) {
    value = atomicAdd(at, 0);
  } else {
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  }
  *there = value;  // waits for it
  return int(clock64() - begin);
}

// Clocks of the first blocks, from one SM, the least of some tries.
__global__ void probe(unsigned* base, int sm, bool atomic, int tries, int* out) {
  __shared__ unsigned there;
  if (this_sm() != sm || threadIdx.x) return;
  for (int i = 0; i < kProbed; ++i) {
    int least = 1 << 30;
    for (int r = 0; r < tries; ++r) least = min(least, clocks(base + i * kBlock / 4, atomic, &there));
    out[i] = least;
  }
}

// How many clocks more each block takes from SMs of side 0 than from those of side 1, less what is usual for each SM.
__global__ void probe_all(unsigned* base, const int* side, const int* rank, const int* usual, int me, int sms,
                          int* out) {
  __shared__ unsigned there;
  const int sm = this_sm();
  if (side[sm] != me || threadIdx.x) return;
  for (uint64_t block = rank[sm]; block < kBlocks; block += sms) {
    int least = 1 << 30;
    for (int r = 0; r < kTries; ++r) least = min(least, clocks(base + block * kBlock / 4, true, &there));
    out[block] += (me ? -1 : 1) * (least - usual[sm]);
  }
}

struct Kind {
  int read[2][2];  // MiB that the SMs of a side read, by home of the lines
  int from[2];     // MiB of each home before those
  int side, home, stores, beside;  // who reads or stores MiB that are not read again, and where they are at home
};

__global__ __launch_bounds__(kThreads) void pass(uint4* base, const unsigned* blocks0, const unsigned* blocks1,
                                                 Kind kind, uint64_t step, uint64_t shift, uint64_t first,
                                                 uint64_t wrap, const int* side, const int* rank, int sms,
                                                 unsigned* unused) {
  const int sm = this_sm(), me = side[sm], lane = threadIdx.x % 32;
  const uint64_t wave = rank[sm] + uint64_t(threadIdx.x / 32) * sms, waves = uint64_t(sms) * (kThreads / 32);
  const uint64_t home0 = (me ? kind.read[1][0] : kind.read[0][0]) * kPieces;
  const uint64_t home1 = (me ? kind.read[1][1] : kind.read[0][1]) * kPieces, pieces = home0 + home1;
  const uint64_t from = (me ? kind.from[1] : kind.from[0]) * kPieces;
  const uint64_t beside = kind.side == me ? kind.beside * kPieces : 0;
  const uint64_t reads = pieces > wave ? (pieces - wave + waves - 1) / waves : 0;
  const uint64_t others = beside > wave ? (beside - wave + waves - 1) / waves : 0;
  unsigned sum = 0;
  for (uint64_t i = 0, done = 0; i < reads + others; ++i) {
    const bool again = (i + 1) * reads / (reads + others) > done;
    uint64_t piece;
    int home = kind.home;
    if (again) {
      piece = ((wave + done++ * waves) * step + shift) % pieces;
      home = home0 && home1 ? piece & 1 : home1 > 0;
      piece = (home0 && home1 ? piece >> 1 : piece) + from;
    } else {
      piece = (first + wave + (i - done) * waves) % wrap + kStreams * 8;
    }
    uint4* at = base + ((home ? blocks1 : blocks0)[piece >> 3] * uint64_t(8) + (piece & 7)) * 32 + lane;
    if (!again && kind.stores) {
      __stcg(at, make_uint4(0, 0, 0, 0));
    } else {
      const uint4 value = __ldcg(at);
      sum ^= value.x ^ value.y ^ value.z ^ value.w;
    }
  }
  if (sum == 1) *unused = sum;
}

template <typename T>
T* on_gpu(const std::vector<T>& values) {
  T* copy;
  CHECK(cudaMalloc(&copy, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(copy, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return copy;
}

struct Map {
  unsigned* base;
  int sms, count[2] = {0, 0}, *out;
  std::vector<int> side, rank, usual, home_of_probed;
  std::vector<uint8_t> home;

  std::vector<int> probed(int sm, bool atomic, int tries) {
    std::vector<int> found(kProbed);
    probe<<<sms, 32, kAlone>>>(base, sm, atomic, tries, out);
    CHECK(cudaMemcpy(found.data(), out, kProbed * sizeof(int), cudaMemcpyDeviceToHost));
    return found;
  }

  Map() {
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaMalloc(&base, kBytes));
    CHECK(cudaMemset(base, 0, kBytes));
    CHECK(cudaMalloc(&out, kProbed * sizeof(int)));
    CHECK(cudaFuncSetAttribute(probe, cudaFuncAttributeMaxDynamicSharedMemorySize, kAlone));
    CHECK(cudaFuncSetAttribute(probe_all, cudaFuncAttributeMaxDynamicSharedMemorySize, kAlone));
    CHECK(cudaFuncSetAttribute(pass, cudaFuncAttributeMaxDynamicSharedMemorySize, kAlone));
    probed(0, true, 1);
    std::vector<int> zero = probed(0, true, kTries), sorted = zero;
    std::sort(sorted.begin(), sorted.end());
    for (int one : zero) home_of_probed.push_back(one > (sorted[4] + sorted[kProbed - 5]) / 2);
    for (int sm = 0; sm < sms; ++sm) {
      long sum[2] = {0, 0}, n[2] = {0, 0};
      const std::vector<int> found = probed(sm, true, kTries);
      for (int i = 0; i < kProbed; ++i) sum[home_of_probed[i]] += found[i], ++n[home_of_probed[i]];
      const long clocks0 = sum[0] / n[0], clocks1 = sum[1] / n[1];  // by home
      side.push_back(clocks0 > clocks1);
      usual.push_back(int(clocks0 + clocks1) / 2);
      rank.push_back(count[side[sm]]++);
    }
    std::vector<int> nearer(kBlocks, 0);
    int* more = on_gpu(nearer);
    const int *sides = on_gpu(side), *ranks = on_gpu(rank), *means = on_gpu(usual);
    for (int me : {0, 1}) probe_all<<<sms, 32, kAlone>>>(base, sides, ranks, means, me, count[me], more);
    CHECK(cudaMemcpy(nearer.data(), more, kBlocks * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(more));
    for (int one : nearer) home.push_back(one > 0);
  }

  // Mean clocks of what an SM does once another SM has last asked for the lines, by home.
  void print_clocks() {
    std::printf("what,side,value\n");
    const char* names[] = {"an atomic", "a first read", "a second read"};
    const char* sides[] = {"this side", "the other side"};
    for (int what : {0, 1, 2}) {
      double sum[2] = {0, 0}, n[2] = {0, 0};
      for (int sm = 0; sm < sms; ++sm) {
        int other = 0;
        while (side[other] == side[sm]) ++other;
        probed(other, true, 1);
        std::vector<int> found = probed(sm, what == 0, 1);
        if (what == 2) found = probed(sm, false, 1);
        for (int i = 0; i < kProbed; ++i) {
          const int far = home_of_probed[i] != side[sm];
          sum[far] += found[i];
          ++n[far];
        }
      }
      for (int far : {0, 1}) std::printf("clocks of %s,%s,%.1f\n", names[what], sides[far], sum[far] / n[far]);
    }
    for (int one : {0, 1}) std::printf("SMs,%s,%d\n", sides[one], count[one]);
  }
};

void passes(Map& map) {
  std::vector<unsigned> blocks[2];
  for (uint64_t b = 0; b < kBlocks; ++b) blocks[map.home[b]].push_back(unsigned(b));
  const uint64_t wrap = (std::min(blocks[0].size(), blocks[1].size()) - kStreams) * 8;
  const unsigned *blocks0 = on_gpu(blocks[0]), *blocks1 = on_gpu(blocks[1]);
  const int *side = on_gpu(map.side), *rank = on_gpu(map.rank);
  unsigned* unused = on_gpu(std::vector<unsigned>(1));
  const uint64_t steps[] = {1000003, 7368787, 15485863, 32452843, 49979687, 67867967, 86028121, 104395301};  // primes
  uint64_t first = 0;
  std::printf("kind,order,mib,beside,beside_side,beside_home,beside_mib\n");
  auto run = [&](const char* name, Kind kind, bool same, int mib) {
    for (int i = 0; i < kPasses; ++i) {
      CHECK(cudaDeviceSynchronize());
      if (i == kPasses - 1) CHECK(cudaProfilerStart());
      pass<<<map.sms, kThreads, kAlone>>>(reinterpret_cast<uint4*>(map.base), blocks0, blocks1, kind,
                                          same ? 1 : steps[i % 8], same ? 0 : 977 * i, first, wrap, side, rank,
                                          map.sms / 2, unused);
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());
      if (i == kPasses - 1) CHECK(cudaProfilerStop());
      first += kind.beside * kPieces;
    }
    std::printf("%s,%s,%d,%s,%d,%d,%d\n", name, same ? "same" : "drawn", mib,
                kind.beside ? (kind.stores ? "stores" : "reads") : "nothing", kind.side, kind.home, kind.beside);
  };
  for (bool same : {true, false}) {
    for (int m : {12, 16, 20, 24, 28, 30, 32, 34, 36, 40, 44, 48, 52, 56, 60, 64, 72}) {
      const int h = m / 2;
      run("one side; near", {{{m, 0}, {0, 0}}, {0, 0}}, same, m);
      run("one side; far", {{{0, m}, {0, 0}}, {0, 0}}, same, m);
      run("one side; all", {{{h, h}, {0, 0}}, {0, 0}}, same, m);
      run("both sides; one home", {{{m, 0}, {m, 0}}, {0, 0}}, same, m);
      run("both sides; all", {{{h, h}, {h, h}}, {0, 0}}, same, m);
      run("each side its own; near", {{{h, 0}, {0, h}}, {0, 0}}, same, m);
      run("each side its own; far", {{{0, h}, {h, 0}}, {0, 0}}, same, m);
      if (m % 4 == 0) run("each side its own; all", {{{h / 2, h / 2}, {h / 2, h / 2}}, {0, m}}, same, m);
    }
    for (int side_of : {0, 1}) {
      for (int home : {0, 1}) {
        for (int stores : {0, 1}) {
          for (int m : {4, 8, 16, 32}) {
            run("one side; near", {{{24, 0}, {0, 0}}, {0, 0}, side_of, home, stores, m}, same, 24);
            run("one side; far", {{{0, 24}, {0, 0}}, {0, 0}, side_of, home, stores, m}, same, 24);
          }
        }
      }
    }
  }
}

int main(int argc, char** argv) {
  Map map;
  if (argc == 3 && std::string(argv[1]) == "homes") {
    map.print_clocks();
    FILE* file = std::fopen(argv[2], "wb");
    if (!file || std::fwrite(map.home.data(), 1, kBlocks, file) != kBlocks || std::fclose(file)) return 1;
  } else if (map.count[0] != map.count[1]) {
    std::fprintf(stderr, "%d SMs on one side, %d on the other\n", map.count[0], map.count[1]);
    return 1;
  } else {
    passes(map);
  }
}
