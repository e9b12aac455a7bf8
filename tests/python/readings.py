"""Holds what NVML shows against what was set: `CHIP PLACE {reading: value}` of GPU 0, with PLACE one of `whole`,
`parent` (a GPU in MIG mode) and `mig` (its first MIG device).

Each reading is asked by every function that tells it. Where the chip or MIG mode has no answer, the answer must
be NOT_SUPPORTED. Prints the readings that it knows.
"""

import json
import sys
import time

import pynvml as nvml

chip, place = sys.argv[1:3]
values = json.loads(sys.argv[3])
MIB = 1 << 20
CORRECTED, UNCORRECTED = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
VOLATILE, AGGREGATE = nvml.NVML_VOLATILE_ECC, nvml.NVML_AGGREGATE_ECC
DRAM, SRAM = nvml.NVML_MEMORY_LOCATION_DRAM, nvml.NVML_MEMORY_LOCATION_SRAM


def field(number, scope=0, of=lambda value: value):
    """A field value by its own code and type."""

    def read(device):
        (got,) = nvml.nvmlDeviceGetFieldValues(device, [(number, scope)])
        if got.nvmlReturn:
            raise nvml.NVMLError(got.nvmlReturn)
        types = {nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal", nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal"}
        return of(getattr(got.value, types[got.valueType]))

    return read


def gpm(number, of=lambda value: value):
    """A metric of GPM between two samples."""

    def read(device):
        metrics = nvml.c_nvmlGpmMetricsGet_t()
        metrics.version, metrics.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, 1
        metrics.sample1, metrics.sample2 = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        nvml.nvmlGpmSampleGet(device, metrics.sample1)
        time.sleep(0.002)
        nvml.nvmlGpmSampleGet(device, metrics.sample2)
        metrics.metrics[0].metricId = number
        nvml.nvmlGpmMetricsGet(metrics)
        nvml.nvmlGpmSampleFree(metrics.sample1)
        nvml.nvmlGpmSampleFree(metrics.sample2)
        if metrics.metrics[0].nvmlReturn:
            raise nvml.NVMLError(metrics.metrics[0].nvmlReturn)
        assert metrics.metrics[0].metricInfo.unit, number
        return of(metrics.metrics[0].value)

    return read


def sample(kind):
    """The newest sample of the near past."""

    def read(device):
        _, samples = nvml.nvmlDeviceGetSamples(device, kind, 0)
        return samples[-1].sampleValue.uiVal

    return read


def of(function, *arguments, part=lambda got: got):
    return lambda device: part(function(device, *arguments))


V = nvml
READERS = {
    "power": [of(V.nvmlDeviceGetPowerUsage), field(185), field(186), sample(V.NVML_TOTAL_POWER_SAMPLES)],
    "energy": [of(V.nvmlDeviceGetTotalEnergyConsumption), field(83)],
    "temperature": [
        of(V.nvmlDeviceGetTemperature, V.NVML_TEMPERATURE_GPU),
        of(V.nvmlDeviceGetTemperatureV, V.NVML_TEMPERATURE_GPU),
        of(lambda gpu: V.nvmlDeviceGetThermalSettings(gpu, 0, V.c_nvmlGpuThermalSettings_t())[0].currentTemp),
    ],
    "memory-temperature": [field(82)],
    "utilisation": [
        of(V.nvmlDeviceGetUtilizationRates, part=lambda got: got.gpu),
        of(lambda gpu: V.nvmlDeviceGetDynamicPstatesInfo(gpu, V.c_nvmlGpuDynamicPstatesInfo_t()).utilization[0].percentage),
        sample(V.NVML_GPU_UTILIZATION_SAMPLES),
    ],
    "memory-utilisation": [
        of(V.nvmlDeviceGetUtilizationRates, part=lambda got: got.memory),
        sample(V.NVML_MEMORY_UTILIZATION_SAMPLES),
    ],
    "encoder": [of(V.nvmlDeviceGetEncoderUtilization, part=lambda got: got[0]), sample(V.NVML_ENC_UTILIZATION_SAMPLES)],
    "decoder": [of(V.nvmlDeviceGetDecoderUtilization, part=lambda got: got[0]), sample(V.NVML_DEC_UTILIZATION_SAMPLES)],
    "jpeg": [of(V.nvmlDeviceGetJpgUtilization, part=lambda got: got[0])],
    "ofa": [of(V.nvmlDeviceGetOfaUtilization, part=lambda got: got[0])],
    "sm-clock": [
        of(V.nvmlDeviceGetClockInfo, V.NVML_CLOCK_SM),
        of(V.nvmlDeviceGetClockInfo, V.NVML_CLOCK_GRAPHICS),
        of(V.nvmlDeviceGetClock, V.NVML_CLOCK_SM, V.NVML_CLOCK_ID_CURRENT),
        sample(V.NVML_PROCESSOR_CLK_SAMPLES),
    ],
    "memory-clock": [of(V.nvmlDeviceGetClockInfo, V.NVML_CLOCK_MEM), sample(V.NVML_MEMORY_CLK_SAMPLES)],
    "video-clock": [of(V.nvmlDeviceGetClockInfo, V.NVML_CLOCK_VIDEO)],
    "fan": [
        of(V.nvmlDeviceGetFanSpeed),
        of(V.nvmlDeviceGetFanSpeed_v2, 0),
        of(V.nvmlDeviceGetTargetFanSpeed, 0),
    ],
    "performance-state": [of(V.nvmlDeviceGetPerformanceState), of(V.nvmlDeviceGetPowerState)],
    "clock-reasons": [
        of(V.nvmlDeviceGetCurrentClocksEventReasons),
        of(V.nvmlDeviceGetCurrentClocksThrottleReasons),
    ],
    "pcie-tx": [of(V.nvmlDeviceGetPcieThroughput, V.NVML_PCIE_UTIL_TX_BYTES)],
    "pcie-rx": [of(V.nvmlDeviceGetPcieThroughput, V.NVML_PCIE_UTIL_RX_BYTES)],
    "pcie-replays": [of(V.nvmlDeviceGetPcieReplayCounter), field(94)],
    "nvlink-tx": [field(138, 0xFFFFFFFF)],
    "nvlink-rx": [field(139, 0xFFFFFFFF)],
    "nvlink-replays": [of(V.nvmlDeviceGetNvLinkErrorCounter, 0, 0), field(46), field(52), field(161, 0)],
    "nvlink-recoveries": [of(V.nvmlDeviceGetNvLinkErrorCounter, 0, 1), field(53), field(59), field(162, 0)],
    "nvlink-crc-flit": [of(V.nvmlDeviceGetNvLinkErrorCounter, 0, 2), field(32), field(38), field(163, 0)],
    "nvlink-crc-data": [of(V.nvmlDeviceGetNvLinkErrorCounter, 0, 3), field(39), field(45)],
    "ecc-corrected-volatile": [
        of(V.nvmlDeviceGetTotalEccErrors, CORRECTED, VOLATILE),
        of(V.nvmlDeviceGetMemoryErrorCounter, CORRECTED, VOLATILE, DRAM),
        field(3),
        field(11),
    ],
    # The totals are those of the memory and of what is outside of it.
    "ecc-uncorrected-volatile": [
        of(V.nvmlDeviceGetTotalEccErrors, UNCORRECTED, VOLATILE, part=lambda got: got - values["sram-uncorrected"]),
        of(V.nvmlDeviceGetMemoryErrorCounter, UNCORRECTED, VOLATILE, DRAM),
        field(4, of=lambda got: got - values["sram-uncorrected"]),
        field(12),
    ],
    "ecc-corrected-aggregate": [
        of(V.nvmlDeviceGetTotalEccErrors, CORRECTED, AGGREGATE),
        of(V.nvmlDeviceGetMemoryErrorCounter, CORRECTED, AGGREGATE, DRAM),
        field(5),
        field(22),
    ],
    "ecc-uncorrected-aggregate": [
        of(V.nvmlDeviceGetTotalEccErrors, UNCORRECTED, AGGREGATE, part=lambda got: got - values["sram-uncorrected"]),
        of(V.nvmlDeviceGetMemoryErrorCounter, UNCORRECTED, AGGREGATE, DRAM),
        field(6, of=lambda got: got - values["sram-uncorrected"]),
        field(23),
    ],
    "remapped-correctable": [of(V.nvmlDeviceGetRemappedRows, part=lambda got: got[0]), field(142)],
    "remapped-uncorrectable": [of(V.nvmlDeviceGetRemappedRows, part=lambda got: got[1]), field(143)],
    "remap-pending": [of(V.nvmlDeviceGetRemappedRows, part=lambda got: got[2]), field(144)],
    "remap-failed": [of(V.nvmlDeviceGetRemappedRows, part=lambda got: got[3]), field(145)],
    "retired-single": [of(V.nvmlDeviceGetRetiredPages, 0, part=len), of(V.nvmlDeviceGetRetiredPages_v2, 0, part=len), field(29)],
    "retired-double": [of(V.nvmlDeviceGetRetiredPages, 1, part=len), of(V.nvmlDeviceGetRetiredPages_v2, 1, part=len), field(30)],
    "retired-pending": [of(V.nvmlDeviceGetRetiredPagesPendingStatus), field(31)],
    "recovery-action": [field(230)],
    "violation-power": [of(V.nvmlDeviceGetViolationStatus, 0, part=lambda got: got.violationTime), field(74)],
    "violation-thermal": [of(V.nvmlDeviceGetViolationStatus, 1, part=lambda got: got.violationTime), field(75)],
    "memory-used": [
        of(V.nvmlDeviceGetMemoryInfo, V.nvmlMemory_v2, part=lambda got: got.used // MIB),
        of(lambda gpu: V.nvmlDeviceGetMemoryInfo(gpu).used // MIB - (0 if place == "mig" else values["memory-reserved"])),
    ],
    "memory-reserved": [of(V.nvmlDeviceGetMemoryInfo, V.nvmlMemory_v2, part=lambda got: got.reserved // MIB)],
    "sram-uncorrected": [of(V.nvmlDeviceGetMemoryErrorCounter, UNCORRECTED, VOLATILE, SRAM)],
    "graphics-active": [gpm(1)],
    "sm-active": [gpm(2)],
    "sm-occupancy": [gpm(3)],
    "tensor-active": [gpm(5), gpm(7)],
    "dram-active": [gpm(10)],
    "fp64-active": [gpm(11)],
    "fp32-active": [gpm(12)],
    "fp16-active": [gpm(13)],
    "integer-active": [gpm(4)],
}

if place == "mig":
    # Of a MIG device the total is that of what is outside of the memory.
    READERS["ecc-uncorrected-volatile"].pop(0)
    READERS["sram-uncorrected"].append(of(V.nvmlDeviceGetTotalEccErrors, UNCORRECTED, VOLATILE))

# What each chip has no sensor for.
GPM = {name for name in READERS if name.endswith("-active") or name == "sm-occupancy"}
NVLINK = {name for name in READERS if name.startswith("nvlink-")}
REMAP = {name for name in READERS if name.startswith("remap")}
RETIRED = {name for name in READERS if name.startswith("retired-")}
LACKS = {
    "a100-80gb": GPM | RETIRED | {"fan"},
    "h100-sxm-80gb": RETIRED | {"fan"},
    "b200-180gb": RETIRED | {"fan"} | NVLINK - {"nvlink-tx", "nvlink-rx"},
    "t4-16gb": GPM | NVLINK | REMAP | {"fan", "memory-temperature"},
    "rtx-pro-6000-blackwell-96gb": RETIRED | NVLINK | {"memory-temperature"},
}
# What a GPU with instances does not tell (nvml.h).
UNTOLD = REMAP | {
    "utilisation", "memory-utilisation", "encoder", "decoder", "jpeg", "ofa",
    "ecc-corrected-volatile", "ecc-uncorrected-volatile", "sram-uncorrected",
}
# What a MIG device tells; all else is its GPU's.
TOLD = {"memory-used", "sram-uncorrected"} | GPM

lacks = set(LACKS[chip])
if place == "parent":
    lacks |= UNTOLD
if place == "mig":
    lacks |= set(READERS) - TOLD
nvml.nvmlInit()
device = nvml.nvmlDeviceGetHandleByIndex(0)
if place == "mig":
    device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0)
wrong = []
for name, readers in READERS.items():
    for index, reader in enumerate(readers):
        try:
            got = reader(device)
        except nvml.NVMLError as error:
            got = f"error {error.value}"
        wanted = f"error {nvml.NVML_ERROR_NOT_SUPPORTED}" if name in lacks else values.get(name)
        if place == "mig" and name == "memory-reserved":
            wanted = 0
        if got != wanted:
            wrong.append(f"{name}, by its function {index}: {got}, not {wanted}")
nvml.nvmlShutdown()
assert not wrong, "\n".join(wrong)
print(json.dumps(sorted(READERS)))
