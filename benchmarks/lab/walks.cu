// Passes over a matrix by tiles of 32 rows, few bytes wide: what lab's `walks` compiles and runs. Needs 1 GiB.
//
// Prints CSV lines: what is done, tiles of a workgroup, bytes of a row of a tile, bytes of a row of the matrix, in which
// order tiles are taken (across: the next one is to the right; down: below; drawn), and picoseconds a row of a tile.

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "check.cuh"

constexpr uint64_t kBytes = uint64_t(1) << 30;
constexpr int kRows = 32, kLane = 16, kCounted = 7;
enum Order { kAcross, kDown, kDrawn, kOrders };
const char* const kNames[] = {"across", "down", "drawn"};

// Shuffles the numbers of a power of two: products with odd numbers and shifted XORs are permutations.
__device__ uint32_t drawn(uint32_t x, uint32_t count) {
  const uint32_t mask = count - 1, half = (33 - __clz(count)) / 2;
  for (int i = 0; i < 3; ++i) {
    x = (x * 0x9E3779B1u + 0x85EBCA6Bu) & mask;
    x ^= x >> half;
  }
  return x;
}

// A thread takes 16 bytes of each tile, whose threads go along its rows. What is read is not used.
template <bool write, int tiles>
__global__ void walk(char* base, uint32_t width, uint32_t pitch, int order, uint32_t* unused) {
  const uint32_t count = gridDim.x * tiles, across = pitch / width, down = count / across, lanes = width / kLane;
  uint4 got[tiles];
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
    const uint32_t place = blockIdx.x * tiles + i, tile = order == kDrawn ? drawn(place, count) : place;
    const uint32_t column = order == kDown ? tile / down : tile % across;
    const uint32_t row = (order == kDown ? tile % down : tile / across) * kRows + threadIdx.x / lanes;
    uint4* at = reinterpret_cast<uint4*>(base + uint64_t(row) * pitch + column * width + threadIdx.x % lanes * kLane);
    if (write) {
      __stcg(at, make_uint4(tile, row, column, threadIdx.x));
    } else {
      got[i] = __ldcg(at);
    }
  }
  if (write) return;
  uint32_t all = 0;
  for (const uint4& one : got) all ^= one.x ^ one.y ^ one.z ^ one.w;
  if (all == 0x5eed) *unused = all;
}

// Median picoseconds for a row of a tile.
template <bool write, int tiles>
double row_ps(char* base, uint32_t width, uint32_t pitch, int order, uint32_t* unused) {
  const uint32_t count = kBytes / (uint64_t(width) * kRows);
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  float took[kCounted];
  for (float& ms : took) {
    CHECK(cudaEventRecord(begin));
    walk<write, tiles><<<count / tiles, kRows * width / kLane>>>(base, width, pitch, order, unused);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  std::sort(took, took + kCounted);
  return took[kCounted / 2] * 1e9 / (double(count) * kRows);
}

template <bool write, int tiles>
void measure(char* base, uint32_t* unused) {
  for (uint32_t width = 64; width <= 512; width *= 2) {
    for (uint32_t pitch = 4096; pitch <= 131072; pitch *= 2) {
      for (int order = 0; order < kOrders; ++order) {
        const double ps = row_ps<write, tiles>(base, width, pitch, order, unused);
        std::printf("%s,%d,%u,%u,%s,%.2f\n", write ? "write" : "read", tiles, width, pitch, kNames[order], ps);
      }
    }
  }
}

int main() {
  char* base;
  uint32_t* unused;
  CHECK(cudaMalloc(&base, kBytes));
  CHECK(cudaMalloc(&unused, sizeof(*unused)));
  CHECK(cudaMemset(base, 0, kBytes));
  for (int warm = 0; warm < 20; ++warm) row_ps<false, 1>(base, 512, 4096, kAcross, unused);
  std::printf("what,tiles,width_bytes,pitch_bytes,order,ps\n");
  measure<false, 1>(base, unused);
  measure<false, 4>(base, unused);
  measure<true, 1>(base, unused);
  measure<true, 4>(base, unused);
}
