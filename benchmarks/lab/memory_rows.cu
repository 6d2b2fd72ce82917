// How far rows of the memory reach: what lab's `hbm-rows` compiles and runs. Needs a GPU with 5 GiB of memory.
//
// Prints CSV lines: what is done, bytes of a piece, how far apart pieces lie, within how many bytes they are in drawn
// order, and picoseconds a piece. In pairs, every other piece lies that far behind one at a drawn place, and one wave
// takes both; else one piece of every so many bytes is taken once, one stretch after another, stretches drawn too.

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "check.cuh"

constexpr uint64_t kBytes = uint64_t(1) << 32;
constexpr int kBits = 32, kLineBits = 7, kThreads = 256, kCounted = 7;
constexpr uint32_t kPieces = 1 << 22;

// Shuffles the numbers of so many bits: products with odd numbers and shifted XORs are permutations.
__device__ uint32_t drawn(uint32_t x, int bits, uint32_t seed) {
  const uint32_t mask = (1u << bits) - 1;
  x = (x ^ seed) & mask;
  if (bits < 2) return x;
  for (int i = 0; i < 2; ++i) {
    x = x * 0x9E3779B1u & mask;
    x ^= x >> (bits + 1) / 2;
    x = x * 0x85EBCA6Bu & mask;
    x ^= x >> (bits + 2) / 3;
  }
  return x;
}

// Reads or writes 16 bytes of a piece; what is read is not used.
template <bool write>
__device__ void touch(char* at, uint32_t i, uint32_t* unused) {
  if (write) {
    __stcg(reinterpret_cast<uint4*>(at), make_uint4(i, i * 3, ~i, i * 7));
    return;
  }
  const uint4 got = __ldcg(reinterpret_cast<uint4*>(at));
  if ((got.x ^ got.y ^ got.z ^ got.w) == 0x5eed) *unused = got.x;
}

template <bool write, int lanes>
__global__ __launch_bounds__(kThreads) void pairs(char* base, uint64_t apart, uint32_t seed, uint32_t* unused) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x, piece = i / lanes;
  const uint64_t line = drawn(piece / 2, kBits - kLineBits, seed);
  const uint64_t at = (line << kLineBits) + (piece & 1 ? apart : 0);
  touch<write>(base + (at & (kBytes - 1)) + i % lanes * 16, i, unused);
}

template <bool write, int lanes>
__global__ __launch_bounds__(kThreads) void stretches(char* base, int apart_bits, int within_bits, uint32_t seed,
                                                      uint32_t* unused) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x, piece = i / lanes;
  const int inside = within_bits - apart_bits;
  const uint64_t stretch = drawn(piece >> inside, kBits - within_bits, seed);
  const uint64_t place = drawn(piece & ((1u << inside) - 1), inside, seed ^ uint32_t(stretch) * 0x9E3779B1u);
  touch<write>(base + (stretch << within_bits) + (place << apart_bits) + i % lanes * 16, i, unused);
}

// Median picoseconds a piece; each launch draws anew.
template <typename Launch>
double piece_ps(Launch launch) {
  static uint32_t seed = 0;
  static cudaEvent_t begin, end;
  if (!seed) {
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  float took[kCounted];
  for (float& ms : took) {
    seed += 0x9E3779B9u;
    CHECK(cudaEventRecord(begin));
    launch(seed);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
  }
  std::sort(took, took + kCounted);
  return took[kCounted / 2] * 1e9 / kPieces;
}

template <bool write, int lanes>
void measure(char* base, uint32_t* unused) {
  constexpr uint32_t groups = kPieces / kThreads * lanes;
  const char* what = write ? "write" : "read";
  const auto pair = [&](uint64_t apart) {
    const double ps = piece_ps([&](uint32_t seed) {
      pairs<write, lanes><<<groups, kThreads>>>(base, apart, seed, unused);
    });
    std::printf("%s pairs,%d,%llu,%llu,%.2f\n", what, lanes * 16, (unsigned long long)apart,
                (unsigned long long)kBytes, ps);
  };
  for (int warm = 0; warm < 20; ++warm) {
    piece_ps([&](uint32_t seed) { pairs<write, lanes><<<groups, kThreads>>>(base, 0, seed, unused); });
  }
  for (uint64_t apart = 128; apart <= 65536; apart += 128) pair(apart);
  for (uint64_t apart = 131072; apart <= kBytes / 2; apart *= 2) pair(apart);
  for (int apart_bits = 8; apart_bits <= 10; ++apart_bits) {
    for (int within_bits = apart_bits; within_bits <= kBits; ++within_bits) {
      const double ps = piece_ps([&](uint32_t seed) {
        stretches<write, lanes><<<groups, kThreads>>>(base, apart_bits, within_bits, seed, unused);
      });
      std::printf("%s,%d,%d,%llu,%.2f\n", what, lanes * 16, 1 << apart_bits, 1ull << within_bits, ps);
    }
  }
}

int main() {
  char* base;
  uint32_t* unused;
  CHECK(cudaMalloc(&base, kBytes));
  CHECK(cudaMalloc(&unused, sizeof(*unused)));
  CHECK(cudaMemset(base, 0, kBytes));
  std::printf("what,bytes,apart_bytes,within_bytes,ps\n");
  measure<false, 4>(base, unused);
  measure<true, 8>(base, unused);
}
