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
