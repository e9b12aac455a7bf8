/* Waits for an XID on GPU 0 and tells it: how a health monitor meets one.
 *
 * cc xid.c -o xid -ldl
 * nvml-simulator run 1xh100-sxm-80gb -- ./xid &
 * nvml-simulator xid 1xh100-sxm-80gb 0 79
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *handle;
struct event {
    handle device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
};

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return found;
}

static void check(int code, const char *what)
{
    if (code) {
        fprintf(stderr, "%s: %d\n", what, code);
        exit(1);
    }
}

int main(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(void) = function("nvmlInit_v2");
    int (*by_index)(unsigned int, handle *) = function("nvmlDeviceGetHandleByIndex_v2");
    int (*create)(handle *) = function("nvmlEventSetCreate");
    int (*watch)(handle, unsigned long long, handle) = function("nvmlDeviceRegisterEvents");
    int (*await)(handle, struct event *, unsigned int) = function("nvmlEventSetWait_v2");
    int (*leave)(void) = function("nvmlShutdown");

    handle device, set;
    struct event event;
    check(init(), "nvmlInit");
    check(by_index(0, &device), "nvmlDeviceGetHandleByIndex");
    check(create(&set), "nvmlEventSetCreate");
    check(watch(device, 0x8 /* nvmlEventTypeXidCriticalError */, set), "nvmlDeviceRegisterEvents");
    puts("watching");
    fflush(stdout);
    check(await(set, &event, 30000), "nvmlEventSetWait");
    printf("XID %llu\n", event.data);
    return leave();
}
