"""Holds a simulated GPU against its row in the table of GPUs.

`keys TABLE` lists those that can be simulated; `check TABLE KEY` checks GPU 0, which must be of that key.
What the table does not know must be 0 in a struct.
"""

import json
import sys

import pynvml as nvml
import yaml

import mig

table = yaml.load(open(sys.argv[2]), Loader=yaml.CSafeLoader)
if sys.argv[1] == "keys":
    print(json.dumps([gpu["key"] for gpu in table["gpus"] if gpu["geometry"]]))
    sys.exit()

row = next(gpu for gpu in table["gpus"] if gpu["key"] == sys.argv[3])
ids = table["geometries"][row["geometry"]]["gi_id_by_start"]


def known(value):
    return 0 if value is None else value


nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
name = nvml.nvmlDeviceGetName(gpu)
assert name in row["product_names"], name
uuid = nvml.nvmlDeviceGetUUID(gpu)
assert uuid.startswith("GPU-") and len(uuid) == 40, uuid
memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
assert memory.total == row["memory_total_mib"] << 20, memory.total
pci = nvml.nvmlDeviceGetPciInfo(gpu)
assert pci.pciDeviceId & 0xFFFF == 0x10DE
assert pci.pciDeviceId >> 16 in [p["device_id"] for p in row["pci"]], hex(pci.pciDeviceId)
assert "%d.%d" % nvml.nvmlDeviceGetCudaComputeCapability(gpu) == row["compute_capability"]

assert nvml.nvmlDeviceGetMigMode(gpu) == [0, 0]
assert nvml.nvmlDeviceGetMaxMigDeviceCount(gpu) == 0
assert nvml.nvmlDeviceSetMigMode(gpu, mig.ENABLE) == 0
assert nvml.nvmlDeviceGetMigMode(gpu) == [1, 1]

profiles = mig.gpu_profiles(gpu)
assert sorted(profiles) == sorted(p["nvml_enum_value"] for p in row["gi_profiles"])
seen_uuids = {}
for profile in row["gi_profiles"]:
    info = profiles[profile["nvml_enum_value"]]
    old = nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, profile["nvml_enum_value"], 1)
    engines = profile["engines"]
    for said in (info, old):
        assert said.id == profile["id"], profile["name"]
        assert said.sliceCount == profile["slice_count"]
        assert said.instanceCount == profile["instance_count"]
        assert said.memorySizeMB == known(profile["memory_mib"]), (profile["name"], said.memorySizeMB)
        assert said.multiprocessorCount == known(profile["multiprocessor_count"])
        assert said.isP2pSupported == known(profile["is_p2p_supported"])
        counts = [said.copyEngineCount, said.decoderCount, said.encoderCount, said.jpegCount, said.ofaCount]
        assert counts == [known(engines[k]) for k in ("copy", "decoder", "encoder", "jpeg", "ofa")], profile["name"]
    text = info.name.decode() if isinstance(info.name, bytes) else info.name
    assert text == profile["name"], text
    assert mig.places(gpu, info.id) == [(p["start"], p["size"]) for p in profile["placements"]], profile["name"]

    for start, size in mig.places(gpu, info.id):
        instance = mig.create(gpu, info.id, start, size)
        got = nvml.nvmlGpuInstanceGetInfo(instance)
        assert (got.profileId, got.placement.start, got.placement.size) == (info.id, start, size)
        legal = [ids[v]["size%d" % size].get(start) for v in ids if "size%d" % size in ids[v]]
        assert got.id in legal, (profile["name"], start, got.id, legal)

        computes = mig.compute_profiles(instance)
        wanted = profile["compute_instance_profiles"]
        assert sorted(computes) == sorted(c["nvml_enum_value"] for c in wanted), profile["name"]
        for compute in wanted:
            said = computes[compute["nvml_enum_value"]]
            assert (said.id, said.sliceCount, said.instanceCount) == (
                compute["id"], compute["slice_count"], compute["instance_count"]), compute["name"]
            assert said.multiprocessorCount == known(compute["multiprocessor_count"]), compute["name"]
            assert mig.compute_places(instance, said.id) == [
                (p["start"], p["size"]) for p in compute["placements"]], compute["name"]

        default = next(c for c in wanted if c["default"])
        handle = nvml.nvmlGpuInstanceCreateComputeInstance(instance, default["id"])
        device = nvml.nvmlComputeInstanceGetInfo_v2(handle).device
        assert nvml.nvmlDeviceGetName(device) == f"{name} MIG {profile['name']}"
        assert nvml.nvmlDeviceGetGpuInstanceId(device) == got.id
        assert nvml.nvmlDeviceGetMemoryInfo(device).total == known(profile["memory_mib"]) << 20
        attributes = nvml.nvmlDeviceGetAttributes_v2(device)
        assert attributes.gpuInstanceSliceCount == profile["slice_count"]
        assert attributes.memorySizeMB == known(profile["memory_mib"])
        uuid = nvml.nvmlDeviceGetUUID(device)
        assert uuid.startswith("MIG-") and len(uuid) == 40, uuid
        # A MIG device's UUID follows from where it lies, and only from that.
        assert seen_uuids.setdefault(got.id, uuid) == uuid
        nvml.nvmlComputeInstanceDestroy(handle)
        nvml.nvmlGpuInstanceDestroy(instance)
assert len(set(seen_uuids.values())) == len(seen_uuids)
nvml.nvmlShutdown()
