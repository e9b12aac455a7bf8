//! Field values: many small reads by one call, each with its own code.

use super::{
    Out, entry,
    handle::{Device, Handle},
    layout::FieldValue,
};
use crate::{machine::Code, model::Family};
use std::time::SystemTime;

/// NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED.
const RESETLESS_MIG: u32 = 184;
/// NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE.
const PROFILES_WITH_MIG_OFF: u32 = 199;
/// NVML_VALUE_TYPE_UNSIGNED_INT.
const UNSIGNED_INT: u32 = 1;

entry! {
    fn nvmlDeviceGetFieldValues(device: Handle, count: i32, values: Out<FieldValue>) |call| {
        let device = call.device(device)?;
        values.required()?;
        let count = usize::try_from(count).unwrap_or_default();
        if count == 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for index in 0..count {
            let asked = values.get_at(index)?;
            let mut answer = FieldValue { timestamp: now.as_micros() as i64, latency_us: 0, ..asked };
            match value(&device, asked.field) {
                Some(value) => {
                    answer.kind = UNSIGNED_INT;
                    answer.result = Code::SUCCESS.0;
                    answer.value = u64::from(value);
                }
                None => answer.result = Code::NOT_SUPPORTED.0,
            }
            values.put_at(index, answer)?;
        }
        Ok(())
    }
}

/// The field's value; fields of a MIG device are asked on its GPU.
fn value(device: &Device<'_>, field: u32) -> Option<u32> {
    let board = &device.board;
    if device.mig.is_some() {
        return None;
    }
    match field {
        RESETLESS_MIG => Some(u32::from(board.has_mig() && board.model.family() == Family::HopperOrLater)),
        // The field is as old as the ability.
        PROFILES_WITH_MIG_OFF if board.driver.lists_profiles_with_mig_off() => {
            Some(u32::from(board.has_mig()))
        }
        _ => None,
    }
}
