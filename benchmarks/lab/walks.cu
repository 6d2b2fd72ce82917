// Passes over matrices by tiles of 32 rows, few bytes wide: what lab's `walks` compiles and runs. Needs 2 GiB.
//
// Prints CSV lines: what is done, tiles of a workgroup, bytes of a row of a tile, bytes of a row of the matrix, in which
// order tiles are taken (across: the next one is to the right; down: below; drawn), and picoseconds a row of a tile. A
// copy reads one matrix and writes another, each in an order of its own (read-written).

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "check.cuh"

constexpr uint64_t kBytes = uint64_t(1) << 30;
constexpr int kRows = 32, kLane = 16, kCounted = 7;
constexpr uint32_t kOddPitch = 13248;  // 207 half lines, so that every second row begins within a line
enum What { kRead, kWrite, kCopy };
enum Order { kAcross, kDown, kDrawn, kOrders };
const char* const kDone[] = {"read", "write", "copy"};
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

// Where a thread's 16 bytes of a tile are: threads go along its rows.
__device__ uint4* at(char* base, uint32_t place, uint32_t count, uint32_t width, uint32_t pitch, int order) {
  const uint32_t across = pitch / width, down = count / across, lanes = width / kLane;
  const uint32_t tile = order == kDrawn ? drawn(place, count) : place;
  const uint32_t column = order == kDown ? tile / down : tile % across;
  const uint32_t row = (order == kDown ? tile % down : tile / across) * kRows + threadIdx.x / lanes;
  return reinterpret_cast<uint4*>(base + uint64_t(row) * pitch + column * width + threadIdx.x % lanes * kLane);
}

// What is read and not written is not used.
template <int what, int tiles>
__global__ void walk(char* base, uint32_t width, uint32_t pitch, int read, int written, uint32_t* unused) {
  const uint32_t count = gridDim.x * tiles;
  uint4 got[tiles];
#pragma unroll
  for (int i = 0; i < tiles; ++i) {
    const uint32_t place = blockIdx.x * tiles + i;
    got[i] = what == kWrite ? make_uint4(place, width, pitch, threadIdx.x)
                            : __ldcg(at(base, place, count, width, pitch, read));
  }
  if (what != kRead) {
#pragma unroll
    for (int i = 0; i < tiles; ++i)
      __stcg(at(base + kBytes, blockIdx.x * tiles + i, count, width, pitch, written), got[i]);
    return;
  }
  uint32_t all = 0;
  for (const uint4& one : got) all ^= one.x ^ one.y ^ one.z ^ one.w;
  if (all == 0x5eed) *unused = all;
}

// Median picoseconds for a row of a tile.
template <int what, int tiles>
double row_ps(char* base, uint32_t width, uint32_t pitch, int read, int written, uint32_t* unused) {
  const uint32_t across = pitch / width, count = kBytes / (uint64_t(pitch) * kRows) / tiles * tiles * across;
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  float took[kCounted];
  for (float& ms : took) {
    CHECK(cudaEventRecord(begin));
    walk<what, tiles><<<count / tiles, kRows * width / kLane>>>(base, width, pitch, read, written, unused);
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

template <int what, int tiles>
void measure(char* base, uint32_t* unused) {
  for (uint32_t width = 64; width <= (what == kCopy ? 128 : 512); width *= 2) {
    for (const uint32_t pitch : {4096u, 8192u, 16384u, 32768u, 65536u, 131072u, kOddPitch}) {
      if (what != kCopy && pitch == kOddPitch) continue;
      for (int read = 0; read < kOrders; ++read) {
        for (int written = 0; written < kOrders; ++written) {
          if (what != kCopy && read != written) continue;
          if (pitch % width || (pitch == kOddPitch && (read == kDrawn || written == kDrawn))) continue;
          const double ps = row_ps<what, tiles>(base, width, pitch, read, written, unused);
          std::printf("%s,%d,%u,%u,%s", kDone[what], tiles, width, pitch, kNames[read]);
          if (what == kCopy) std::printf("-%s", kNames[written]);
          std::printf(",%.2f\n", ps);
        }
      }
    }
  }
}

int main() {
  char* base;
  uint32_t* unused;
  CHECK(cudaMalloc(&base, 2 * kBytes));
  CHECK(cudaMalloc(&unused, sizeof(*unused)));
  CHECK(cudaMemset(base, 0, 2 * kBytes));
  for (int warm = 0; warm < 20; ++warm) row_ps<kRead, 1>(base, 512, 4096, kAcross, kAcross, unused);
  std::printf("what,tiles,width_bytes,pitch_bytes,order,ps\n");
  measure<kRead, 1>(base, unused);
  measure<kRead, 4>(base, unused);
  measure<kWrite, 1>(base, unused);
  measure<kWrite, 4>(base, unused);
  measure<kCopy, 1>(base, unused);
  measure<kCopy, 4>(base, unused);
}
