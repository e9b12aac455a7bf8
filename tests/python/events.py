"""Waits for events on every GPU. `count N`: N XIDs come, in order, with data 0 to N-1 modulo 1000; `timeout MS`;
`forever`: until killed. The first line printed says that the set is registered."""

import sys
import time

import pynvml as nvml

nvml.nvmlInit()
events = nvml.nvmlEventSetCreate()
for index in range(nvml.nvmlDeviceGetCount()):
    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    assert nvml.nvmlDeviceGetSupportedEventTypes(gpu) & nvml.nvmlEventTypeXidCriticalError
    nvml.nvmlDeviceRegisterEvents(gpu, nvml.nvmlEventTypeXidCriticalError, events)
print("registered", flush=True)
word, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
if word == "count":
    seen = {}
    for _ in range(number):
        event = nvml.nvmlEventSetWait_v2(events, 30_000)
        assert event.eventType == nvml.nvmlEventTypeXidCriticalError
        seen[event.eventData] = seen.get(event.eventData, 0) + 1
    try:
        nvml.nvmlEventSetWait_v2(events, 0)
        raise AssertionError("more than were raised")
    except nvml.NVMLError_Timeout:
        pass
    print(" ".join(f"{xid}:{count}" for xid, count in sorted(seen.items())))
elif word == "timeout":
    begin, worked = time.monotonic(), time.process_time()
    try:
        nvml.nvmlEventSetWait_v2(events, number)
        raise AssertionError("nothing was raised")
    except nvml.NVMLError_Timeout:
        print(round((time.monotonic() - begin) * 1000), round((time.process_time() - worked) * 1000))
elif word == "forever":
    while True:
        nvml.nvmlEventSetWait_v2(events, 60_000)
nvml.nvmlEventSetFree(events)
nvml.nvmlShutdown()
