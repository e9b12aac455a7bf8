//! What a GPU's sensors show: pure functions of its model, its state, its readings and the time.
//!
//! A value that a person has set is shown as it is. All others follow from the load alone, and from the board's
//! own seed, so the same node under the same load shows the same. On a GPU in MIG mode the load is that of its
//! instances, each by its part of the compute slices.

use crate::{
    model::Model,
    product::Product,
    reading::{Reading, Scope},
    readings::{PLACES, SUMS, Sum, Values},
    state::GpuState,
};

/// What stands for a figure that is not published, where a sensor shows something all the same.
const UNPUBLISHED_POWER: u32 = 500;
const UNPUBLISHED_SM_CLOCK: u32 = 1800;
const UNPUBLISHED_MEMORY_CLOCK: u32 = 2000;
/// MHz while nothing runs.
const IDLE_CLOCK: u32 = 210;
/// nvmlClocksEventReasonGpuIdle and nvmlClocksEventReasonSwPowerCap.
const REASON_IDLE: u32 = 1;
const REASON_POWER_CAP: u32 = 4;
/// At full load, KB/s in each direction.
const PCIE_RATE: f64 = 8_000_000.0;
/// At full load, the part of what the links could carry.
const NVLINK_PART: f64 = 0.4;

/// One GPU's sensors at one instant.
#[derive(Clone)]
pub struct Sampler<'a> {
    /// The board.
    pub model: &'a Model,
    /// Its published figures.
    pub product: Product,
    values: Values,
    now: u64,
}

/// The whole GPU's load.
pub fn load(values: &Values) -> f64 {
    let parts: f64 = (1..PLACES).map(|place| values.load(place) * values.weight(place)).sum();
    (values.load(0) + parts).min(1.0)
}

/// How fast each sum grows, by the second.
pub fn rates(model: &Model, values: &Values) -> [f64; SUMS] {
    let mut rates = [0.0; SUMS];
    let set = |reading| values.set(0, reading);
    let nvlink = load(values) * NVLINK_PART * f64::from(model.links) * model.nvlink_speed() as f64;
    let kib = nvlink * 1e6 / 1024.0;
    let pcie = load(values) * PCIE_RATE;
    for (sum, rate) in [
        (Sum::Energy, power(model, values)),
        (Sum::PcieTx, set(Reading::PcieTx).unwrap_or(pcie)),
        (Sum::PcieRx, set(Reading::PcieRx).unwrap_or(pcie)),
        (Sum::NvlinkTx, kib),
        (Sum::NvlinkRx, kib),
    ] {
        if let Some(to) = rates.get_mut(sum as usize) {
            *to = rate;
        }
    }
    rates
}

/// mW.
fn power(model: &Model, values: &Values) -> f64 {
    if let Some(set) = values.set(0, Reading::Power) {
        return set;
    }
    let most = f64::from(Product::of(model).power.unwrap_or(UNPUBLISHED_POWER)) * 1000.0;
    // Boards of one kind differ by some watts.
    let idle = most * 0.12 + (model.board_seed % 7000) as f64;
    (idle + (most - idle) * load(values)).round()
}

impl<'a> Sampler<'a> {
    /// The sensors of a GPU at the time `now`.
    pub fn new(model: &'a Model, values: Values, now: u64) -> Sampler<'a> {
        Sampler { model, product: Product::of(model), values, now }
    }

    /// The time of the reading, in nanoseconds since boot.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The load of a place: 0 the whole GPU, then the GPU instances by id.
    pub fn load(&self, place: usize) -> f64 {
        if place == 0 { load(&self.values) } else { self.values.load(place) }
    }

    /// Seconds of full load on a place until now.
    pub fn active(&self, place: usize) -> f64 {
        self.values.active(place) + self.load(place) * self.seconds()
    }

    /// The value that a person has set.
    pub fn set(&self, place: usize, reading: Reading) -> Option<f64> {
        self.values.set(place, reading)
    }

    /// A sum until now.
    pub fn sum(&self, sum: Sum) -> f64 {
        let rate = rates(self.model, &self.values).get(sum as usize).copied().unwrap_or_default();
        self.values.settled(sum) + rate * self.seconds()
    }

    /// A sensor of the whole GPU; `None` if the board has no such sensor.
    pub fn gpu(&self, reading: Reading) -> Option<f64> {
        self.sensor(reading)?;
        Some(self.values.set(0, reading).unwrap_or_else(|| self.sensor(reading).unwrap_or_default()))
    }

    /// A reading of a GPU instance with `memory_mib`, by its id; `None` for one that only a GPU has.
    pub fn instance(&self, gi: u32, memory_mib: u64, reading: Reading) -> Option<f64> {
        let place = 1 + gi as usize;
        if reading.scope() != Scope::Instance {
            return None;
        }
        Some(self.values.set(place, reading).unwrap_or_else(|| {
            let load = self.values.load(place);
            match reading {
                Reading::MemoryUsed => memory_used(load, memory_mib),
                other => activity(other).map_or(0.0, |part| load * part * 100.0),
            }
        }))
    }

    /// MiB in use on the whole GPU: in MIG mode that of its instances.
    pub fn memory_used(&self, state: &GpuState) -> f64 {
        if let Some(set) = self.values.set(0, Reading::MemoryUsed) {
            return set;
        }
        if state.mig_current == 0 {
            return memory_used(self.load(0), self.model.memory_mib);
        }
        let one = |(id, gi): (u32, &crate::state::GiState)| {
            let profile = self.model.profiles().get(gi.profile as usize)?;
            self.instance(id, profile.memory_mib, Reading::MemoryUsed)
        };
        state.live_gis().filter_map(one).sum()
    }

    fn seconds(&self) -> f64 {
        self.now.saturating_sub(self.values.since()) as f64 / 1e9
    }

    /// What the sensor shows by itself; `None` without one.
    fn sensor(&self, reading: Reading) -> Option<f64> {
        let load = self.load(0);
        let (product, model) = (&self.product, self.model);
        let clock = |most: u32| f64::from(if load > 0.0 { most } else { IDLE_CLOCK.min(most) });
        let warmth = 30.0 + (model.board_seed % 6) as f64 + (40.0 * load).round();
        Some(match reading {
            Reading::Power => power(model, &self.values),
            Reading::Energy => self.sum(Sum::Energy),
            Reading::Temperature => warmth,
            Reading::MemoryTemperature => model.has_hbm().then_some(warmth + 8.0)?,
            Reading::Utilisation => (load * 100.0).round(),
            Reading::MemoryUtilisation => (load * 60.0).round(),
            Reading::SmClock => clock(product.sm_clock.unwrap_or(UNPUBLISHED_SM_CLOCK)),
            Reading::MemoryClock => f64::from(product.memory_clock.unwrap_or(UNPUBLISHED_MEMORY_CLOCK)),
            Reading::VideoClock => (clock(product.sm_clock.unwrap_or(UNPUBLISHED_SM_CLOCK)) * 0.9).round(),
            Reading::Fan => (product.fans > 0).then_some(30.0 + (load * 50.0).round())?,
            Reading::ClockReasons => f64::from(match load {
                idle if idle <= 0.0 => REASON_IDLE,
                full if full >= 1.0 => REASON_POWER_CAP,
                _ => 0,
            }),
            Reading::PcieTx | Reading::PcieRx => (load * PCIE_RATE).round(),
            Reading::NvlinkTx => self.sum(Sum::NvlinkTx),
            Reading::NvlinkRx => self.sum(Sum::NvlinkRx),
            Reading::NvlinkReplays
            | Reading::NvlinkRecoveries
            | Reading::NvlinkCrcFlit
            | Reading::NvlinkCrcData => (model.links > 0).then_some(0.0)?,
            Reading::CorrectedVolatile
            | Reading::UncorrectedVolatile
            | Reading::CorrectedAggregate
            | Reading::UncorrectedAggregate
            | Reading::SramUncorrected => model.has_ecc().then_some(0.0)?,
            Reading::RemappedCorrectable
            | Reading::RemappedUncorrectable
            | Reading::RemapPending
            | Reading::RemapFailed => (model.has_ecc() && model.remaps_rows()).then_some(0.0)?,
            Reading::RetiredSingle | Reading::RetiredDouble | Reading::RetiredPending => {
                (model.has_ecc() && !model.remaps_rows()).then_some(0.0)?
            }
            Reading::MemoryUsed => memory_used(load, model.memory_mib),
            Reading::Encoder
            | Reading::Decoder
            | Reading::Jpeg
            | Reading::Ofa
            | Reading::PerformanceState
            | Reading::PcieReplays
            | Reading::RecoveryAction
            | Reading::ViolationPower
            | Reading::ViolationThermal
            | Reading::MemoryReserved => 0.0,
            Reading::GraphicsActive
            | Reading::SmActive
            | Reading::SmOccupancy
            | Reading::TensorActive
            | Reading::DramActive
            | Reading::Fp64Active
            | Reading::Fp32Active
            | Reading::Fp16Active
            | Reading::IntegerActive => {
                let part = activity(reading).filter(|_| model.has_gpm())?;
                load * part * 100.0
            }
        })
    }
}

/// Half of the memory at full load.
fn memory_used(load: f64, memory_mib: u64) -> f64 {
    (load * 0.5 * memory_mib as f64).round()
}

/// What part of the load each unit has.
pub fn activity(reading: Reading) -> Option<f64> {
    Some(match reading {
        Reading::GraphicsActive => 1.0,
        Reading::SmActive => 0.9,
        Reading::SmOccupancy => 0.5,
        Reading::TensorActive => 0.4,
        Reading::DramActive => 0.6,
        Reading::Fp64Active => 0.05,
        Reading::Fp32Active => 0.3,
        Reading::Fp16Active => 0.1,
        Reading::IntegerActive => 0.2,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
