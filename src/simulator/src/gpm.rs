//! GPM, the counters of Hopper and later: what a GPU or a GPU instance did between two samples of it.
//!
//! Activities are per cents of the resources of what was sampled, so a GPU instance under full load shows 100
//! whatever its size. A value that a person has set stands for what was measured.

use crate::{
    machine::Code,
    model::{Engines, Model},
    numbered::Numbered,
    reading::Reading,
    readings::{Sum, Values},
    sampler::{PCIE_RATE, Sampler, activity},
};
use std::{
    ffi::CStr,
    sync::{Mutex, PoisonError},
};

/// The GPM samples of one process.
pub type Samples = Numbered<Slot>;

/// Where a sample lies: empty from alloc to get, and got into as often as wanted.
#[derive(Debug, Default)]
pub struct Slot(Mutex<Option<Taken>>);

/// A sample: all readings at one instant.
#[derive(Debug, Clone)]
pub struct Taken {
    /// NVML index of the GPU.
    pub gpu: usize,
    /// GPU instance, and the engines it has; the whole GPU without.
    pub instance: Option<(u32, Engines)>,
    /// The readings.
    pub values: Values,
    /// When they held.
    pub now: u64,
}

impl Slot {
    /// Puts a sample there.
    pub fn put(&self, taken: Taken) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
    }

    /// The sample that was put there last.
    pub fn get(&self) -> Option<Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The greatest id that nvml.h gives a metric.
const LAST: u32 = 476;
const PER_CENT: &CStr = c"%";
const RATE: &CStr = c"MiB/s";

/// Metrics that are a part of the load: id, reading, short name, long name.
const ACTIVITIES: &[(u32, Option<Reading>, &CStr, &CStr)] = &[
    (1, Some(Reading::GraphicsActive), c"GRACT", c"Graphics or compute engine active"),
    (2, Some(Reading::SmActive), c"SMACT", c"Multiprocessors active"),
    (3, Some(Reading::SmOccupancy), c"SMOCC", c"Multiprocessors' warps occupied"),
    (4, Some(Reading::IntegerActive), c"INTACT", c"Integer units active"),
    (5, Some(Reading::TensorActive), c"TENSO", c"Tensor cores active"),
    // All work of the tensor cores counts as half precision.
    (6, None, c"DFMA", c"Tensor cores active in double precision"),
    (7, Some(Reading::TensorActive), c"HMMA", c"Tensor cores active in half precision"),
    (8, None, c"DMMA", c"Tensor cores active in double precision"),
    (9, None, c"IMMA", c"Tensor cores active in integers"),
    (10, Some(Reading::DramActive), c"DRAMA", c"Memory bandwidth used"),
    (11, Some(Reading::Fp64Active), c"FP64A", c"Double precision units active"),
    (12, Some(Reading::Fp32Active), c"FP32A", c"Single precision units active"),
    (13, Some(Reading::Fp16Active), c"FP16A", c"Half precision units active"),
];

/// What is known of a metric whatever its value.
#[derive(Debug, Clone, Copy)]
pub struct Name {
    /// A few letters.
    pub short: &'static CStr,
    /// A few words.
    pub long: &'static CStr,
    /// `%` or `MiB/s`.
    pub unit: &'static CStr,
}

/// The name of a metric that some GPU has.
pub fn name(id: u32) -> Option<Name> {
    let (short, long, unit) = match id {
        1..=13 => {
            let found = ACTIVITIES.iter().find(|row| row.0 == id)?;
            (found.2, found.3, PER_CENT)
        }
        20 => (c"PCITX", c"Sent over PCIe", RATE),
        21 => (c"PCIRX", c"Received over PCIe", RATE),
        30..=37 => (c"NVDEC", c"Video decoder active", PER_CENT),
        40..=47 => (c"NVJPG", c"JPEG decoder active", PER_CENT),
        50..=51 => (c"NVOFA", c"Optical flow active", PER_CENT),
        60 | 61 => (c"NVLNK", c"Carried by all NVLinks in one direction", RATE),
        62..=97 => (c"NVLNK", c"Carried by one NVLink in one direction", RATE),
        166..=169 => (c"NVENC", c"Video encoder active", PER_CENT),
        _ => return None,
    };
    Some(Name { short, long, unit })
}

/// A metric between two samples of the same thing.
///
/// # Errors
/// `INVALID_ARGUMENT` for an id that there is not, `NOT_SUPPORTED` for one that is not measured here, `NO_DATA`
/// if no time has passed.
pub fn metric(model: &Model, first: &Taken, second: &Taken, id: u32) -> Result<f64, Code> {
    if id == 0 || id > LAST {
        return Err(Code::INVALID_ARGUMENT);
    }
    if first.now >= second.now {
        return Err(Code::NO_DATA);
    }
    let span = Span {
        from: Sampler::new(model, first.values.clone(), first.now),
        to: Sampler::new(model, second.values.clone(), second.now),
        seconds: (second.now - first.now) as f64 / 1e9,
        place: second.instance.map_or(0, |(gi, _)| 1 + gi as usize),
        engines: second.instance.map_or_else(|| model.engines(), |(_, engines)| engines),
    };
    let links = model.links;
    match id {
        1..=13 => {
            let row = ACTIVITIES.iter().find(|row| row.0 == id).ok_or(Code::NOT_SUPPORTED)?;
            Ok(row.1.map_or(0.0, |reading| span.activity(reading)))
        }
        20 => Ok(span.pcie(Sum::PcieTx)),
        21 => Ok(span.pcie(Sum::PcieRx)),
        30..=37 => span.engine(Reading::Decoder, id - 30, span.engines.decoder),
        40..=47 => span.engine(Reading::Jpeg, id - 40, span.engines.jpeg),
        50..=51 => span.engine(Reading::Ofa, id - 50, span.engines.ofa),
        166..=169 => span.engine(Reading::Encoder, id - 166, span.engines.encoder),
        // Of a GPU instance no links are told.
        60..=97 if span.place != 0 || links == 0 => Err(Code::NOT_SUPPORTED),
        60 => Ok(span.nvlink(Reading::NvlinkRx)),
        61 => Ok(span.nvlink(Reading::NvlinkTx)),
        62..=97 if (id - 62) / 2 < links => {
            let reading = if id.is_multiple_of(2) { Reading::NvlinkRx } else { Reading::NvlinkTx };
            Ok(span.nvlink(reading) / f64::from(links))
        }
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// Two samples of one place.
struct Span<'a> {
    from: Sampler<'a>,
    to: Sampler<'a>,
    seconds: f64,
    place: usize,
    engines: Engines,
}

impl Span<'_> {
    /// The mean load. A GPU instance that was made anew between the samples has begun at 0.
    fn load(&self) -> f64 {
        ((self.to.active(self.place) - self.from.active(self.place)) / self.seconds).clamp(0.0, 1.0)
    }

    fn activity(&self, reading: Reading) -> f64 {
        let measured = || self.load() * activity(reading).unwrap_or_default() * 100.0;
        self.to.set(self.place, reading).unwrap_or_else(measured)
    }

    /// MiB/s. An instance has its part of the bus.
    fn pcie(&self, sum: Sum) -> f64 {
        let kb = match self.place {
            0 => (self.to.sum(sum) - self.from.sum(sum)).max(0.0) / self.seconds,
            place => self.load() * PCIE_RATE * self.to.weight(place),
        };
        kb / 1024.0
    }

    /// MiB/s.
    fn nvlink(&self, reading: Reading) -> f64 {
        let kib = |sampler: &Sampler<'_>| sampler.gpu(reading).unwrap_or_default();
        (kib(&self.to) - kib(&self.from)).max(0.0) / self.seconds / 1024.0
    }

    fn engine(&self, reading: Reading, index: u32, count: u32) -> Result<f64, Code> {
        if index >= count {
            return Err(Code::NOT_SUPPORTED);
        }
        // Of a GPU instance's engines no load is simulated.
        Ok(if self.place == 0 { self.to.gpu(reading).unwrap_or_default() } else { 0.0 })
    }
}

impl Model {
    /// The engines of the whole board: its greatest profile has them all.
    fn engines(&self) -> Engines {
        let none = Engines { copy: 0, decoder: 0, encoder: 0, jpeg: 0, ofa: 0 };
        self.profiles().iter().fold(none, |most, profile| Engines {
            copy: most.copy.max(profile.engines.copy),
            decoder: most.decoder.max(profile.engines.decoder),
            encoder: most.encoder.max(profile.engines.encoder),
            jpeg: most.jpeg.max(profile.engines.jpeg),
            ofa: most.ofa.max(profile.engines.ofa),
        })
    }

    /// Whether the board has a video encoder.
    pub fn has_encoder(&self) -> bool {
        self.profiles().is_empty() || self.engines().encoder > 0
    }
}

#[cfg(test)]
mod tests;
