"""Changes GPU 0: `on`, `off`, `create ID:START …`, `destroy ID:START …`, `clear`."""

import sys

import pynvml as nvml

import mig

nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
word, rest = sys.argv[1], [tuple(map(int, text.split(":"))) for text in sys.argv[2:]]
infos = {info.id: info for info in mig.gpu_profiles(gpu).values()}
if word in ("on", "off"):
    assert nvml.nvmlDeviceSetMigMode(gpu, mig.ENABLE if word == "on" else mig.DISABLE) == 0
    assert len(set(nvml.nvmlDeviceGetMigMode(gpu))) == 1
elif word == "create":
    for profile, start in rest:
        size = dict(mig.places(gpu, profile))[start]
        instance = mig.create(gpu, profile, start, size)
        compute = mig.whole(instance, infos[profile].sliceCount)
        nvml.nvmlGpuInstanceCreateComputeInstance(instance, compute.id)
elif word == "destroy":
    for profile, start in rest:
        for instance in mig.instances(gpu, profile, infos[profile].instanceCount):
            if nvml.nvmlGpuInstanceGetInfo(instance).placement.start != start:
                continue
            # The instance goes after what is in it.
            mig.refused(nvml.NVML_ERROR_IN_USE, nvml.nvmlGpuInstanceDestroy, instance)
            for compute in mig.compute_profiles(instance).values():
                for handle in mig.computes(instance, compute.id, compute.instanceCount):
                    nvml.nvmlComputeInstanceDestroy(handle)
            nvml.nvmlGpuInstanceDestroy(instance)
elif word == "clear":
    mig.destroy_all(gpu)
nvml.nvmlShutdown()
