"""What each GPU holds, as NVIDIA's own binding sees it: JSON for the tests."""

import json
import pynvml as nvml

nvml.nvmlInit()
gpus = []
for index in range(nvml.nvmlDeviceGetCount()):
    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    current, pending = nvml.nvmlDeviceGetMigMode(gpu)
    assert current == pending
    name = nvml.nvmlDeviceGetName(gpu)
    devices = []
    for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place)
        except nvml.NVMLError_NotFound:
            break
        text = nvml.nvmlDeviceGetName(device)
        assert text.startswith(name + " MIG "), text
        devices.append(text.removeprefix(name + " MIG "))
    gpus.append({"mig": bool(current), "devices": devices})
nvml.nvmlShutdown()
print(json.dumps(gpus))
