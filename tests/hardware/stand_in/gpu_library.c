/* Stand-in for libamdhip64: host memory for the GPU's, one kernel that copies, each call written to STAND_IN_CALLS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int note(const char *what) {
    const char *path = getenv("STAND_IN_CALLS");
    if (path) {
        FILE *file = fopen(path, "a");
        fprintf(file, "%s\n", what);
        fclose(file);
    }
    const char *fails = getenv("STAND_IN_FAILS");
    return fails && strcmp(fails, what) == 0 ? 100 : 0;
}

int hipInit(unsigned flags) { (void)flags; return note("hipInit"); }
int hipModuleLoadData(void **module, const void *image) { *module = (void *)image; return note("hipModuleLoadData"); }
int hipModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    *function = strdup(name);
    return note("hipModuleGetFunction");
}
int hipMalloc(void **at, size_t size) { *at = malloc(size ? size : 1); return note("hipMalloc"); }
int hipMemcpyHtoD(void *to, void *from, size_t size) { memcpy(to, from, size); return note("hipMemcpyHtoD"); }
int hipMemcpyDtoH(void *to, void *from, size_t size) { memcpy(to, from, size); return note("hipMemcpyDtoH"); }
int hipMemset(void *at, int value, size_t size) { memset(at, value, size); return note("hipMemset"); }
int hipDeviceSynchronize(void) { return note("hipDeviceSynchronize"); }
int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                          unsigned shared, void *stream, void **arguments, void **extra) {
    char line[200];
    snprintf(line, sizeof line, "launch %s %u,%u,%u %u,%u,%u %u %d", (const char *)function, x, y, z, tx, ty, tz, shared,
             stream == NULL && extra == NULL);
    if (strncmp((const char *)function, "copy", 4) == 0) {
        float scale = *(float *)arguments[3];
        for (int i = 0; i < *(int *)arguments[2]; ++i)
            (*(float **)arguments[1])[i] = scale * (*(float **)arguments[0])[i];
    }
    return note(line);
}

/* libcuda's names for the same, and what only it has. */
int cuInit(unsigned flags) { return hipInit(flags); }
int cuModuleLoadData(void **module, const void *image) { return hipModuleLoadData(module, image); }
int cuModuleGetFunction(void **f, void *module, const char *name) { return hipModuleGetFunction(f, module, name); }
int cuMemAlloc_v2(void **at, size_t size) { return hipMalloc(at, size); }
int cuMemcpyHtoD_v2(void *to, void *from, size_t size) { return hipMemcpyHtoD(to, from, size); }
int cuMemcpyDtoH_v2(void *to, void *from, size_t size) { return hipMemcpyDtoH(to, from, size); }
int cuMemsetD8_v2(void *at, int value, size_t size) { return hipMemset(at, value, size); }
int cuCtxSynchronize(void) { return hipDeviceSynchronize(); }
int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
    return hipModuleLaunchKernel(f, x, y, z, tx, ty, tz, shared, stream, arguments, extra);
}
int cuDeviceGet(int *device, int number) { *device = number; return note("cuDeviceGet"); }
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = context; return 0; }
int cuCtxSetCurrent(void *context) { return context == NULL; }
int cuDeviceGetAttribute(int *value, int what, int device) { (void)device; *value = 232448; return what != 97; }
int cuFuncGetAttribute(int *value, int what, void *f) { (void)f; *value = 448; return what != 1; }
int cuFuncSetCacheConfig(void *f, int config) { (void)f; return config == 1 ? note("prefer shared") : 1; }
int cuFuncSetAttribute(void *f, int what, int value) {
    char line[60];
    (void)f;
    snprintf(line, sizeof line, "attribute %d %d", what, value);
    return note(line);
}
