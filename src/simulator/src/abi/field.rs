//! The values behind NVML's field ids. Fields of a MIG device are asked on its GPU; there they obey the rules
//! of the functions that tell the same.

use super::{ecc::require_whole, handle::Device};
use crate::{
    machine::Code,
    model::Family,
    reading::Reading,
    readings::{Setting, Sum},
    sampler::Sampler,
};

/// NVML_VALUE_TYPE_UNSIGNED_INT, _UNSIGNED_LONG_LONG.
const UNSIGNED_INT: u32 = 1;
const UNSIGNED_LONG_LONG: u32 = 3;
/// The scope of all links together.
const ALL_LINKS: u32 = u32::MAX;
/// NVML_DEVICE_ARCH_BLACKWELL.
const BLACKWELL: u32 = 10;

/// A field's value with its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// 32 bits.
    Int(u32),
    /// 64 bits.
    Long(u64),
}

impl Value {
    /// NVML's number of the type, and the union's bytes.
    pub(super) fn parts(self) -> (u32, u64) {
        match self {
            Value::Int(value) => (UNSIGNED_INT, value.into()),
            Value::Long(value) => (UNSIGNED_LONG_LONG, value),
        }
    }
}

/// The field's value.
pub(super) fn value(device: &Device<'_>, sampler: &Sampler<'_>, id: u32, scope: u32) -> Result<Value, Code> {
    if device.mig.is_some() && device.board.unknowns.mig_handle_fields == 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let int = |reading| Ok(Value::Int(sampler.need(reading)? as u32));
    let long = |reading| Ok(Value::Long(sampler.need(reading)? as u64));
    match id {
        1 | 2 => ecc_mode(sampler, id),
        3..=31 => errors(device, sampler, id),
        32..=73 | 96..=131 | 148..=163 => link_errors(sampler, id, scope),
        74 => long(Reading::ViolationPower),
        75 => long(Reading::ViolationThermal),
        // The other reasons that hold clocks down, of which no time is simulated.
        76..=81 => Ok(Value::Long(0)),
        82 => int(Reading::MemoryTemperature),
        83 | 191 => long(Reading::Energy),
        84..=91 | 132..=141 | 147 | 164..=167 | 201..=204 => link(device, sampler, id, scope),
        94 => int(Reading::PcieReplays),
        95 => Ok(Value::Int(0)),
        142..=145 => rows(device, sampler, id),
        // The first is the mean of a second, which at constant load is what it shows now.
        185 | 186 => int(Reading::Power),
        187 => Ok(Value::Int(sampler.power_limits()?.0.ok_or(Code::NOT_SUPPORTED)?)),
        188 | 189 => Ok(Value::Int(sampler.power_limits()?.1)),
        190 | 192 => Ok(Value::Int(sampler.power_limit()?)),
        197 => Ok(Value::Long((sampler.sum(Sum::PcieTx) * 1024.0) as u64)),
        198 => Ok(Value::Long((sampler.sum(Sum::PcieRx) * 1024.0) as u64)),
        173..=183 => Ok(Value::Int(0)),
        230 => int(Reading::RecoveryAction),
        // Three more reasons, which had other ids before 580.82.
        251..=253 if !device.board.driver.has_new_field_ids() => Ok(Value::Long(0)),
        269..=271 if device.board.driver.has_new_field_ids() => Ok(Value::Long(0)),
        _ => mig(device, id),
    }
}

/// What programs ask about MIG before they touch it.
fn mig(device: &Device<'_>, id: u32) -> Result<Value, Code> {
    let board = &device.board;
    let has = match id {
        // NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED.
        184 => board.has_mig() && board.model.family() == Family::HopperOrLater,
        // NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE, which is as old as the ability.
        199 if board.driver.lists_profiles_with_mig_off() => board.has_mig(),
        _ => return Err(Code::NOT_SUPPORTED),
    };
    Ok(Value::Int(u32::from(has)))
}

fn ecc_mode(sampler: &Sampler<'_>, id: u32) -> Result<Value, Code> {
    if !sampler.model.has_ecc() {
        return Err(Code::NOT_SUPPORTED);
    }
    let off = if id == 1 { Setting::EccOff } else { Setting::EccOffPending };
    Ok(Value::Int(u32::from(sampler.setting(off) == 0)))
}

/// Counters of errors, and retired pages.
fn errors(device: &Device<'_>, sampler: &Sampler<'_>, id: u32) -> Result<Value, Code> {
    const DRAM: u32 = 2;
    const SRAM: u32 = 7;
    let retired = |reading| Ok(Value::Int(sampler.need(reading)? as u32));
    // Ids come in pairs: corrected, uncorrected.
    let kind = (id + 1) % 2;
    match id {
        29 => retired(Reading::RetiredSingle),
        30 => retired(Reading::RetiredDouble),
        31 => retired(Reading::RetiredPending),
        3 | 4 | 11 | 12 if device.board.mig_on(&device.state) => Err(Code::NOT_SUPPORTED),
        3..=6 => {
            let counter = u32::from(id > 4);
            let sram = sampler.errors(kind, counter, SRAM)?;
            Ok(Value::Long(sampler.errors(kind, counter, DRAM)? + sram))
        }
        11 | 12 => Ok(Value::Long(sampler.errors(kind, 0, DRAM)?)),
        // These count from an even id.
        22 | 23 => Ok(Value::Long(sampler.errors(1 - kind, 1, DRAM)?)),
        // Caches and registers, of which boards since Turing tell the sum alone.
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// The count of link `index` of a list whose first links and later ones have ids of their own.
fn listed(id: u32, first: u32, later: u32) -> Option<u32> {
    match id {
        _ if (first..first + 6).contains(&id) => Some(id - first),
        _ if (later..later + 6).contains(&id) => Some(6 + id - later),
        _ => None,
    }
}

fn link_errors(sampler: &Sampler<'_>, id: u32, scope: u32) -> Result<Value, Code> {
    // First six links, later six, the total: by NVML_NVLINK_ERROR_DL_*.
    const LISTS: [(u32, u32, u32, u32); 4] =
        [(2, 32, 96, 38), (3, 39, 102, 45), (0, 46, 108, 52), (1, 53, 114, 59)];
    if sampler.model.links == 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    for (counter, first, later, total) in LISTS {
        if id == total {
            return Ok(Value::Long(sampler.link_errors(0, counter)?));
        }
        if let Some(link) = listed(id, first, later) {
            require_link(sampler, link)?;
            return Ok(Value::Long(sampler.link_errors(link, counter)?));
        }
    }
    // NVML_FI_DEV_NVLINK_ERROR_DL_*: the link is the scope.
    let counter = match id {
        161 => 0,
        162 => 1,
        163 => 2,
        _ => return Err(Code::NOT_SUPPORTED),
    };
    require_link(sampler, scope)?;
    Ok(Value::Long(sampler.link_errors(scope, counter)?))
}

/// Links: how many, how fast, what they carried.
fn link(device: &Device<'_>, sampler: &Sampler<'_>, id: u32, scope: u32) -> Result<Value, Code> {
    let model = sampler.model;
    if id == 91 {
        return Ok(Value::Int(sampler.product.links));
    }
    if sampler.product.links == 0 || model.links == 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let speed = Value::Int(model.nvlink_speed() as u32);
    let carried = |reading| {
        let kib = sampler.need(reading)?;
        match scope {
            ALL_LINKS => Ok(kib as u64),
            link => require_link(sampler, link).map(|()| (kib / f64::from(model.links)) as u64),
        }
    };
    let one = |value| require_link(sampler, scope).map(|()| value);
    match id {
        90 => Ok(speed),
        147 => Ok(Value::Int(model.switched_links())),
        164 => one(speed),
        165 => one(Value::Int(u32::from(device.board.link_active(&device.state, scope)))),
        166 => one(Value::Int(model.nvlink_version())),
        // NVML_NVLINK_POWER_STATE_HIGH_SPEED.
        167 => one(Value::Int(0)),
        // Payload; the raw traffic beside it is not simulated.
        138 => Ok(Value::Long(carried(Reading::NvlinkTx)?)),
        139 => Ok(Value::Long(carried(Reading::NvlinkRx)?)),
        202 if model.architecture >= BLACKWELL => Ok(Value::Long(carried(Reading::NvlinkTx)? * 1024)),
        204 if model.architecture >= BLACKWELL => Ok(Value::Long(carried(Reading::NvlinkRx)? * 1024)),
        _ => match listed(id, 84, 132) {
            Some(link) => require_link(sampler, link).map(|()| speed),
            None => Err(Code::NOT_SUPPORTED),
        },
    }
}

fn require_link(sampler: &Sampler<'_>, link: u32) -> Result<(), Code> {
    if link < sampler.model.links { Ok(()) } else { Err(Code::INVALID_ARGUMENT) }
}

fn rows(device: &Device<'_>, sampler: &Sampler<'_>, id: u32) -> Result<Value, Code> {
    require_whole(device)?;
    let rows = sampler.rows()?;
    Ok(Value::Int(match id {
        142 => rows.corrected,
        143 => rows.uncorrected,
        144 => rows.pending,
        _ => rows.failed,
    }))
}
