"""Faults that change an answer rather than stop a call. Words: the simulator's program, the node, its state folder."""

import ctypes
import subprocess
import sys
import time

import pynvml as nvml

import mig

SIMULATOR, NODE, STATE = sys.argv[1:]


def simulator(word, *rest):
    subprocess.run([SIMULATOR, word, "--state", STATE, NODE, *rest], check=True, timeout=20)


def fault(text):
    simulator("fault", "clear")
    simulator("fault", "add", text)


nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)

# The mode reads as before for a time, and then as it is.
simulator("set", "0", "off")
fault("fn=nvmlDeviceGetMigMode stale=400ms")
assert nvml.nvmlDeviceSetMigMode(gpu, mig.ENABLE) == 0
assert nvml.nvmlDeviceGetMigMode(gpu) == [0, 0]
time.sleep(0.45)
assert nvml.nvmlDeviceGetMigMode(gpu) == [1, 1]

# SetMigMode's activation status; the mode waits for a reset.
for status in (nvml.NVML_ERROR_IN_USE, nvml.NVML_ERROR_RESET_REQUIRED):
    fault(f"fn=nvmlDeviceSetMigMode activation={status}")
    assert nvml.nvmlDeviceSetMigMode(gpu, mig.DISABLE) == status
    assert nvml.nvmlDeviceGetMigMode(gpu) == [1, 0]
    # What is set to what it is needs nothing.
    assert nvml.nvmlDeviceSetMigMode(gpu, mig.ENABLE) == 0
    assert nvml.nvmlDeviceGetMigMode(gpu) == [1, 1]

# A sparse MIG index.
simulator("set", "0", "1g@0 1g@1 2g@2")
plain = [nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index) for index in range(3)]
uuids = [nvml.nvmlDeviceGetUUID(device) for device in plain]
fault("fn=nvmlDeviceGet* gap=1")
mig.refused(nvml.NVML_ERROR_NOT_FOUND, nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 1)
sparse = [nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index) for index in (0, 2, 3)]
assert [nvml.nvmlDeviceGetUUID(device) for device in sparse] == uuids
assert [nvml.nvmlDeviceGetIndex(device) for device in sparse] == [0, 2, 3]

# A profile with an instance count of 0, and one at enumeration value 17.
fault("fn=nvmlDeviceGetGpuInstanceProfileInfo* profile=9 count=0")
by_id = {info.id: info for info in mig.gpu_profiles(gpu).values()}
assert by_id[9].instanceCount == 0 and by_id[14].instanceCount == 3
fault("fn=nvmlDeviceGetGpuInstanceProfileInfo* profile=9 slot=17")
assert nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, 17, 2).id == 9
mig.refused(nvml.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 2, 2)

# Destroying answers IN_USE for a time.
(last,) = mig.instances(gpu, 14, 3)
for compute in mig.compute_profiles(last).values():
    for handle in mig.computes(last, compute.id, compute.instanceCount):
        nvml.nvmlComputeInstanceDestroy(handle)
fault("fn=nvmlGpuInstanceDestroy for=300ms code=IN_USE")
mig.refused(nvml.NVML_ERROR_IN_USE, nvml.nvmlGpuInstanceDestroy, last)
time.sleep(0.35)
nvml.nvmlGpuInstanceDestroy(last)

# Every call takes its time, and those that take none again.
simulator("fault", "clear")
simulator("latency", "slow", "--scale", "0.1")
begin = time.monotonic()
nvml.nvmlDeviceSetMigMode(gpu, mig.ENABLE)
assert time.monotonic() - begin >= 0.6
simulator("latency", "none")

# A GPU that falls off in the middle of a change is lost to every program.
fault("fn=nvmlDeviceCreateGpuInstance* gpu=0 nth=2 lost")
mig.destroy_all(gpu)
mig.create(gpu, 19, 0, 1)
mig.refused(nvml.NVML_ERROR_GPU_IS_LOST, mig.create, gpu, 19, 1, 1)
mig.refused(nvml.NVML_ERROR_GPU_IS_LOST, nvml.nvmlDeviceGetMigMode, gpu)
nvml.nvmlShutdown()
