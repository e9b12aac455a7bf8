//! Field values: many small reads by one call, each with its own code.

use super::{Out, entry, field, handle::Handle, layout::FieldValue, sampled::timestamp};
use crate::machine::Code;

entry! {
    fn nvmlDeviceGetFieldValues(device: Handle, count: i32, values: Out<FieldValue>) |call| {
        let device = call.device(device)?;
        let sampler = call.sampler(&device)?;
        values.required()?;
        let count = usize::try_from(count).unwrap_or_default();
        if count == 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let now = timestamp() as i64;
        for index in 0..count {
            let asked = values.get_at(index)?;
            let mut answer = FieldValue { timestamp: now, latency_us: 0, ..asked };
            match field::value(&device, &sampler, asked.field, asked.scope) {
                Ok(value) => {
                    (answer.kind, answer.value) = value.parts();
                    answer.result = Code::SUCCESS.0;
                }
                Err(code) => answer.result = code.0,
            }
            values.put_at(index, answer)?;
        }
        Ok(())
    }
}
