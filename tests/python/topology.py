"""What NVIDIA's own binding reads of the way from each GPU to each other, as JSON."""

import json

import pynvml as n


def asked(function, *arguments):
    """The answer, or the error's code."""
    try:
        return function(*arguments)
    except n.NVMLError as error:
        return {"error": error.value}


def link(gpu, number, addresses):
    state = asked(n.nvmlDeviceGetNvLinkState, gpu, number)
    if isinstance(state, dict):
        return state
    kind = asked(n.nvmlDeviceGetNvLinkRemoteDeviceType, gpu, number)
    pci = asked(n.nvmlDeviceGetNvLinkRemotePciInfo, gpu, number)
    where = pci if isinstance(pci, dict) else addresses.get(pci.busId, pci.busId)
    field = n.nvmlDeviceGetFieldValues(gpu, [(n.NVML_FI_DEV_NVLINK_GET_STATE, number)])[0]
    assert field.nvmlReturn or field.value.uiVal == state, "two ways to ask, two answers"
    p2p = n.nvmlDeviceGetNvLinkCapability(gpu, number, n.NVML_NVLINK_CAP_P2P_SUPPORTED)
    return {"active": state, "kind": kind, "to": where, "p2p": p2p}


def fabric(gpu):
    info = n.c_nvmlGpuFabricInfo_v3_t()
    code = asked(n.nvmlDeviceGetGpuFabricInfoV, gpu, n.byref(info))
    if code != n.NVML_SUCCESS:
        return code
    return {
        "state": info.state,
        "clique": info.cliqueId,
        "cluster": bytes(info.clusterUuid).hex(),
        "health": info.healthMask,
        "summary": info.healthSummary,
    }


def numbers(words):
    return [at * 64 + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1]


n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
buses = {n.nvmlDeviceGetPciInfo(gpu).busId: i for i, gpu in enumerate(gpus)}
old = n.c_nvmlGpuFabricInfo_t()
print(
    json.dumps(
        {
            "links": [[link(gpu, i, buses) for i in range(n.NVML_NVLINK_MAX_LINKS)] for gpu in gpus],
            "levels": [[n.nvmlDeviceGetTopologyCommonAncestor(a, b) for b in gpus] for a in gpus],
            "nearest": [
                {
                    str(level): [n.nvmlDeviceGetIndex(near) for near in n.nvmlDeviceGetTopologyNearestGpus(gpu, level)]
                    for level in (10, 20, 30, 40, 50)
                }
                for gpu in gpus
            ],
            "switched": [
                n.nvmlDeviceGetFieldValues(gpu, [n.NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT])[0].value.uiVal for gpu in gpus
            ],
            "p2p": [
                [[n.nvmlDeviceGetP2PStatus(a, b, way) for way in range(5)] for b in gpus if b is not a] for a in gpus
            ],
            "fabric": [fabric(gpu) for gpu in gpus],
            "fabric1": [asked(n.nvmlDeviceGetGpuFabricInfo, gpu, n.byref(old)) for gpu in gpus],
            "cpus": [numbers(n.nvmlDeviceGetCpuAffinity(gpu, 16)) for gpu in gpus],
            "scoped": [numbers(n.nvmlDeviceGetCpuAffinityWithinScope(gpu, 16, 1)) for gpu in gpus],
            "memory": [numbers(n.nvmlDeviceGetMemoryAffinity(gpu, 1, 0)) for gpu in gpus],
            "cpu0": [n.nvmlDeviceGetIndex(near) for near in n.nvmlSystemGetTopologyGpuSet(0)],
        }
    )
)
n.nvmlShutdown()
