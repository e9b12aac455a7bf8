"""What the test scripts share: the MIG half of nvidia-ml-py in a few words."""

from ctypes import byref, c_uint

import pynvml as nvml

ENABLE, DISABLE = nvml.NVML_DEVICE_MIG_ENABLE, nvml.NVML_DEVICE_MIG_DISABLE


def refused(error, function, *arguments):
    """The call must answer this error."""
    try:
        answer = function(*arguments)
    except nvml.NVMLError as problem:
        assert problem.value == error, f"{function.__name__}{arguments}: {problem} for {error}"
        return
    raise AssertionError(f"{function.__name__}{arguments}: answered {answer}, not error {error}")


def gpu_profiles(gpu, version=2):
    """{slot: profile info} of a GPU; slots that the chip lacks answer NOT_SUPPORTED, those past the end of the
    driver's own enumeration INVALID_ARGUMENT."""
    found = {}
    for slot in range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            found[slot] = nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, slot, version)
        except nvml.NVMLError_NotSupported:
            pass
        except nvml.NVMLError_InvalidArgument:
            break
    return found


def compute_profiles(instance, version=2):
    """{slot: compute profile info} of a GPU instance."""
    found = {}
    for slot in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            found[slot] = nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, slot, 0, version)
        except nvml.NVMLError_NotSupported:
            pass
        except nvml.NVMLError_InvalidArgument:
            break
    return found


def places(gpu, profile):
    """[(start, size)] of a GPU instance profile."""
    count = c_uint(0)
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile, None, byref(count))
    array = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
    nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile, array, byref(count))
    return [(place.start, place.size) for place in array[: count.value]]


def compute_places(instance, profile):
    """[(start, size)] of a compute instance profile."""
    count = c_uint(0)
    nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements(instance, profile, None, byref(count))
    array = (nvml.c_nvmlComputeInstancePlacement_t * count.value)()
    nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements(instance, profile, array, byref(count))
    return [(place.start, place.size) for place in array[: count.value]]


def instances(gpu, profile, most):
    """GPU instances of one profile."""
    array, count = (nvml.c_nvmlGpuInstance_t * max(most, 1))(), c_uint(0)
    nvml.nvmlDeviceGetGpuInstances(gpu, profile, array, byref(count))
    return list(array[: count.value])


def computes(instance, profile, most):
    """Compute instances of one profile in a GPU instance."""
    array, count = (nvml.c_nvmlComputeInstance_t * max(most, 1))(), c_uint(0)
    nvml.nvmlGpuInstanceGetComputeInstances(instance, profile, array, byref(count))
    return list(array[: count.value])


def create(gpu, profile, start, size):
    """A GPU instance at a place."""
    place = nvml.c_nvmlGpuInstancePlacement_t(start, size)
    return nvml.nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, byref(place))


def whole(instance, slices):
    """The compute profile that spans a GPU instance of so many compute slices."""
    found = [info for info in compute_profiles(instance).values() if info.sliceCount == slices]
    return found[0]


def destroy_all(gpu):
    """Leaves a GPU without instances."""
    for info in gpu_profiles(gpu).values():
        for instance in instances(gpu, info.id, info.instanceCount):
            for compute in compute_profiles(instance).values():
                for handle in computes(instance, compute.id, compute.instanceCount):
                    nvml.nvmlComputeInstanceDestroy(handle)
            nvml.nvmlGpuInstanceDestroy(instance)
