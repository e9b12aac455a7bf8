//! MIG devices: a GPU instance with a compute instance in it, and how programs name one.

use super::{Board, Code};
use crate::state::{CiState, GiState, GpuState};
use sha1::{Digest, Sha1};

/// A MIG device by its ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigDevice {
    /// GPU instance id.
    pub gi: u32,
    /// Compute instance id.
    pub ci: u32,
}

/// What nvmlDeviceGetAttributes says of a MIG device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Streaming multiprocessors of the compute instance.
    pub multiprocessors: u32,
    /// Copy engines, decoders, encoders, JPEG and optical flow units of the GPU instance, shared by its
    /// compute instances.
    pub engines: [u32; 5],
    /// Compute slices of the GPU instance.
    pub gi_slices: u32,
    /// Compute slices of the compute instance.
    pub ci_slices: u32,
    /// Memory of the GPU instance in MiB.
    pub memory_mib: u64,
}

impl Board<'_> {
    /// The MIG devices in the order of their index: dense, by GPU instance id, then compute instance id.
    pub fn mig_devices(&self, state: &GpuState) -> Vec<MigDevice> {
        if !self.mig_on(state) {
            return Vec::new();
        }
        state
            .live_gis()
            .flat_map(|(gi, instance)| instance.live_cis().map(move |(ci, _)| MigDevice { gi, ci }))
            .collect()
    }

    /// The most MIG devices there can ever be; 0 while MIG is off.
    pub fn max_mig_devices(&self, state: &GpuState) -> u32 {
        if self.mig_on(state) { self.model.compute_slices } else { 0 }
    }

    /// The GPU instance and the compute instance of a MIG device.
    ///
    /// # Errors
    /// `NOT_FOUND` for one that is gone.
    pub fn mig_instances<'s>(
        &self,
        state: &'s GpuState,
        device: MigDevice,
    ) -> Result<(&'s GiState, &'s CiState), Code> {
        let gi = self.gi(state, device.gi).map_err(|_| Code::NOT_FOUND)?;
        Ok((gi, self.ci(gi, device.ci)?))
    }

    /// A MIG device's UUID. As the driver's it is a hash of what names the hardware (chip, GPU instance, first
    /// engine), so an instance that is made again at the same place has the same one; before 470.42 it was put
    /// together from the GPU's and the ids.
    pub fn mig_uuid(&self, device: MigDevice, ci: &CiState) -> String {
        if !self.driver.new_mig_uuids() {
            return self.old_mig_uuid(device);
        }
        let mut hash = Sha1::new();
        hash.update(b"nvml-simulator SMC");
        hash.update(self.model.board_seed.to_le_bytes());
        hash.update(device.gi.to_le_bytes());
        hash.update(ci.start.to_le_bytes());
        let mut b = [0u8; 16];
        for (to, from) in b.iter_mut().zip(hash.finalize()) {
            *to = from;
        }
        let mut value = u128::from_be_bytes(b);
        // RFC 9562: version 5 in the high half of octet 6, variant in the two high bits of octet 8.
        value = value & !(0xf << 76) | (0x5 << 76);
        value = value & !(0x3 << 62) | (0x2 << 62);
        let hex = format!("{value:032x}");
        let part = |from, to| hex.get(from..to).unwrap_or_default();
        format!("MIG-{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
    }

    /// `MIG-GPU-<uuid>/<gi>/<ci>`, which look-ups still take.
    pub fn old_mig_uuid(&self, device: MigDevice) -> String {
        format!("MIG-{}/{}/{}", self.model.uuid.as_str(), device.gi, device.ci)
    }

    /// The MIG device with this UUID, in either form.
    pub fn mig_by_uuid(&self, state: &GpuState, uuid: &str) -> Option<MigDevice> {
        self.mig_devices(state).into_iter().find(|device| {
            self.mig_instances(state, *device)
                .is_ok_and(|(_, ci)| self.mig_uuid(*device, ci) == uuid || self.old_mig_uuid(*device) == uuid)
        })
    }

    /// `NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb`.
    ///
    /// # Errors
    /// As [`Board::ci_profile_of`].
    pub fn mig_name(&self, gi: &GiState, ci: &CiState) -> Result<String, Code> {
        Ok(format!("{} MIG {}", self.model.name.as_str(), self.ci_profile_of(gi, ci)?.name.as_str()))
    }

    /// What a MIG device has.
    ///
    /// # Errors
    /// As [`Board::ci_profile_of`].
    pub fn attributes(&self, gi: &GiState, ci: &CiState) -> Result<Attributes, Code> {
        let profile = self.profile_of(gi)?;
        let compute = self.ci_profile_of(gi, ci)?;
        let e = &profile.engines;
        Ok(Attributes {
            multiprocessors: compute.multiprocessors,
            engines: [e.copy, e.decoder, e.encoder, e.jpeg, e.ofa],
            gi_slices: profile.slices,
            ci_slices: compute.slices,
            memory_mib: profile.memory_mib,
        })
    }
}
