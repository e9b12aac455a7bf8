"""Calls every function of the library with NULL and zero for all arguments but the first, which is each of: NULL, a
GPU, a MIG device, a GPU instance, a compute instance, an event set, a GPM sample, a stale handle, and no handle at
all. Each must come back with a code that nvml.h has. Prints how many calls were made."""

import faulthandler
import re
from ctypes import c_int, c_uint64, c_void_p, cast

import pynvml as nvml

import mig

faulthandler.enable()
source = open(nvml.__file__).read()
names = sorted(set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', source)))
names = [n for n in names if n not in ("nvmlErrorString", "nvmlShutdown") and not n.startswith("nvmlInit")]

nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
nvml.nvmlDeviceSetMigMode(gpu, mig.ENABLE)
profile = min(mig.gpu_profiles(gpu).values(), key=lambda info: info.sliceCount).id


def instance():
    """A GPU instance, its compute instance, and their MIG device."""
    made = nvml.nvmlDeviceCreateGpuInstance(gpu, profile)
    compute = nvml.nvmlGpuInstanceCreateComputeInstance(made, 0)
    return made, compute, nvml.nvmlComputeInstanceGetInfo_v2(compute).device


def handles():
    """Everything that can stand as the first argument."""
    gone = instance()
    nvml.nvmlComputeInstanceDestroy(gone[1])
    nvml.nvmlGpuInstanceDestroy(gone[0])
    live = instance()
    sets = nvml.nvmlEventSetCreate(), nvml.nvmlGpmSampleAlloc()
    all_of = [gpu, *live, *gone, *sets]
    return [cast(handle, c_void_p).value for handle in all_of] + [0, 1, 0xDEADBEEF, (1 << 64) - 1]


calls = 0
for name in names:
    function = getattr(nvml.nvmlLib, name)
    function.restype, function.argtypes = c_int, None
    # Functions whose first argument is a place to write to would follow it: no handle is one.
    writes = re.match(r"nvml(System|Unit|GetVgpu|GetExcluded|SetVgpu|EventSetCreate|GpmSampleAlloc|GpmMetricsGet)", name)
    texts = re.match(r"nvmlDeviceGet(Count|HandleBy)|nvmlDevice(ModifyDrain|QueryDrain|RemoveGpu|DiscoverGpus)", name)
    for handle in [0] if writes or texts or name == "nvmlVgpuTypeGetMaxInstancesPerGpuInstance" else handles():
        code = function(c_uint64(handle), *[c_uint64(0)] * 7)
        assert code in (0, 2, 3, 4, 6, 7, 10, 19, 21, 23, 25), f"{name}({handle:#x}, NULL …) = {code}"
        calls += 1
    mig.destroy_all(gpu)
nvml.nvmlShutdown()
print(calls)
