"""Calls every function that NVIDIA's binding wraps, on GPU 0 in three forms: `whole`, then with MIG on and one
instance on it as `parent`, then as the instance's MIG device `mig`. Prints {function: [code, code, code]}; a GPU
without MIG has the first code alone.

What a function's arguments are follows from their names. The GPU is left as it was after each call.
"""

import faulthandler
import inspect
import json
import sys
from ctypes import byref, c_char, c_uint

import pynvml as nvml

import mig

# Helpers of the binding that call no driver.
NOT_WRAPPED = {"nvmlExceptionClass", "nvmlFriendlyObjectToStruct", "nvmlStructToFriendlyObject"}
FUNCTIONS = {
    name: function
    for name, function in inspect.getmembers(nvml, inspect.isfunction)
    if name.startswith("nvml") and name not in NOT_WRAPPED
}


def blank():
    """Any struct, all zero: it has room for the largest."""
    return (c_char * 65536)()


class Form:
    """A device in one of the three forms, and all that goes with it."""

    def __init__(self, name, device, gpu, profile=None, instance=None, compute=None):
        self.name, self.device, self.gpu = name, device, gpu
        self.profile, self.compute_profile = profile, 0
        # On a whole GPU there are no instances: NULL. A MIG device is none either.
        null = nvml.c_nvmlGpuInstance_t(), nvml.c_nvmlComputeInstance_t()
        self.instance, self.compute = instance or null[0], compute or null[1]

    def value(self, function, name):
        """The argument `name` of a function."""
        if name in ("handle", "device", "handle1", "handle2", "device1", "device2", "migDevice"):
            # The binding names a GPU instance so here.
            if function.startswith("nvmlGpuInstance"):
                return self.instance
            return self.device
        if name == "profileId" and function.startswith("nvmlGpuInstance"):
            return self.compute_profile
        special = getattr(self, f"{function}_{name}", None)
        if special is not None:
            return special()
        return ARGUMENTS[name](self)

    # Arguments that their name does not tell.
    def nvmlDeviceGetPciInfoExt_c_info(self):
        return byref(nvml.nvmlPciInfoExt_v1_t(version=nvml.nvmlPciInfoExt_v1))

    def nvmlDeviceGetSramEccErrorStatus_status(self):
        return byref(nvml.c_nvmlEccSramErrorStatus_v1_t())

    def nvmlDeviceGetGpuFabricInfoV_gpuFabricInfo(self):
        return byref(nvml.c_nvmlGpuFabricInfo_v3_t())

    def nvmlDeviceGetHandleByUUIDV_type(self):
        return nvml.NVML_UUID_TYPE_ASCII

    def nvmlGpuInstanceGetComputeInstanceProfileInfo_profile(self):
        return 0

    def nvmlGpuInstanceGetComputeInstanceProfileInfoV_profile(self):
        return 0

    def nvmlDevicePowerSmoothingActivatePresetProfile_profile(self):
        return blank()

    def nvmlDevicePowerSmoothingUpdatePresetProfileParam_profile(self):
        return blank()

    def nvmlDevicePowerSmoothingSetState_state(self):
        return blank()

    def nvmlDeviceSetMigMode_mode(self):
        return 0 if self.name == "whole" else 1

    def nvmlGpuInstanceCreateComputeInstanceWithPlacement_placement(self):
        return byref(nvml.c_nvmlComputeInstancePlacement_t(1, 1))

    def nvmlDeviceGetRunningProcessDetailList_version(self):
        return nvml.c_nvmlProcessDetailList_v1_t().version or 0x1000018

    def nvmlDeviceGetMinMaxClockOfPState_pstate(self):
        return 0

    def nvmlDeviceSetEccMode_mode(self):
        return 1

    def nvmlDeviceGetSamples_sampling_type(self):
        return nvml.NVML_GPU_UTILIZATION_SAMPLES

    def nvmlSystemEventSetCreate_version(self):
        return nvml.nvmlSystemEventSetCreateRequest_v1

    def nvmlSystemEventSetFree_version(self):
        return nvml.nvmlSystemEventSetFreeRequest_v1

    def nvmlSystemRegisterEvents_version(self):
        return nvml.nvmlSystemRegisterEventRequest_v1

    def nvmlSystemEventSetWait_version(self):
        return nvml.nvmlSystemEventSetWaitRequest_v1

    def nvmlSystemEventSetWait_eventData(self):
        return (nvml.c_nvmlSystemEventData_v1_t * 1)()


def first_memory_clock(form):
    try:
        return nvml.nvmlDeviceGetSupportedMemoryClocks(form.gpu)[0]
    except nvml.NVMLError:
        return 1


def greatest_clock(form):
    try:
        return nvml.nvmlDeviceGetMaxClockInfo(form.gpu, nvml.NVML_CLOCK_SM)
    except nvml.NVMLError:
        return 1


def limit(form):
    try:
        return nvml.nvmlDeviceGetPowerManagementDefaultLimit(form.gpu)
    except nvml.NVMLError:
        return 1


def last_place(form):
    place = mig.places(form.gpu, form.profile)[-1] if mig.gpu_profiles(form.gpu) else (0, 1)
    return byref(nvml.c_nvmlGpuInstancePlacement_t(*place))


def two_samples(form):
    """GPM samples of the device at two times."""
    metrics = nvml.c_nvmlGpmMetricsGet_t()
    metrics.version, metrics.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, 1
    metrics.sample1, metrics.sample2 = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    metrics.metrics[0].metricId = 1
    for sample in (metrics.sample1, metrics.sample2):
        try:
            nvml.nvmlGpmSampleGet(form.device, sample)
        except nvml.NVMLError:
            pass
    return metrics


def constant(value):
    return lambda form: value


def struct(form):
    return blank()


ARGUMENTS = {
    "gpuInstance": lambda form: form.instance,
    "computeInstance": lambda form: form.compute,
    "profileId": lambda form: form.profile,
    "placement": last_place,
    "placementsRef": lambda form: (nvml.c_nvmlGpuInstancePlacement_t * 32)(),
    "gpuInstancesRef": lambda form: (nvml.c_nvmlGpuInstance_t * 32)(),
    "computeInstancesRef": lambda form: (nvml.c_nvmlComputeInstance_t * 32)(),
    "countRef": lambda form: byref(c_uint(32)),
    "gpuInstanceId": lambda form: nvml.nvmlGpuInstanceGetInfo(form.own).id if form.name != "whole" else 0,
    "eventSet": lambda form: nvml.nvmlEventSetCreate(),
    "setHandle": constant(nvml.c_nvmlSystemEventSet_t()),
    "gpmSample": lambda form: nvml.nvmlGpmSampleAlloc(),
    "metricsGet": two_samples,
    "uuid": lambda form: nvml.nvmlDeviceGetUUID(form.device),
    "pciBusId": lambda form: nvml.nvmlDeviceGetPciInfo(form.gpu).busId,
    "pciInfo": lambda form: nvml.nvmlDeviceGetPciInfo(form.gpu),
    "serial": lambda form: "0000000000000",
    "hostname": lambda form: "node",
    "maxMemClockMHz": first_memory_clock,
    "memoryClockMHz": first_memory_clock,
    "minMemClockMHz": first_memory_clock,
    "maxGraphicsClockMHz": greatest_clock,
    "minGpuClockMHz": greatest_clock,
    "maxGpuClockMHz": greatest_clock,
    "limit": limit,
    "powerLimit": limit,
    "cpuSetSize": constant(4),
    "nodeSetSize": constant(4),
    "fieldIds": constant([1]),
    "pid": constant(4194304 + 1000),
    "eventTypes": constant(nvml.nvmlEventTypeXidCriticalError),
    "level": constant(nvml.NVML_TOPOLOGY_SYSTEM),
    "eventDataSize": constant(1),
    "c_nonce": constant([0] * 32),
    "c_vgpu_placements": lambda form: nvml.c_nvmlVgpuCreatablePlacementInfo_v1_t(),
}
for name in (
    "vgpuInstance vgpuTypeId link mode counter type timeStamp profile index capability version counterType fan state "
    "errorType sensor apiType scope sourceFilter threshold enabled flags model offset heterogeneous_mode timeoutms "
    "engProfile freeze id encoderQueryType infoRomObject clockType pstate p2pIndex sampling_type sensorindex newState "
    "perfPolicyType isRestricted fanControlPolicy speed l1threshold reset powerScope temp virtualization_mode result "
    "computeInstanceId timeoutMs cpuNumber max_atk_adv color encoder_capacity unit gpuInstanceId"
).split():
    ARGUMENTS.setdefault(name, constant(0))
for name in (
    "info params gpuFabricInfo c_info status limits samples settings c_vgpu_sched_log_info_v2 "
    "c_vgpu_sched_state_info_v2 sched_state sched_state_v2 requestedProfiles caps getBwMode supportedBwModes "
    "platformInfo counts c_ccMemSize control setBwMode setBwModeAsync currentProfiles profilesInfo updateProfiles "
    "config vgpuMetadata pgpuMetadata c_vgpu_instance_info c_vgpus c_vgpu_sched_log_info c_vgpu_sched_state_info "
    "vgpuVersion eventData cper"
).split():
    ARGUMENTS.setdefault(name, struct)
ARGUMENTS["errorType"] = constant(nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
ARGUMENTS["locationType"] = constant(nvml.NVML_MEMORY_LOCATION_SRAM)


said = []
look_up = nvml._nvmlGetFunctionPointer


def listening(name):
    """The library's function, overheard."""
    function = look_up(name)

    def call(*arguments):
        answer = function(*arguments)
        said.append(answer if isinstance(answer, int) else 0)
        return answer

    # The text of a code is no code.
    return function if name == "nvmlErrorString" else call


nvml._nvmlGetFunctionPointer = listening


def undo(form, name, answer):
    """Takes back what a call has changed."""
    if name in ("nvmlInit", "nvmlInitWithFlags"):
        nvml.nvmlShutdown()
    elif name == "nvmlShutdown":
        nvml.nvmlInit()
    elif name.startswith("nvmlDeviceCreateGpuInstance"):
        nvml.nvmlGpuInstanceDestroy(answer)
    elif name.startswith("nvmlGpuInstanceCreateComputeInstance"):
        nvml.nvmlComputeInstanceDestroy(answer)


def code(form, name):
    """What the call answers."""
    function = FUNCTIONS[name]
    # Those with a default of their own take it: it is where they write to.
    parameters = inspect.signature(function).parameters.values()
    arguments = [form.value(name, p.name) for p in parameters if p.default is inspect.Parameter.empty]
    said.clear()
    try:
        answer = function(*arguments)
    except nvml.NVMLError as error:
        # What the library itself answered, if the binding got as far.
        return said[-1] if said else error.value
    # Not all of the binding looks at what the library answers.
    if said and said[-1]:
        return said[-1]
    undo(form, name, answer)
    return 0


def destruction(form, name):
    """Destroys what was made for it."""
    if form.name == "whole":
        return code(form, name)
    if name == "nvmlGpuInstanceDestroy":
        instance = nvml.nvmlDeviceCreateGpuInstance(form.gpu, form.profile)
    else:
        instance = form.own
    made = instance if name == "nvmlGpuInstanceDestroy" else nvml.nvmlGpuInstanceCreateComputeInstance(instance, 0)
    try:
        # A MIG device is neither a GPU instance nor a compute instance.
        FUNCTIONS[name](made if form.name == "parent" else form.device)
        return 0
    except nvml.NVMLError as error:
        (nvml.nvmlGpuInstanceDestroy if made is instance else nvml.nvmlComputeInstanceDestroy)(made)
        return error.value


def codes(form):
    """{function: code} of all functions."""
    found = {}
    for name in FUNCTIONS:
        destroys = name in ("nvmlGpuInstanceDestroy", "nvmlComputeInstanceDestroy")
        found[name] = (destruction if destroys else code)(form, name)
    return found


faulthandler.enable()
nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
profiles = mig.gpu_profiles(gpu)
# Two compute slices, so that a compute instance can be made beside the one that is there; its like fits again.
fitting = [info for info in profiles.values() if info.sliceCount >= 2 and info.instanceCount >= 2]
profile = min(fitting, key=lambda info: (info.sliceCount, info.id)).id if fitting else 0
forms = [codes(Form("whole", gpu, gpu, profile))]
if profiles:
    assert nvml.nvmlDeviceSetMigMode(gpu, mig.ENABLE) == 0
    instance = mig.create(gpu, profile, *mig.places(gpu, profile)[0])
    compute = nvml.nvmlGpuInstanceCreateComputeInstance(instance, 0)
    device = nvml.nvmlComputeInstanceGetInfo_v2(compute).device
    parent = Form("parent", gpu, gpu, profile, instance, compute)
    device_form = Form("mig", device, gpu, profile, device, device)
    parent.own = device_form.own = instance
    forms += [codes(parent), codes(device_form)]
nvml.nvmlShutdown()
print(json.dumps({name: [form[name] for form in forms] for name in FUNCTIONS}))
