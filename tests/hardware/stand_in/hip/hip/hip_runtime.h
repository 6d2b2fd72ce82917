// As much of HIP as a standalone file names, for a plain C++ compiler: one thread a workgroup can run, no device.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>

#define __host__
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(threads)
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline dim3 blockIdx(0, 0, 0), threadIdx(0, 0, 0);
inline void __syncthreads() {}
enum hipError_t { hipSuccess, hipErrorNoDevice };
enum hipMemcpyKind { hipMemcpyHostToDevice, hipMemcpyDeviceToHost };
using hipEvent_t = void*;
inline const char* hipGetErrorString(hipError_t) { return "no device behind this header"; }
inline hipError_t hipMalloc(void**, std::size_t) { return hipErrorNoDevice; }
inline hipError_t hipMemcpy(void*, const void*, std::size_t, hipMemcpyKind) { return hipErrorNoDevice; }
inline hipError_t hipMemset(void*, int, std::size_t) { return hipErrorNoDevice; }
inline hipError_t hipGetLastError() { return hipErrorNoDevice; }
inline hipError_t hipEventCreate(hipEvent_t*) { return hipErrorNoDevice; }
inline hipError_t hipEventRecord(hipEvent_t, void*) { return hipErrorNoDevice; }
inline hipError_t hipEventSynchronize(hipEvent_t) { return hipErrorNoDevice; }
inline hipError_t hipEventElapsedTime(float*, hipEvent_t, hipEvent_t) { return hipErrorNoDevice; }
template <class Kernel, class... Given>
void hipLaunchKernelGGL(Kernel kernel, dim3 grid, dim3, std::size_t, void*, Given... given) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) kernel(given...);
}
