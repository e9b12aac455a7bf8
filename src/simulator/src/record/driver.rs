//! The reads. NVIDIA's own declarations of them (nvml-wrapper-sys), not the simulator's.

use super::{Compute, FabricState, Gpu, Instance, Link, Node};
use crate::{notation::Address, topology::MAX_LINKS, trouble::Trouble};
use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlComputeInstance_t, nvmlDevice_t, nvmlGpuInstance_t, nvmlPciInfo_t, nvmlProcessInfo_t,
};
use std::ffi::{CStr, OsStr, c_char};

/// NVML_ERROR_*.
const INVALID_ARGUMENT: u32 = 2;
const NOT_SUPPORTED: u32 = 3;
const NO_PERMISSION: u32 = 4;
const INSUFFICIENT_SIZE: u32 = 7;
const FUNCTION_NOT_FOUND: u32 = 13;
/// Past the greatest profile of any driver; each answers INVALID_ARGUMENT from its own end on.
const PROFILES: u32 = 32;
/// More instances of one profile than any GPU has.
const INSTANCES: usize = 32;
/// How often a list of processes is asked for again because it grew meanwhile.
const TRIES: usize = 8;
/// Words of 64 CPUs or NUMA nodes.
const WORDS: usize = 16;
/// NVML_NVLINK_DEVICE_TYPE_*.
const TO_GPU: u32 = 0;
const TO_SWITCH: u32 = 2;
/// NVML_GPU_FABRIC_STATE_COMPLETED.
const JOINED: u8 = 3;
const NO_ID: u32 = u32::MAX;

/// A call that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refused {
    call: &'static str,
    code: u32,
}

impl Refused {
    /// The call is about something that this GPU or driver does not have.
    fn is_absence(self) -> bool {
        [NOT_SUPPORTED, FUNCTION_NOT_FOUND].contains(&self.code)
    }
}

impl From<Refused> for Trouble {
    fn from(Refused { call, code }: Refused) -> Trouble {
        let what = match code {
            NO_PERMISSION => ": only root reads everything".to_owned(),
            FUNCTION_NOT_FOUND => ": this driver does not have it".to_owned(),
            code => format!(" with code {code}"),
        };
        Trouble::Failed(format!("{call} is refused{what}"))
    }
}

/// `None` where there is no such thing.
fn perhaps<T>(result: Result<T, Refused>) -> Result<Option<T>, Refused> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(refused) if refused.is_absence() => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// Calls a function of the library, if it is there.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match &$driver.library.$name {
            // SAFETY: the pointers are to values of the types that nvml.h says, live over the call, and buffers are
            // as long as said; handles are those that this session gave.
            Ok(function) => match unsafe { function($($argument),*) } {
                0 => Ok(()),
                code => Err(Refused { call: stringify!($name), code }),
            },
            Err(_) => Err(Refused { call: stringify!($name), code: FUNCTION_NOT_FOUND }),
        }
    };
}

/// A struct for a call to fill.
fn blank<T: Copy>() -> T {
    // SAFETY: only used for NVML's structs, which are integers, arrays of them and pointers.
    unsafe { std::mem::zeroed() }
}

/// A session with a driver's library.
pub(super) struct Driver {
    library: NvmlLib,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _: Result<(), Refused> = call!(self, nvmlShutdown());
    }
}

impl Driver {
    pub(super) fn open(library: &OsStr) -> Result<Driver, Trouble> {
        // SAFETY: the library's initialisers run, as they do in every program that uses it.
        let library = unsafe { NvmlLib::new(library) }
            .map_err(|e| Trouble::Failed(format!("no driver to read: {e}")))?;
        let driver = Driver { library };
        call!(driver, nvmlInit_v2())?;
        Ok(driver)
    }

    pub(super) fn node(&self) -> Result<Node, Trouble> {
        let (mut cuda, mut count) = (0, 0);
        call!(self, nvmlSystemGetCudaDriverVersion_v2(&mut cuda))?;
        call!(self, nvmlDeviceGetCount_v2(&mut count))?;
        let mut handles = Vec::new();
        for index in 0..count {
            let mut handle = std::ptr::null_mut();
            call!(self, nvmlDeviceGetHandleByIndex_v2(index, &mut handle))?;
            handles.push(handle);
        }
        let gpus = handles.iter().enumerate().map(|(index, handle)| {
            self.gpu(*handle)
                .map_err(|refused| Trouble::Failed(format!("GPU {index}: {}", Trouble::from(refused))))
        });
        Ok(Node {
            driver: text(|to, length| call!(self, nvmlSystemGetDriverVersion(to, length)))?,
            nvml: text(|to, length| call!(self, nvmlSystemGetNVMLVersion(to, length)))?,
            cuda: cuda.unsigned_abs(),
            gpus: gpus.collect::<Result<_, _>>()?,
            levels: perhaps(self.levels(&handles))?.unwrap_or_default(),
        })
    }

    fn gpu(&self, gpu: nvmlDevice_t) -> Result<Gpu, Refused> {
        let mut pci = blank::<nvmlPciInfo_t>();
        call!(self, nvmlDeviceGetPciInfo_v3(gpu, &mut pci))?;
        let (mut minor, mut memory) = (0, blank());
        call!(self, nvmlDeviceGetMinorNumber(gpu, &mut minor))?;
        call!(self, nvmlDeviceGetMemoryInfo(gpu, &mut memory))?;
        let (mut current, mut pending) = (0, 0);
        let mig = perhaps(call!(self, nvmlDeviceGetMigMode(gpu, &mut current, &mut pending)))?;
        let (mut cpus, mut nodes) = ([0; WORDS], [0; WORDS]);
        let near = perhaps(call!(self, nvmlDeviceGetCpuAffinity(gpu, WORDS as u32, cpus.as_mut_ptr())))?;
        let numa =
            perhaps(call!(self, nvmlDeviceGetMemoryAffinity(gpu, WORDS as u32, nodes.as_mut_ptr(), 0)))?;
        Ok(Gpu {
            name: text(|to, length| call!(self, nvmlDeviceGetName(gpu, to, length)))?,
            uuid: text(|to, length| call!(self, nvmlDeviceGetUUID(gpu, to, length)))?,
            serial: perhaps(text(|to, length| call!(self, nvmlDeviceGetSerial(gpu, to, length))))?,
            pci: address(&pci),
            pci_device_id: pci.pciDeviceId,
            minor,
            memory_mib: memory.total >> 20,
            mig: mig.map(|()| (current != 0, pending != 0)),
            instances: if current != 0 { self.instances(gpu)? } else { Vec::new() },
            processes: self.processes(gpu)?,
            numa: numa.and_then(|()| bits(&nodes).first().copied()),
            cpus: near.map(|()| bits(&cpus)).unwrap_or_default(),
            links: self.links(gpu)?,
            fabric: perhaps(self.fabric(gpu))?,
        })
    }

    fn instances(&self, gpu: nvmlDevice_t) -> Result<Vec<Instance>, Refused> {
        let mut found = Vec::new();
        for slot in 0..PROFILES {
            let mut profile = blank();
            match call!(self, nvmlDeviceGetGpuInstanceProfileInfo(gpu, slot, &mut profile)) {
                Ok(()) => {}
                Err(Refused { code: INVALID_ARGUMENT, .. }) => break,
                Err(refused) if refused.is_absence() => continue,
                Err(refused) => return Err(refused),
            }
            let (mut handles, mut count) = ([std::ptr::null_mut(); INSTANCES], 0);
            call!(self, nvmlDeviceGetGpuInstances(gpu, profile.id, handles.as_mut_ptr(), &mut count))?;
            for handle in handles.into_iter().take(count as usize) {
                let mut info = blank();
                call!(self, nvmlGpuInstanceGetInfo(handle, &mut info))?;
                found.push(Instance {
                    id: info.id,
                    profile: info.profileId,
                    start: info.placement.start,
                    size: info.placement.size,
                    compute: self.compute(handle)?,
                });
            }
        }
        found.sort_by_key(|instance| instance.start);
        Ok(found)
    }

    fn compute(&self, gi: nvmlGpuInstance_t) -> Result<Vec<Compute>, Refused> {
        let mut found = Vec::new();
        for slot in 0..PROFILES {
            let mut profile = blank();
            match call!(self, nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, slot, 0, &mut profile)) {
                Ok(()) => {}
                Err(Refused { code: INVALID_ARGUMENT, .. }) => break,
                Err(refused) if refused.is_absence() => continue,
                Err(refused) => return Err(refused),
            }
            let (mut handles, mut count): ([nvmlComputeInstance_t; INSTANCES], _) =
                ([std::ptr::null_mut(); INSTANCES], 0);
            call!(
                self,
                nvmlGpuInstanceGetComputeInstances(gi, profile.id, handles.as_mut_ptr(), &mut count)
            )?;
            for handle in handles.into_iter().take(count as usize) {
                let mut info = blank();
                call!(self, nvmlComputeInstanceGetInfo_v2(handle, &mut info))?;
                found.push(Compute {
                    id: info.id,
                    profile: info.profileId,
                    start: info.placement.start,
                    size: info.placement.size,
                });
            }
        }
        found.sort_by_key(|compute| compute.id);
        Ok(found)
    }

    /// Compute, graphics and MPS processes: whatever is on it keeps it in use.
    fn processes(&self, gpu: nvmlDevice_t) -> Result<Vec<Option<(u32, u32)>>, Refused> {
        let mut all = process_list(|count, list| {
            call!(self, nvmlDeviceGetComputeRunningProcesses_v3(gpu, count, list))
        })?;
        all.extend(process_list(|count, list| {
            call!(self, nvmlDeviceGetGraphicsRunningProcesses_v3(gpu, count, list))
        })?);
        all.extend(process_list(|count, list| {
            call!(self, nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu, count, list))
        })?);
        let place = |process: nvmlProcessInfo_t| {
            let ids = (process.gpuInstanceId, process.computeInstanceId);
            (ids.0 != NO_ID).then_some(ids)
        };
        Ok(all.into_iter().map(place).collect())
    }

    /// Links that lead somewhere, be they up or not.
    fn links(&self, gpu: nvmlDevice_t) -> Result<Vec<Link>, Refused> {
        let mut found = Vec::new();
        for link in 0..MAX_LINKS as u32 {
            let (mut kind, mut active) = (0, 0);
            match call!(self, nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link, &mut kind)) {
                Ok(()) => {}
                Err(Refused { code: INVALID_ARGUMENT, .. }) => break,
                Err(refused) if refused.is_absence() => continue,
                Err(refused) => return Err(refused),
            }
            call!(self, nvmlDeviceGetNvLinkState(gpu, link, &mut active))?;
            let mut pci = blank::<nvmlPciInfo_t>();
            match kind {
                TO_SWITCH => found.push(Link { active: active != 0, gpu: None }),
                TO_GPU => {
                    call!(self, nvmlDeviceGetNvLinkRemotePciInfo_v2(gpu, link, &mut pci))?;
                    found.push(Link { active: active != 0, gpu: Some(address(&pci)) });
                }
                // A link to a CPU is none of the simulator's.
                _ => {}
            }
        }
        Ok(found)
    }

    fn fabric(&self, gpu: nvmlDevice_t) -> Result<FabricState, Refused> {
        let mut info = blank::<nvml_wrapper_sys::bindings::nvmlGpuFabricInfo_t>();
        call!(self, nvmlDeviceGetGpuFabricInfo(gpu, &mut info))?;
        let cluster = info.clusterUuid.map(|byte| byte.to_ne_bytes()).concat();
        Ok(FabricState {
            joined: info.state == JOINED,
            cluster: cluster.try_into().unwrap_or_default(),
            clique: info.cliqueId,
        })
    }

    fn levels(&self, gpus: &[nvmlDevice_t]) -> Result<Vec<Vec<u32>>, Refused> {
        let level = |one: nvmlDevice_t, other: nvmlDevice_t| {
            let mut level = 0;
            call!(self, nvmlDeviceGetTopologyCommonAncestor(one, other, &mut level)).map(|()| level)
        };
        gpus.iter().map(|one| gpus.iter().map(|other| level(*one, *other)).collect()).collect()
    }
}

fn text(ask: impl FnOnce(*mut c_char, u32) -> Result<(), Refused>) -> Result<String, Refused> {
    let mut buffer = [0 as c_char; 96];
    // One byte is kept back: the text ends whatever the driver writes.
    ask(buffer.as_mut_ptr(), buffer.len() as u32 - 1)?;
    // SAFETY: the buffer lives, and its last byte is zero.
    Ok(unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy().into_owned())
}

fn process_list(
    ask: impl Fn(*mut u32, *mut nvmlProcessInfo_t) -> Result<(), Refused>,
) -> Result<Vec<nvmlProcessInfo_t>, Refused> {
    let mut list = Vec::new();
    let mut result = Ok(());
    for _ in 0..TRIES {
        let mut count = list.len() as u32;
        result = ask(&mut count, list.as_mut_ptr());
        match result {
            Err(Refused { code: INSUFFICIENT_SIZE, .. }) => list.resize(count as usize + 8, blank()),
            _ => {
                list.truncate(count as usize);
                break;
            }
        }
    }
    Ok(perhaps(result)?.map(|()| list).unwrap_or_default())
}

fn address(pci: &nvmlPciInfo_t) -> Address {
    Address { domain: pci.domain, bus: pci.bus, device: pci.device }
}

fn bits(words: &[u64]) -> Vec<u32> {
    let words = (0u32..).zip(words);
    words
        .flat_map(|(at, word)| (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 64 + bit))
        .collect()
}
