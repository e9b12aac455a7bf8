"""What follows from the load of GPU 0, whose GPU instances are 2 and 7."""

import json
import time

import pynvml as nvml


def active(*of):
    """Per cent of the time, by GPM."""
    metrics = nvml.c_nvmlGpmMetricsGet_t()
    metrics.version, metrics.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, 1
    metrics.sample1, metrics.sample2 = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
    take = nvml.nvmlGpmSampleGet if len(of) == 1 else nvml.nvmlGpmMigSampleGet
    take(*of, metrics.sample1)
    time.sleep(0.02)
    take(*of, metrics.sample2)
    metrics.metrics[0].metricId = nvml.NVML_GPM_METRIC_GRAPHICS_UTIL
    nvml.nvmlGpmMetricsGet(metrics)
    return round(metrics.metrics[0].value, 6)


nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
assert nvml.nvmlDeviceGetGpuInstanceId(instance) == 2
first = nvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
power = nvml.nvmlDeviceGetPowerUsage(gpu)
time.sleep(0.05)
assert nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) >= first + power * 0.05 - 1
print(json.dumps({
    "power": power,
    "temperature": nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "clock": nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "used": nvml.nvmlDeviceGetMemoryInfo(gpu).used,
    "instance used": nvml.nvmlDeviceGetMemoryInfo(instance).used,
    "instance total": nvml.nvmlDeviceGetMemoryInfo(instance).total,
    "active": active(gpu),
    "instance active": active(gpu, 2),
    "other active": active(gpu, 7),
}))
