// What CUDA and HIP give device code, for a C++ compiler on the CPU; `runtime.cpp` is behind it.
//
// Arithmetic is exact enough for addresses: half types compute in float. What is missing here does not compile, and is
// named with its line. Vector types are aligned, so that a load of one is one access, as on the GPU.
#pragma once
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

struct SwzArgument { int64_t kind, whole; double real; };  // 0 a tensor's offset, 1 an integer, 2 a float
extern void swz_entry(const SwzArgument *given, size_t count);
void swz_barrier();
unsigned swz_lane();
void swz_exchange(const void *mine, void *found, unsigned bytes, int from);
bool swz_is_here(int lane);
void swz_refuse(const char *what, int line);
void *swz_pointer(int64_t offset);
extern "C" void *swz_copy(void *to, const void *from, size_t bytes);
extern char swz_dynamic[];

#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __CUDA_ALIGN__(n) __attribute__((aligned(n)))
#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_PI_F 3.14159265358979f

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define SWZ_VECTORS(T, N, A2, A4) \
  struct N##1 { T x; }; \
  struct alignas(A2) N##2 { T x, y; }; \
  struct N##3 { T x, y, z; }; \
  struct alignas(A4) N##4 { T x, y, z, w; }; \
  inline N##1 make_##N##1(T x) { return {x}; } \
  inline N##2 make_##N##2(T x, T y) { return {x, y}; } \
  inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; } \
  inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SWZ_VECTORS(signed char, char, 2, 4)
SWZ_VECTORS(unsigned char, uchar, 2, 4)
SWZ_VECTORS(short, short, 4, 8)
SWZ_VECTORS(unsigned short, ushort, 4, 8)
SWZ_VECTORS(int, int, 8, 16)
SWZ_VECTORS(unsigned, uint, 8, 16)
SWZ_VECTORS(long, long, 16, 16)
SWZ_VECTORS(unsigned long, ulong, 16, 16)
SWZ_VECTORS(long long, longlong, 16, 16)
SWZ_VECTORS(unsigned long long, ulonglong, 16, 16)
SWZ_VECTORS(float, float, 8, 16)
SWZ_VECTORS(double, double, 16, 16)
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  operator uint3() const { return {x, y, z}; }
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern int warpSize;

#if defined(__HIPCC__)  // HIP's vector types have operators
#define SWZ_OPERATOR(V, O) \
  inline V##2 operator O(V##2 a, V##2 b) { return {a.x O b.x, a.y O b.y}; } \
  inline V##4 operator O(V##4 a, V##4 b) { return {a.x O b.x, a.y O b.y, a.z O b.z, a.w O b.w}; }
#define SWZ_OPERATORS(V) SWZ_OPERATOR(V, +) SWZ_OPERATOR(V, -) SWZ_OPERATOR(V, *) SWZ_OPERATOR(V, /)
SWZ_OPERATORS(float)
SWZ_OPERATORS(double)
SWZ_OPERATORS(int)
#endif

// half and bfloat16

struct __half {
  _Float16 v;
  __half() = default;
  __half(float f) : v((_Float16)f) {}
  __half(double f) : v((_Float16)f) {}
  __half(int i) : v((_Float16)(float)i) {}
  operator float() const { return (float)v; }
};
struct __nv_bfloat16 {
  uint16_t v;
  __nv_bfloat16() = default;
  __nv_bfloat16(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    v = f != f ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
  __nv_bfloat16(double f) : __nv_bfloat16((float)f) {}
  __nv_bfloat16(int i) : __nv_bfloat16((float)i) {}
  operator float() const {
    uint32_t bits = (uint32_t)v << 16;
    float found;
    memcpy(&found, &bits, 4);
    return found;
  }
};
#define SWZ_ASSIGN(H, O) inline H &operator O##=(H &a, H b) { return a = H((float)a O (float)b); } \
  inline H operator O(H a, H b) { return H((float)a O (float)b); }
#define SWZ_PAIR(P, O) inline P operator O(P a, P b) { return {a.x O b.x, a.y O b.y}; }
#define SWZ_SMALL(H, P, NAME, NAME2, TO_PAIR, OF_PAIR) \
  struct alignas(4) P { H x, y; }; \
  SWZ_ASSIGN(H, +) SWZ_ASSIGN(H, -) SWZ_ASSIGN(H, *) SWZ_ASSIGN(H, /) \
  SWZ_PAIR(P, +) SWZ_PAIR(P, -) SWZ_PAIR(P, *) SWZ_PAIR(P, /) \
  inline H __float2##NAME(float f) { return H(f); } \
  inline H __float2##NAME##_rn(float f) { return H(f); } \
  inline H __float2##NAME##_rz(float f) { return H(f); } \
  inline float __##NAME##2float(H h) { return h; } \
  inline float2 OF_PAIR(P p) { return {(float)p.x, (float)p.y}; } \
  inline P TO_PAIR(float2 f) { return {H(f.x), H(f.y)}; } \
  inline P __floats2##NAME2##_rn(float a, float b) { return {H(a), H(b)}; } \
  inline P __float2##NAME2##_rn(float a) { return {H(a), H(a)}; } \
  inline P __halves2##NAME2(H a, H b) { return {a, b}; } \
  inline P __##NAME##2##NAME2(H a) { return {a, a}; } \
  inline P make_##NAME2(H a, H b) { return {a, b}; } \
  inline H __low2##NAME(P p) { return p.x; } \
  inline H __high2##NAME(P p) { return p.y; } \
  inline float __low2float(P p) { return p.x; } \
  inline float __high2float(P p) { return p.y; } \
  inline H __hadd(H a, H b) { return a + b; } \
  inline H __hsub(H a, H b) { return a - b; } \
  inline H __hmul(H a, H b) { return a * b; } \
  inline H __hdiv(H a, H b) { return a / b; } \
  inline H __hneg(H a) { return H(-(float)a); } \
  inline H __habs(H a) { return H(std::fabs((float)a)); } \
  inline H __hfma(H a, H b, H c) { return H((float)a * (float)b + (float)c); } \
  inline H __hmax(H a, H b) { return (float)a > (float)b ? a : b; } \
  inline H __hmin(H a, H b) { return (float)a < (float)b ? a : b; } \
  inline bool __hgt(H a, H b) { return (float)a > (float)b; } \
  inline bool __hlt(H a, H b) { return (float)a < (float)b; } \
  inline bool __hisnan(H a) { return (float)a != (float)a; } \
  inline P __hadd2(P a, P b) { return a + b; } \
  inline P __hsub2(P a, P b) { return a - b; } \
  inline P __hmul2(P a, P b) { return a * b; } \
  inline P __hfma2(P a, P b, P c) { return a * b + c; } \
  inline P __hmax2(P a, P b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
  inline P __hmin2(P a, P b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
  inline P __habs2(P a) { return {__habs(a.x), __habs(a.y)}; } \
  inline H hexp(H a) { return H(std::exp((float)a)); } \
  inline H hlog(H a) { return H(std::log((float)a)); } \
  inline H hsqrt(H a) { return H(std::sqrt((float)a)); } \
  inline H hrsqrt(H a) { return H(1 / std::sqrt((float)a)); }
SWZ_SMALL(__half, __half2, half, half2, __float22half2_rn, __half22float2)
SWZ_SMALL(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162, __float22bfloat162_rn, __bfloat1622float2)
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16, __hip_bfloat16, hip_bfloat16;
typedef __nv_bfloat162 nv_bfloat162, __hip_bfloat162;
inline unsigned short __half_as_ushort(__half h) { unsigned short u; memcpy(&u, &h, 2); return u; }
inline __half __ushort_as_half(unsigned short u) { __half h; memcpy(&h, &u, 2); return h; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.v; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short u) { __nv_bfloat16 h; h.v = u; return h; }
template <class T> inline int __half2int_rn(T h) { return (int)std::nearbyint((float)h); }

// loads and stores with hints

template <class T> inline T __ldg(const T *at) { return *at; }
template <class T> inline T __ldcs(const T *at) { return *at; }
template <class T> inline T __ldca(const T *at) { return *at; }
template <class T> inline T __ldcg(const T *at) { return *at; }
template <class T> inline T __ldlu(const T *at) { return *at; }
template <class T> inline T __ldcv(const T *at) { return *at; }
template <class T> inline void __stcs(T *at, T value) { *at = value; }
template <class T> inline void __stcg(T *at, T value) { *at = value; }
template <class T> inline void __stwb(T *at, T value) { *at = value; }
template <class T> inline void __stwt(T *at, T value) { *at = value; }
template <class T> inline T __builtin_nontemporal_load(const T *at) { return *at; }
template <class T, class V> inline void __builtin_nontemporal_store(V value, T *at) { *at = value; }
inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes, size_t = 0) { swz_copy(to, from, bytes); }
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}

// a workgroup, a warp

inline void __syncthreads() { swz_barrier(); }
inline void __syncwarp(unsigned long long = ~0ull) { char a = 0, b; swz_exchange(&a, &b, 1, -1); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
template <class T> inline T swz_from(T value, int lane) {
  T found = value;
  swz_exchange(&value, &found, sizeof(T), lane);
  return found;
}
inline int swz_part(int width) { return (int)swz_lane() / width * width; }
template <class T> inline T __shfl(T v, int lane, int width = warpSize) { return swz_from(v, swz_part(width) + (lane & (width - 1))); }
template <class T> inline T __shfl_xor(T v, int mask, int width = warpSize) {
  int to = (int)swz_lane() ^ mask;
  return swz_from(v, to < swz_part(width) + width ? to : (int)swz_lane());
}
template <class T> inline T __shfl_down(T v, unsigned by, int width = warpSize) {
  int to = (int)swz_lane() + (int)by;
  return swz_from(v, to < swz_part(width) + width ? to : (int)swz_lane());
}
template <class T> inline T __shfl_up(T v, unsigned by, int width = warpSize) {
  int to = (int)swz_lane() - (int)by;
  return swz_from(v, to >= swz_part(width) ? to : (int)swz_lane());
}
template <class T> inline T __shfl_sync(unsigned long long, T v, int lane, int width = warpSize) { return __shfl(v, lane, width); }
template <class T> inline T __shfl_xor_sync(unsigned long long, T v, int mask, int width = warpSize) { return __shfl_xor(v, mask, width); }
template <class T> inline T __shfl_down_sync(unsigned long long, T v, unsigned by, int width = warpSize) { return __shfl_down(v, by, width); }
template <class T> inline T __shfl_up_sync(unsigned long long, T v, unsigned by, int width = warpSize) { return __shfl_up(v, by, width); }
template <class T, class F> inline T swz_over_warp(unsigned long long mask, T value, T first, F join) {
  T all = first;
  for (int lane = 0; lane < warpSize; ++lane) {
    T other = swz_from(value, lane);
    if ((mask >> lane & 1) && swz_is_here(lane)) all = join(all, other);
  }
  return all;
}
inline unsigned long long swz_ballot(unsigned long long mask, int yes) {
  unsigned long long mine = yes ? 1ull << swz_lane() : 0;
  return swz_over_warp(mask, mine, 0ull, [](unsigned long long a, unsigned long long b) { return a | b; });
}
#if defined(__HIPCC__)
inline unsigned long long __ballot(int yes) { return swz_ballot(~0ull, yes); }
#else
inline unsigned __ballot_sync(unsigned mask, int yes) { return (unsigned)swz_ballot(mask, yes); }
#endif
inline unsigned long long __activemask() { return swz_ballot(~0ull, 1); }
inline int __any_sync(unsigned long long mask, int yes) { return swz_ballot(mask, yes) != 0; }
inline int __all_sync(unsigned long long mask, int yes) { return swz_ballot(mask, !yes) == 0; }
inline int __any(int yes) { return swz_ballot(~0ull, yes) != 0; }
inline int __all(int yes) { return swz_ballot(~0ull, !yes) == 0; }
template <class T> inline T __reduce_add_sync(unsigned mask, T v) { return swz_over_warp(mask, v, T(0), [](T a, T b) { return T(a + b); }); }
template <class T> inline T __reduce_max_sync(unsigned mask, T v) { return swz_over_warp(mask, v, v, [](T a, T b) { return a > b ? a : b; }); }
template <class T> inline T __reduce_min_sync(unsigned mask, T v) { return swz_over_warp(mask, v, v, [](T a, T b) { return a < b ? a : b; }); }

#define SWZ_ATOMIC(NAME, NEW) \
  template <class T, class V> inline T NAME(T *at, V given) { T old = *at, value = (T)given; *at = NEW; return old; } \
  template <class T, class V> inline T NAME##_block(T *at, V given) { return NAME(at, given); } \
  template <class T, class V> inline T NAME##_system(T *at, V given) { return NAME(at, given); }
SWZ_ATOMIC(atomicAdd, T(old + value))
SWZ_ATOMIC(unsafeAtomicAdd, T(old + value))
SWZ_ATOMIC(atomicSub, T(old - value))
SWZ_ATOMIC(atomicMax, (old > value ? old : value))
SWZ_ATOMIC(atomicMin, (old < value ? old : value))
SWZ_ATOMIC(atomicAnd, T(old & value))
SWZ_ATOMIC(atomicOr, T(old | value))
SWZ_ATOMIC(atomicXor, T(old ^ value))
SWZ_ATOMIC(atomicExch, value)
SWZ_ATOMIC(atomicInc, T(old >= value ? 0 : old + 1))
SWZ_ATOMIC(atomicDec, T(old == 0 || old > value ? value : old - 1))
template <class T, class A, class B> inline T atomicCAS(T *at, A expected, B value) {
  T old = *at;
  *at = old == (T)expected ? (T)value : old;
  return old;
}

// arithmetic

#define SWZ_MIN_MAX(T) \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
SWZ_MIN_MAX(int)
SWZ_MIN_MAX(unsigned)
SWZ_MIN_MAX(long)
SWZ_MIN_MAX(unsigned long)
SWZ_MIN_MAX(long long)
SWZ_MIN_MAX(unsigned long long)
SWZ_MIN_MAX(float)
SWZ_MIN_MAX(double)
template <class A, class B> inline std::common_type_t<A, B> min(A a, B b) { std::common_type_t<A, B> x = a, y = b; return y < x ? y : x; }
template <class A, class B> inline std::common_type_t<A, B> max(A a, B b) { std::common_type_t<A, B> x = a, y = b; return x < y ? y : x; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rsqrt(float x) { return 1 / std::sqrt(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
#define __expf(x) std::exp((float)(x))
#define __exp2f(x) std::exp2((float)(x))
#define __logf(x) std::log((float)(x))
#define __log2f(x) std::log2((float)(x))
#define __powf(x, y) std::pow((float)(x), (float)(y))
#define __sinf(x) std::sin((float)(x))
#define __cosf(x) std::cos((float)(x))
#define __tanf(x) std::tan((float)(x))
inline void __sincosf(float x, float *s, float *c) { *s = std::sin(x), *c = std::cos(x); }
inline float exp10f(float x) { return std::pow(10.0f, x); }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __umul24(unsigned a, unsigned b) { return a * b; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline int __mulhi(int a, int b) { return (long long)a * b >> 32; }
inline unsigned __brev(unsigned x) { unsigned y = 0; for (int i = 0; i < 32; ++i) y |= (x >> i & 1) << (31 - i); return y; }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned found = 0;
  for (int i = 0; i < 4; ++i) found |= (unsigned)(both >> (8 * (s >> 4 * i & 7)) & 255) << 8 * i;
  return found;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i);
  return c;
}
#define SWZ_AS(NAME, TO, FROM) inline TO NAME(FROM from) { TO to; memcpy(&to, &from, sizeof to); return to; }
SWZ_AS(__float_as_int, int, float)
SWZ_AS(__float_as_uint, unsigned, float)
SWZ_AS(__int_as_float, float, int)
SWZ_AS(__uint_as_float, float, unsigned)
SWZ_AS(__longlong_as_double, double, long long)
SWZ_AS(__double_as_longlong, long long, double)
inline int __float2int_rn(float x) { return (int)std::nearbyint(x); }
inline int __float2int_rd(float x) { return (int)std::floor(x); }
inline int __float2int_rz(float x) { return (int)x; }
inline unsigned __float2uint_rn(float x) { return (unsigned)std::nearbyint(x); }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline long long clock64() { return 0; }
inline int clock() { return 0; }

// groups of threads

namespace cooperative_groups {
struct thread_block {
  static unsigned thread_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static void sync() { swz_barrier(); }
};
inline thread_block this_thread_block() { return {}; }
template <unsigned N, class Parent = thread_block> struct thread_block_tile {
  static unsigned thread_rank() { return thread_block::thread_rank() % N; }
  static unsigned num_threads() { return N; }
  static unsigned size() { return N; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / N; }
  static unsigned meta_group_size() { return (thread_block::num_threads() + N - 1) / N; }
  static void sync() { __syncwarp(); }
  template <class T> T shfl(T v, int lane) const { return __shfl(v, lane, N); }
  template <class T> T shfl_down(T v, unsigned by) const { return __shfl_down(v, by, N); }
  template <class T> T shfl_up(T v, unsigned by) const { return __shfl_up(v, by, N); }
  template <class T> T shfl_xor(T v, int mask) const { return __shfl_xor(v, mask, N); }
};
template <unsigned N, class G> inline thread_block_tile<N, G> tiled_partition(const G &) { return {}; }
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct greater { T operator()(T a, T b) const { return a > b ? a : b; } };
template <class T> struct less { T operator()(T a, T b) const { return a < b ? a : b; } };
template <unsigned N, class P, class T, class F> inline T reduce(const thread_block_tile<N, P> &, T v, F join) {
  for (unsigned by = N / 2; by; by /= 2) v = join(v, __shfl_xor(v, by, N));
  return v;
}
template <class G> inline void sync(const G &group) { group.sync(); }
}  // namespace cooperative_groups

// the host's words that headers of kernels hold

enum cudaError_t { cudaSuccess };
typedef struct CUstream_st *cudaStream_t;
typedef cudaError_t hipError_t;
typedef cudaStream_t hipStream_t;
const hipError_t hipSuccess = cudaSuccess;
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline hipError_t hipGetLastError() { return hipSuccess; }
inline const char *cudaGetErrorString(cudaError_t) { return ""; }
inline const char *hipGetErrorString(hipError_t) { return ""; }

namespace cuda { namespace std = ::std; }

// the call of a kernel with what a declaration gives

template <class P> P swz_take(const SwzArgument &given) {
  static_assert(!std::is_class<P>::value || sizeof(P) == 2, "a parameter that is a struct is not followed");
  if constexpr (std::is_pointer<P>::value) return (P)swz_pointer(given.kind == 1 ? -1 : given.whole);
  else if constexpr (std::is_class<P>::value) return P((float)(given.kind == 2 ? given.real : (double)given.whole));
  else return given.kind == 2 ? (P)given.real : (P)given.whole;
}
template <class... P, size_t... I> void swz_call(void (*kernel)(P...), const SwzArgument *given, std::index_sequence<I...>) {
  kernel(swz_take<std::remove_cv_t<P>>(given[I])...);
}
template <class... P> void swz_call(void (*kernel)(P...), const SwzArgument *given, size_t count) {
  if (count != sizeof...(P)) swz_refuse("arguments", (int)sizeof...(P));
  swz_call(kernel, given, std::index_sequence_for<P...>());
}
