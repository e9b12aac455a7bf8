//! Answers requests about one GPU: reads it, changes it one action at a time, and looks at each change.

use super::{compute, in_use::Users, read};
use crate::{
    error::Failure,
    protocol::{Request, Response},
};
use migd_core::{
    id::PciAddress,
    node::{ComputeInstance, Gpu, GpuInstance, InUse, MigMode},
    plan::{Action, ComputeSpec},
    profile::{Placement, ProfileName},
    reason::Reason,
};
use migd_nvml::{Code, Device, Error, Library};
use std::time::{Duration, Instant};

/// How long a destruction that answers IN_USE is tried again although nobody holds the instance: the driver
/// still counts a client for a moment after it has gone (DRA driver#907, MISO).
const STILL_COUNTED: Duration = Duration::from_secs(1);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// The state of a worker: its GPU as last read, kept up to date with what it does.
pub(super) struct Worker<'lib> {
    library: &'lib Library,
    device: Device<'lib>,
    pci: PciAddress,
    fixed: Option<read::Fixed>,
    gpu: Option<Gpu>,
}

impl<'lib> Worker<'lib> {
    pub(super) fn new(library: &'lib Library, device: Device<'lib>, pci: PciAddress) -> Worker<'lib> {
        Worker { library, device, pci, fixed: None, gpu: None }
    }

    pub(super) fn answer(&mut self, request: Request) -> Response {
        let answer = match request {
            Request::Count | Request::Look { .. } => {
                Err(Failure::new(Reason::Internal, "a GPU's worker is no scout"))
            }
            Request::Read { index, pci_id, driver } => {
                read::read(&self.device, &mut self.fixed, (index, self.pci, pci_id), &driver)
                    .map(|gpu| {
                        self.gpu = Some(gpu.clone());
                        Response::Read(Box::new(gpu))
                    })
                    .map_err(Failure::from)
            }
            Request::Mode => self.mode().map(Response::Mode).map_err(Failure::from),
            Request::Do(action) => self.act(&action),
        };
        answer.unwrap_or_else(Response::Failed)
    }

    fn act(&mut self, action: &Action) -> Result<Response, Failure> {
        match action {
            Action::SetMode { enabled } => return self.set_mode(*enabled),
            Action::ResetIfPending => {
                return Err(Failure::new(Reason::Internal, "a worker does not reset its own GPU"));
            }
            Action::DestroyCompute { instance, compute } => self.destroy_compute(*instance, compute)?,
            Action::DestroyInstance { placement, profile_id, profile } => {
                self.destroy_instance(*placement, *profile_id, *profile)?;
            }
            Action::CreateInstance { placement, profile_id, profile } => {
                self.create_instance(*placement, *profile_id, *profile)?;
            }
            Action::CreateCompute { instance, compute } => self.create_compute(*instance, compute)?,
        }
        Ok(Response::Done)
    }

    fn mode(&mut self) -> Result<Option<MigMode>, Error> {
        match self.device.mig_mode() {
            // A change of mode may make handles invalid (nvml.h, nvmlDeviceSetMigMode).
            Err(error) if error.is(Code::INVALID_ARGUMENT) || error.is(Code::NOT_FOUND) => {
                self.device = self.library.device_by_pci(self.pci)?;
                self.device.mig_mode()
            }
            answer => answer,
        }
    }

    fn set_mode(&mut self, enabled: bool) -> Result<Response, Failure> {
        let activation = self.device.set_mig_mode(enabled)?;
        self.gpu = None;
        // That the mode cannot be read back is no failure of setting it: whoever asked reads again.
        let mode = self.mode().ok().flatten();
        Ok(Response::ModeSet { activation: activation.0.0, mode })
    }

    fn create_instance(
        &mut self,
        placement: Placement,
        profile_id: u32,
        profile: ProfileName,
    ) -> Result<(), Failure> {
        let made = self.device.create_gpu_instance(profile_id, placement)?;
        let info = made.info()?;
        if info.placement != placement || info.profile_id != profile_id {
            // Nobody would find it again by its place, so it goes at once.
            made.destroy()?;
            let text = format!(
                "the driver put profile {} at {} instead of {profile_id} at {placement}; it was destroyed again",
                info.profile_id, info.placement
            );
            return Err(Failure::new(Reason::VerifyFailed, text));
        }
        let gpu = self.known()?;
        gpu.instances.push(GpuInstance {
            id: info.id,
            profile_id,
            profile,
            placement,
            in_use: InUse::No,
            processes: Vec::new(),
            compute: Vec::new(),
        });
        Ok(())
    }

    fn create_compute(&mut self, instance: Placement, spec: &ComputeSpec) -> Result<(), Failure> {
        let gi = self.instance_at(instance)?;
        let (id, profile) = (gi.id, gi.profile);
        let handle = self.device.gpu_instance(id)?;
        let info = compute::profile_of(&handle, spec.slices)?;
        let info = info.ok_or_else(|| {
            let text = format!("{profile} at {instance} takes no compute instance of {} slices", spec.slices);
            Failure::new(Reason::ProfileUnknown, text)
        })?;
        let made = match handle.create_compute_instance(info.id, spec.placement) {
            // Before R525 the driver alone chooses where; the plan is compared with what came of it.
            Err(error) if error.is_absent() => handle.create_compute_instance(info.id, None)?,
            answer => answer?,
        };
        let made_info = made.info()?;
        let (asked, got) = (spec.placement, made_info.placement);
        if asked.zip(got).is_some_and(|(asked, got)| asked != got) || made_info.profile_id != info.id {
            made.destroy()?;
            let text =
                format!("the driver put a compute instance elsewhere in {profile} at {instance} than asked");
            return Err(Failure::new(Reason::VerifyFailed, text));
        }
        let made = ComputeInstance {
            id: made_info.id,
            profile_id: info.id,
            profile: profile.with_compute(spec.slices),
            slices: spec.slices,
            placement: got,
            uuid: None,
            in_use: InUse::No,
        };
        self.instance_at(instance)?.compute.push(made);
        Ok(())
    }

    fn destroy_compute(&mut self, instance: Placement, spec: &ComputeSpec) -> Result<(), Failure> {
        let users = Users::read(&self.device);
        let gi = self.instance_at(instance)?;
        let (gi_id, profile) = (gi.id, gi.profile);
        let fits = |c: &&ComputeInstance| {
            c.slices == spec.slices && spec.placement.zip(c.placement).is_none_or(|(asked, has)| asked == has)
        };
        // Where the place is not said, an idle one.
        let fitting = gi.compute.iter().filter(fits);
        let ci_id = fitting.min_by_key(|c| (users.of_compute(gi_id, c.id).counts(), c.id)).map(|c| c.id);
        let ci_id = ci_id.ok_or_else(|| {
            let text =
                format!("{profile} at {instance} has no compute instance of {} slices any more", spec.slices);
            Failure::new(Reason::NodeChanged, text)
        })?;
        if users.of_compute(gi_id, ci_id).counts() {
            return Err(held(profile, instance, &users.pids(gi_id)));
        }
        let compute = self.device.gpu_instance(gi_id)?.compute_instance(ci_id)?;
        self.destroy(instance, gi_id, profile, || compute.destroy())?;
        self.instance_at(instance)?.compute.retain(|c| c.id != ci_id);
        Ok(())
    }

    fn destroy_instance(
        &mut self,
        placement: Placement,
        profile_id: u32,
        profile: ProfileName,
    ) -> Result<(), Failure> {
        let users = Users::read(&self.device);
        let gi = self.instance_at(placement)?;
        let id = gi.id;
        if gi.profile_id != profile_id {
            let text = format!("at {placement} there is {} instead of {profile}", gi.profile);
            return Err(Failure::new(Reason::NodeChanged, text));
        }
        if users.of_instance(id).counts() {
            return Err(held(profile, placement, &users.pids(id)));
        }
        let handle = self.device.gpu_instance(id)?;
        self.destroy(placement, id, profile, || handle.destroy())?;
        self.known()?.instances.retain(|instance| instance.id != id);
        Ok(())
    }

    /// Calls `destroy`, again for a while if the driver says IN_USE and nobody is in the instance.
    fn destroy(
        &self,
        placement: Placement,
        gi_id: u32,
        profile: ProfileName,
        destroy: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            match destroy() {
                Ok(()) => return Ok(()),
                Err(error) if error.is(Code::IN_USE) => {}
                Err(error) => return Err(error.into()),
            }
            let users = Users::read(&self.device);
            if users.of_instance(gi_id).counts() || begun.elapsed() > STILL_COUNTED {
                return Err(held(profile, placement, &users.pids(gi_id)));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn instance_at(&mut self, placement: Placement) -> Result<&mut GpuInstance, Failure> {
        let instances = &mut self.known()?.instances;
        let found = instances.iter_mut().find(|instance| instance.placement == placement);
        let text = || format!("there is no instance at {placement} any more; plan again");
        found.ok_or_else(|| Failure::new(Reason::NodeChanged, text()))
    }

    fn known(&mut self) -> Result<&mut Gpu, Failure> {
        let text = "an action before the GPU was read";
        self.gpu.as_mut().ok_or_else(|| Failure::new(Reason::Internal, text))
    }
}

fn held(profile: ProfileName, placement: Placement, pids: &[u32]) -> Failure {
    let by = match pids {
        [] => "by something that the driver does not name".to_owned(),
        [pid] => format!("by process {pid}"),
        pids => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            format!("by processes {}", pids.join(", "))
        }
    };
    let text = format!("{profile} at {placement} is in use {by}; stop it, or keep the instance");
    Failure::new(Reason::InstanceInUse, text)
}
