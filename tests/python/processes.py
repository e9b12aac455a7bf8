"""Who works on each GPU and each MIG device of GPU 0: [pid, bytes, GPU instance, compute instance] by kind, as JSON."""

import json

import pynvml as nvml

nvml.nvmlInit()
KINDS = {
    "compute": nvml.nvmlDeviceGetComputeRunningProcesses,
    "graphics": nvml.nvmlDeviceGetGraphicsRunningProcesses,
    "mps": nvml.nvmlDeviceGetMPSComputeRunningProcesses,
}


def found(device):
    none = 0xFFFFFFFF
    ids = lambda one: [None if id == none else id for id in (one.gpuInstanceId, one.computeInstanceId)]
    return {kind: [[one.pid, one.usedGpuMemory, *ids(one)] for one in of(device)] for kind, of in KINDS.items()}


gpus = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
migs = []
for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpus[0])):
    try:
        migs.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpus[0], index))
    except nvml.NVMLError_NotFound:
        break
print(json.dumps({"gpus": [found(gpu) for gpu in gpus], "migs": [found(mig) for mig in migs]}))
