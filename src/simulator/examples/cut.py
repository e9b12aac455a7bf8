"""Turns MIG on and cuts GPU 0 into two halves, by nvidia-ml-py: what a program under test would do.

nvml-simulator run 1xa100-40gb -- python3 cut.py
"""

import pynvml as n

n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
n.nvmlDeviceSetMigMode(gpu, n.NVML_DEVICE_MIG_ENABLE)
half = n.nvmlDeviceGetGpuInstanceProfileInfo(gpu, n.NVML_GPU_INSTANCE_PROFILE_3_SLICE)
for _ in range(half.instanceCount):
    gi = n.nvmlDeviceCreateGpuInstance(gpu, half.id)
    whole = n.nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, n.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE, 0)
    n.nvmlGpuInstanceCreateComputeInstance(gi, whole.id)
for index in range(half.instanceCount):
    mig = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
    print(n.nvmlDeviceGetName(mig), n.nvmlDeviceGetMemoryInfo(mig).total >> 20, "MiB")
n.nvmlShutdown()
