"""Walks every MIG function of the binding on GPU 0, right and wrong calls both: each answers as NVIDIA's driver is
known to answer (nvml.h, public logs), and none crashes."""

from ctypes import byref, c_uint

import pynvml as nvml

import mig
from mig import refused

E = nvml
walked = set()


def call(function, *arguments):
    walked.add(function.__name__)
    return function(*arguments)


nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)

# MIG off: capable, and empty.
assert call(nvml.nvmlDeviceGetMigMode, gpu) == [0, 0]
assert call(nvml.nvmlDeviceIsMigDeviceHandle, gpu).value == 0
assert call(nvml.nvmlDeviceGetMaxMigDeviceCount, gpu) == 0
refused(E.NVML_ERROR_NOT_FOUND, nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlDeviceGetGpuInstanceId, gpu)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlDeviceGetComputeInstanceId, gpu)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, gpu)
refused(E.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetAttributes_v2, gpu)
profiles = mig.gpu_profiles(gpu)
assert profiles, "drivers since 550 list profiles while MIG is off"
any_profile = min(profiles.values(), key=lambda p: p.sliceCount)
refused(E.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceCreateGpuInstance, gpu, any_profile.id)
refused(E.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetGpuInstanceRemainingCapacity, gpu, any_profile.id)
refused(E.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetGpuInstanceById, gpu, 0)
refused(E.NVML_ERROR_NOT_SUPPORTED, mig.instances, gpu, any_profile.id, 7)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlDeviceSetMigMode, gpu, 2)

# On.
assert call(nvml.nvmlDeviceSetMigMode, gpu, mig.ENABLE) == 0
assert call(nvml.nvmlDeviceGetMigMode, gpu) == [1, 1]
most = call(nvml.nvmlDeviceGetMaxMigDeviceCount, gpu)
assert most in (4, 7), most
refused(E.NVML_ERROR_NOT_FOUND, nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0)
refused(E.NVML_ERROR_NOT_FOUND, nvml.nvmlDeviceGetGpuInstanceById, gpu, 14)
refused(E.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 5)  # 8 slices: no GPU
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlDeviceGetGpuInstanceProfileInfo, gpu, 99)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlDeviceCreateGpuInstance, gpu, 12345)
refused(E.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceSetComputeMode, gpu, nvml.NVML_COMPUTEMODE_DEFAULT)

for info in profiles.values():
    walked.add("nvmlDeviceGetGpuInstanceProfileInfo")
    by_id = call(nvml.nvmlDeviceGetGpuInstanceProfileInfoById, gpu, info.id)
    assert (by_id.id, by_id.sliceCount, by_id.memorySizeMB) == (info.id, info.sliceCount, info.memorySizeMB)
    count = c_uint(0)
    call(nvml.nvmlDeviceGetGpuInstancePossiblePlacements, gpu, info.id, None, byref(count))
    assert count.value == len(mig.places(gpu, info.id)) > 0
    assert call(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity, gpu, info.id) == info.instanceCount
    assert mig.instances(gpu, info.id, info.instanceCount) == []

# The largest instance that can be split, by the driver's own placement; then by hand.
whole = max(profiles.values(), key=lambda p: (p.sliceCount, -p.id))
instance = call(nvml.nvmlDeviceCreateGpuInstance, gpu, whole.id)
refused(E.NVML_ERROR_INSUFFICIENT_RESOURCES, nvml.nvmlDeviceCreateGpuInstance, gpu, any_profile.id)
assert call(nvml.nvmlDeviceGetGpuInstanceRemainingCapacity, gpu, any_profile.id) == 0
info = call(nvml.nvmlGpuInstanceGetInfo, instance)
assert info.profileId == whole.id and info.placement.start == 0
found = call(nvml.nvmlDeviceGetGpuInstanceById, gpu, info.id)
assert call(nvml.nvmlGpuInstanceGetInfo, found).id == info.id
array, count = (nvml.c_nvmlGpuInstance_t * 7)(), c_uint(0)
call(nvml.nvmlDeviceGetGpuInstances, gpu, whole.id, array, byref(count))
assert count.value == 1
refused(E.NVML_ERROR_NOT_FOUND, nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 0)  # no compute instance yet

computes = mig.compute_profiles(instance)
one = computes[0]
walked.add("nvmlGpuInstanceGetComputeInstanceProfileInfo")
assert call(nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity, instance, one.id) == one.instanceCount
count = c_uint(0)
call(nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements, instance, one.id, None, byref(count))
assert count.value == one.instanceCount
handles = [call(nvml.nvmlGpuInstanceCreateComputeInstance, instance, one.id) for _ in range(one.instanceCount - 1)]
place = nvml.c_nvmlComputeInstancePlacement_t(one.instanceCount - 1, 1)
handles.append(call(nvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement, instance, one.id, byref(place)))
refused(E.NVML_ERROR_INSUFFICIENT_RESOURCES, nvml.nvmlGpuInstanceCreateComputeInstance, instance, one.id)
assert call(nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity, instance, one.id) == 0
array, count = (nvml.c_nvmlComputeInstance_t * 8)(), c_uint(0)
call(nvml.nvmlGpuInstanceGetComputeInstances, instance, one.id, array, byref(count))
assert count.value == one.instanceCount
refused(E.NVML_ERROR_NOT_FOUND, nvml.nvmlGpuInstanceGetComputeInstanceById, instance, 7)

name, uuids = nvml.nvmlDeviceGetName(gpu), set()
for index in range(one.instanceCount):
    device = call(nvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, index)
    assert call(nvml.nvmlDeviceIsMigDeviceHandle, device).value == 1
    assert call(nvml.nvmlDeviceGetGpuInstanceId, device) == info.id
    compute = call(nvml.nvmlDeviceGetComputeInstanceId, device)
    assert compute == index, "compute instance ids: lowest free first, devices in their order"
    parent = call(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device)
    assert nvml.nvmlDeviceGetUUID(parent) == nvml.nvmlDeviceGetUUID(gpu)
    assert nvml.nvmlDeviceGetName(device).startswith(f"{name} MIG 1c.")
    assert nvml.nvmlDeviceGetIndex(device) == index
    uuid = nvml.nvmlDeviceGetUUID(device)
    uuids.add(uuid)
    again = nvml.nvmlDeviceGetHandleByUUID(uuid)
    assert nvml.nvmlDeviceGetUUID(again) == uuid
    assert call(nvml.nvmlDeviceGetAttributes_v2, device).computeInstanceSliceCount == 1
    handle = call(nvml.nvmlGpuInstanceGetComputeInstanceById, instance, compute)
    got = call(nvml.nvmlComputeInstanceGetInfo_v2, handle)
    assert nvml.nvmlDeviceGetUUID(got.device) == uuid and got.id == compute
    assert nvml.nvmlDeviceGetMemoryInfo(device).total == whole.memorySizeMB << 20
    refused(E.NVML_ERROR_NOT_SUPPORTED, nvml.nvmlDeviceGetUtilizationRates, device)
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device) == []
assert len(uuids) == one.instanceCount
refused(E.NVML_ERROR_NOT_FOUND, nvml.nvmlDeviceGetHandleByUUID, "MIG-00000000-0000-0000-0000-000000000000")

# Order of destruction, and handles that outlive what they named.
refused(E.NVML_ERROR_IN_USE, nvml.nvmlGpuInstanceDestroy, instance)
refused(E.NVML_ERROR_IN_USE, nvml.nvmlDeviceSetMigMode, gpu, mig.DISABLE)
device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
for handle in handles:
    call(nvml.nvmlComputeInstanceDestroy, handle)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlComputeInstanceDestroy, handles[0])
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlDeviceGetUUID, device)
call(nvml.nvmlGpuInstanceDestroy, instance)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlGpuInstanceGetInfo, instance)
refused(E.NVML_ERROR_INVALID_ARGUMENT, nvml.nvmlGpuInstanceDestroy, nvml.c_nvmlGpuInstance_t())

# An illegal place, an occupied place.
small = any_profile
start, size = mig.places(gpu, small.id)[0]
walked.add("nvmlDeviceCreateGpuInstanceWithPlacement")
first = mig.create(gpu, small.id, start, size)
refused(E.NVML_ERROR_INSUFFICIENT_RESOURCES, mig.create, gpu, small.id, start, size)
refused(E.NVML_ERROR_INVALID_ARGUMENT, mig.create, gpu, small.id, 77, size)
nvml.nvmlGpuInstanceDestroy(first)

assert call(nvml.nvmlDeviceSetMigMode, gpu, mig.DISABLE) == 0
assert call(nvml.nvmlDeviceGetMigMode, gpu) == [0, 0]
nvml.nvmlShutdown()
refused(E.NVML_ERROR_UNINITIALIZED, nvml.nvmlDeviceGetMigMode, gpu)

# Nothing of MIG in the binding was left out.
words = ("Mig", "GpuInstance", "ComputeInstance")
known = {n for n in dir(nvml) if n.startswith("nvml") and any(word in n for word in words)}
known = {n for n in known if callable(getattr(nvml, n))}
# vGPU on MIG, and samples: not here.
known = {n for n in known if not any(word in n for word in ("Vgpu", "Gpm", "ActiveVgpus"))}
aliases = {
    "nvmlComputeInstanceGetInfo",
    "nvmlDeviceGetGpuInstanceProfileInfoByIdV",
    "nvmlDeviceGetGpuInstanceProfileInfoV",
    "nvmlGpuInstanceGetComputeInstanceProfileInfoV",
}
left = known - walked - aliases
assert not left, sorted(left)
