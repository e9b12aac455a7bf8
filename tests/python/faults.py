"""Each kind of fault at each function, by way of nvidia-ml-py: prints one line a function and a cell a kind.

Words: the simulator's program, the node, its state folder, and a file with the functions' names.

A function is called through the binding's own pointer. A rule behind the one that is tried answers a code of its
own, so the function's body never sees the arguments, which are made up.
"""

import ctypes
import inspect
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import threading
import time

import pynvml as nvml

SIMULATOR, NODE, STATE, NAMES = sys.argv[1:]
# At most so many rules are on a node at once.
BATCH = 60
# What the rule behind answers.
BEHIND = 7_000
BOUND = 20
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


def simulator(word, *rest, text=None):
    command = [SIMULATOR, word, "--state", STATE, NODE, *rest]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=BOUND)
    return done.returncode, done.stderr


def faults(rules):
    code, why = simulator("fault", "add", "-f", "-", text="\n".join(rules))
    assert code == 0, why


def clear():
    assert simulator("fault", "clear")[0] == 0


nvml.nvmlInit()
device = nvml.nvmlDeviceGetHandleByIndex(0)


def handles():
    """Of the GPU, its first GPU instance and its first compute instance."""
    found = (nvml.c_nvmlGpuInstance_t * 7)()
    count = ctypes.c_uint(7)
    nvml.nvmlDeviceGetGpuInstances(device, 19, found, ctypes.byref(count))
    computes = (nvml.c_nvmlComputeInstance_t * 7)()
    many = ctypes.c_uint(7)
    nvml.nvmlGpuInstanceGetComputeInstances(found[0], 0, computes, ctypes.byref(many))
    return device, found[0], computes[0]


DEVICE, GPU_INSTANCE, COMPUTE_INSTANCE = handles()
ROOM = ctypes.create_string_buffer(1 << 16)


def first(name):
    """The handle that a function takes first, if it takes one."""
    for prefix, handle in (
            ("nvmlDeviceGetCount", None),
        ("nvmlDeviceDiscover", None),
        ("nvmlDeviceModifyDrainState", None),
        ("nvmlDeviceQueryDrainState", None),
        ("nvmlDeviceRemoveGpu", None),
        ("nvmlDevice", DEVICE),
        ("nvmlGpuInstance", GPU_INSTANCE),
        ("nvmlComputeInstance", COMPUTE_INSTANCE),
        ("nvmlGpmQuery", DEVICE),
        ("nvmlGpmSet", DEVICE),
        ("nvmlGpmSampleGet", DEVICE),
        ("nvmlGpmMigSampleGet", DEVICE),
    ):
        if name.startswith(prefix):
            return handle
    return None


def by_name():
    """The functions that find the GPU by what it is called, with what they take."""
    found = ctypes.byref(nvml.c_nvmlDevice_t())
    index, bus, uuid = ctypes.c_uint(0), nvml.nvmlDeviceGetPciInfo(device).busId, nvml.nvmlDeviceGetUUID(device)
    text = [ctypes.c_char_p(word.encode()) for word in (bus, uuid, nvml.nvmlDeviceGetSerial(device))]
    # Version 1 is the size and the number; type 1 is text.
    versioned = struct.pack("<II41s", 1 << 24 | 52, 1, uuid.encode()) + bytes(3)
    return {
        "nvmlDeviceGetHandleByIndex": (index, found),
        "nvmlDeviceGetHandleByIndex_v2": (index, found),
        "nvmlDeviceGetHandleByPciBusId": (text[0], found),
        "nvmlDeviceGetHandleByPciBusId_v2": (text[0], found),
        "nvmlDeviceGetHandleByUUID": (text[1], found),
        "nvmlDeviceGetHandleBySerial": (text[2], found),
        "nvmlDeviceGetHandleByUUIDV": (ctypes.create_string_buffer(versioned, len(versioned)), found),
    }


BY_NAME = by_name()


def call(name):
    """Calls a function by its name; answers its code."""
    function = nvml._nvmlGetFunctionPointer(name)
    if name in BY_NAME:
        return function(*BY_NAME[name])
    handle = first(name)
    rest = [ctypes.byref(ROOM)] * 6
    return function(handle, *rest) if handle is not None else function(*rest)


def batches(names):
    for at in range(0, len(names), BATCH // 2):
        yield names[at : at + BATCH // 2]


def codes(names):
    """Any code: one of its own for each function."""
    cells = {}
    for batch in batches(names):
        faults(f"fn={name} code={1000 + names.index(name)}" for name in batch)
        for name in batch:
            code = call(name)
            cells[name] = "as said" if code == 1000 + names.index(name) else f"answers {code}"
        clear()
    # And each code that NVML has.
    for code in sorted({value for key, value in vars(nvml).items() if key.startswith("NVML_ERROR_")}):
        faults([f"fn=* code={code}"])
        for name in names:
            if call(name) != code:
                cells[name] = f"not {code}"
        clear()
    return cells


def hangs(names):
    """For a time: it takes that long, and then goes on."""
    cells = {}
    for batch in batches(names):
        faults(rule for name in batch for rule in (f"fn={name} hang=20ms", f"fn={name} code={BEHIND}"))
        for name in batch:
            begin = time.monotonic()
            code = call(name)
            took = time.monotonic() - begin
            cells[name] = "goes on" if took >= 0.02 and code == BEHIND else f"{code} after {took:.3f} s"
        clear()
    return cells


def hangs_forever(names):
    """For ever: its caller waits, another does not, and once the fault is cleared it goes on."""
    cells = {}
    for batch in batches(names):
        others = [name for name in ("nvmlSystemGetDriverVersion", "nvmlDeviceGetMigMode") if name not in batch]
        faults(rule for name in batch for rule in (f"fn={name} hang=forever", f"fn={name} code={BEHIND}"))
        answers = {}

        def wait(name, answers=answers):
            answers[name] = call(name)

        threads = [threading.Thread(target=wait, args=(name,), daemon=True) for name in batch]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        hanging = {name for name in batch if name not in answers}
        for name in others:
            if name.endswith("MigMode"):
                nvml.nvmlDeviceGetMigMode(device)
            else:
                nvml.nvmlSystemGetDriverVersion()
        # The rules behind go with it, so what is called goes on into its body: by a code for all.
        for number in range(0, 2 * len(batch), 2):
            assert simulator("fault", "clear", str(number))[0] == 0
        for thread in threads:
            thread.join(BOUND)
        for name in batch:
            good = name in hanging and answers.get(name) == BEHIND
            cells[name] = "alone, until cleared" if good else f"answers {answers.get(name)}"
        clear()
    return cells


def state(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return "gone"
    return text.rsplit(")", 1)[1].split()[0]


def frozen(pids):
    """Waits until all are; answers those that are not. State D alone may be a wait of making the cgroup."""
    end = time.monotonic() + BOUND
    left = set(pids)
    while left and time.monotonic() < end:
        time.sleep(0.002)
        left = {pid for pid in left if not any(map(is_frozen, FREEZER.glob(f"nvml-simulator-*/{pid}")))}
    return left


def is_frozen(cell):
    try:
        return (cell / "freezer.state").read_text() == "FROZEN\n"
    except OSError:
        return False


def unkillable(names):
    """SIGKILL does not end it while the fault lasts."""
    cells = {}
    code, why = simulator("fault", "add", "fn=* hang=unkillable")
    clear()
    if code:
        # A machine without the v1 freezer must be told so, when the fault is laid and not when it is met.
        assert code == 1 and str(FREEZER) in why, why
        return {name: "outlives SIGKILL" for name in names}
    for batch in batches(names):
        faults(f"fn={name} hang=unkillable" for name in batch)
        children = {}
        for name in batch:
            pid = os.fork()
            if pid == 0:
                call(name)
                os._exit(1)
            children[pid] = name
        awake = frozen(children)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
        died = {pid for pid in children if state(pid) in ("Z", "gone")}
        clear()
        for pid, name in children.items():
            _, status = os.waitpid(pid, 0)
            good = pid not in awake and pid not in died and os.WTERMSIG(status) == signal.SIGKILL
            cells[name] = "outlives SIGKILL" if good else f"status {status}"
    return cells


def losses(names):
    """The GPU falls off the bus, if the function is about one, and stays away until the node reboots."""
    cells = {}
    for batch in batches(names):
        behind = [f"fn={name} code={BEHIND}" for name in batch if name not in BY_NAME]
        faults([*(f"fn={name} lost" for name in batch), *behind])
        for name in batch:
            code = call(name)
            shown = subprocess.run([SIMULATOR, "show", "--state", STATE, NODE], capture_output=True, timeout=BOUND)
            gone = b"lost" in shown.stdout
            if gone:
                assert simulator("reboot") == (0, "")
            if code == nvml.NVML_ERROR_GPU_IS_LOST and gone:
                cells[name] = "lost from now on"
            elif code == BEHIND and not gone:
                cells[name] = "knows no GPU"
            else:
                cells[name] = f"answers {code}, lost: {gone}"
        clear()
    return cells


def reads():
    """What each function says that only needs the GPU, by the function's name."""
    found = {}
    for name, wrapper in vars(nvml).items():
        if not name.startswith("nvmlDeviceGet") or not inspect.isfunction(wrapper):
            continue
        if [*inspect.signature(wrapper).parameters] not in (["handle"], ["device"]):
            continue
        named = re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', inspect.getsource(wrapper))
        if len(named) != 1:
            continue
        try:
            answer = plain(wrapper(device))
        except nvml.NVMLError as error:
            answer = ("code", error.value)
        found[named[0]] = answer
    return found


def plain(answer):
    """Something that compares by what it says."""
    if isinstance(answer, ctypes.Structure):
        return bytes(answer)
    if isinstance(answer, (list, tuple)):
        return [plain(one) for one in answer]
    return str(answer)


def stale(names):
    """A read shows the GPU as it was for a time after it changed; what changes it is refused as such a fault."""
    cells = {}
    assert simulator("set", "0", "on")[0] == 0
    mode = dict(reads()), time.sleep(0.05), dict(reads())
    before, again = mode[0], mode[2]
    faults(["fn=nvmlDeviceGet* stale=1h"])
    assert simulator("set", "0", "off")[0] == 0
    shown = reads()
    clear()
    after = reads()
    for name in names:
        if name not in before:
            code, _ = simulator("fault", "add", f"fn={name} stale=1s")
            cells[name] = {0: "taken", 3: "refused"}[code]
        elif before[name] != again[name]:
            cells[name] = "moves by itself"
        elif shown[name] != before[name]:
            cells[name] = f"shows {shown[name]}, before it was {before[name]}"
        else:
            cells[name] = "as before, then as it is" if after[name] != before[name] else "the same both times"
        if len(cells) % BATCH == 0:
            clear()
    clear()
    return cells


names = pathlib.Path(NAMES).read_text().split()
columns = [codes, hangs, hangs_forever, unkillable, losses, stale]
tables = [column(names) for column in columns]
width = max(map(len, names))
for name in names:
    print(f"{name:<{width}}", *(table[name] for table in tables), sep=" | ")
