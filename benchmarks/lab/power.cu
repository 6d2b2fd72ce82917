// What an NVIDIA GPU draws while it waits, computes, or moves data: what lab's `power` compiles and runs.
//
// Prints CSV lines: what, bytes that lie together in memory, seconds, joules, launches, bytes moved, operations, SM clock.
// Joules are the board's own counter (NVML). Each kernel runs for a while before it is counted, then for six seconds.
// In pieces, data is read or written in an order of pieces drawn over the whole buffer.

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

constexpr int kUnroll = 8;
constexpr uint64_t kBig = 4ull << 30, kStream = 16ull << 30;
constexpr double kBefore = 0.7, kCounted = 6.0;  // the counter moves ten times a second

void* device;
int (*read_joules)(void*, unsigned long long*);
int (*read_clock)(void*, int, unsigned*);

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::exit(1);
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Shuffles the numbers 0 .. mask: products with odd numbers and shifted XORs are permutations.
__device__ uint64_t drawn(uint64_t piece, uint64_t mask, int half) {
  piece = (piece * 0x9E3779B97F4A7C15ull) & mask;
  piece ^= piece >> half;
  piece = (piece * 0xD6E8FEB86659FD93ull) & mask;
  return piece ^ (piece >> half);
}

__global__ void wait_cycles(long cycles) {
  long begin = clock64();
  while (clock64() - begin < cycles) __nanosleep(0);
}

// Four independent chains of fused multiply-adds a lane.
__global__ void multiply_add(float* sink, int steps) {
  float a = threadIdx.x, b = 1.5f, c = 2.5f, d = 3.5f;
  for (int i = 0; i < steps; ++i) {
    a = a * 1.0001f + 0.5f;
    b = b * 1.0001f + 0.5f;
    c = c * 1.0001f + 0.5f;
    d = d * 1.0001f + 0.5f;
  }
  if (a + b + c + d == 0.123f) *sink = a;
}

enum Way { kPastL1, kThroughL1, kWrite };

// Moves `n` items of 16 bytes, `piece` of which lie together; the buffer is a ring of mask + 1 items.
template <Way way>
__global__ void stream(uint4* data, uint64_t n, uint64_t mask, int piece, uint64_t pieces_mask, int half) {
  uint64_t threads = uint64_t(gridDim.x) * blockDim.x;
  uint4 sum = {0, 0, 0, 0};
  for (uint64_t first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; first < n; first += threads * kUnroll) {
    uint4 got[kUnroll];
    for (int i = 0; i < kUnroll; ++i) {
      uint64_t at = first + i * threads;
      if (piece) at = drawn(at / piece, pieces_mask, half) * piece + at % piece;
      uint4* place = data + (at & mask);
      if (way == kPastL1) got[i] = __ldcg(place);
      if (way == kThroughL1) got[i] = __ldca(place);
      if (way == kWrite) {
        uint32_t bits = uint32_t(at) * 2654435769u;
        *place = got[i] = make_uint4(bits, bits * 3, ~bits, bits * 7);
      }
    }
    for (const uint4& item : got) {
      sum.x ^= item.x;
      sum.y ^= item.y;
      sum.z ^= item.z;
      sum.w ^= item.w;
    }
  }
  if (sum.x == 0x1234567 && sum.y == 0x7654321) data[0] = sum;
}

template <class Launch>
void count(const char* what, int together, double bytes, double operations, Launch launch) {
  for (double begin = now_s(); now_s() - begin < kBefore;) {
    launch();
    cudaDeviceSynchronize();
  }
  unsigned long long before, after;
  unsigned clock = 0;
  long launches = 0;
  read_joules(device, &before);
  double begin = now_s();
  while (now_s() - begin < kCounted) {
    for (int i = 0; i < 4; ++i, ++launches) launch();
    read_clock(device, 1, &clock);
    cudaDeviceSynchronize();
  }
  double seconds = now_s() - begin;
  read_joules(device, &after);
  if (cudaGetLastError() != cudaSuccess) stop("a kernel failed");
  std::printf("%s,%d,%.4f,%.3f,%ld,%.6g,%.6g,%u\n", what, together, seconds, (after - before) / 1e3, launches,
              bytes * launches, operations * launches, clock);
  std::fflush(stdout);
}

template <Way way>
void count_stream(const char* what, uint4* data, uint64_t buffer, uint64_t bytes, int together = 0) {
  uint64_t pieces = together ? buffer / together : 1;
  int bits = 63 - __builtin_clzll(pieces);
  count(what, together, double(bytes), 0, [&] {
    stream<way><<<132 * 8, 256>>>(data, bytes / 16, buffer / 16 - 1, together / 16, pieces - 1, (bits + 1) / 2);
  });
}

int main() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!library) stop("libnvidia-ml.so.1 is missing: the driver brings it");
  reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"))();
  reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(0, &device);
  read_joules = reinterpret_cast<decltype(read_joules)>(dlsym(library, "nvmlDeviceGetTotalEnergyConsumption"));
  read_clock = reinterpret_cast<decltype(read_clock)>(dlsym(library, "nvmlDeviceGetClockInfo"));
  uint4* data;
  if (cudaMalloc(&data, kBig) != cudaSuccess) stop("4 GiB do not fit the GPU");
  std::vector<uint32_t> bits(1 << 24);
  std::mt19937 draw(0);
  for (uint32_t& word : bits) word = draw();
  for (uint64_t at = 0; at < kBig; at += 4 * bits.size())
    cudaMemcpy(reinterpret_cast<char*>(data) + at, bits.data(), 4 * bits.size(), cudaMemcpyHostToDevice);

  std::printf("what,together_bytes,seconds,joules,launches,bytes,operations,clock_mhz\n");
  count("wait of one wave an SM", 0, 0, 0, [] { wait_cycles<<<132, 32>>>(20000000); });
  count("wait of 64 waves an SM", 0, 0, 0, [] { wait_cycles<<<264, 1024>>>(20000000); });
  count("multiply-add", 0, 0, 132.0 * 8 * 256 * 8 * 500000,
        [&] { multiply_add<<<132 * 8, 256>>>(reinterpret_cast<float*>(data), 500000); });
  count_stream<kThroughL1>("read L1", data, 1 << 14, kStream);
  count_stream<kPastL1>("read L2", data, 1 << 24, kStream);
  count_stream<kWrite>("write L2", data, 1 << 24, kStream);
  count_stream<kPastL1>("read memory", data, kBig, kBig);
  for (int piece : {32, 64, 128, 256, 512, 2048}) count_stream<kPastL1>("read memory", data, kBig, kBig, piece);
  count_stream<kWrite>("write memory", data, kBig, kBig);
  for (int piece : {32, 64, 128, 256, 512, 2048}) count_stream<kWrite>("write memory", data, kBig, kBig, piece);
}
