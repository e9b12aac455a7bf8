//! The names of what a simulated GPU measures.

use crate::trouble::{Trouble, did_you_mean, join};

/// Where a reading is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of the whole GPU only.
    Gpu,
    /// Of the whole GPU and of each GPU instance.
    Instance,
}

macro_rules! readings {
    ($($variant:ident $name:literal $unit:literal $scope:ident $text:literal;)*) => {
        /// One thing that is measured.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reading {
            $(#[doc = $text] $variant,)*
        }

        impl Reading {
            /// All of them.
            pub const ALL: &[Reading] = &[$(Reading::$variant),*];

            /// The name by which commands know it.
            pub fn name(self) -> &'static str {
                match self { $(Reading::$variant => $name,)* }
            }

            /// Its unit.
            pub fn unit(self) -> &'static str {
                match self { $(Reading::$variant => $unit,)* }
            }

            /// Where it is taken.
            pub fn scope(self) -> Scope {
                match self { $(Reading::$variant => Scope::$scope,)* }
            }
        }
    };
}

readings! {
    Power "power" "mW" Gpu "Power draw.";
    Energy "energy" "mJ" Gpu "Energy since the driver was loaded.";
    Temperature "temperature" "C" Gpu "Temperature of the chip.";
    MemoryTemperature "memory-temperature" "C" Gpu "Temperature of the memory.";
    Utilisation "utilisation" "%" Gpu "Time in which something ran.";
    MemoryUtilisation "memory-utilisation" "%" Gpu "Time in which memory was read or written.";
    Encoder "encoder" "%" Gpu "Video encoders.";
    Decoder "decoder" "%" Gpu "Video decoders.";
    Jpeg "jpeg" "%" Gpu "JPEG decoders.";
    Ofa "ofa" "%" Gpu "Optical flow.";
    SmClock "sm-clock" "MHz" Gpu "Clock of the multiprocessors and of graphics.";
    MemoryClock "memory-clock" "MHz" Gpu "Clock of the memory.";
    VideoClock "video-clock" "MHz" Gpu "Clock of the video engines.";
    Fan "fan" "%" Gpu "Speed of the fans.";
    PerformanceState "performance-state" "P" Gpu "0 is the fastest.";
    ClockReasons "clock-reasons" "bits" Gpu "Why clocks are not higher: nvmlClocksEventReason*.";
    PcieTx "pcie-tx" "KB/s" Gpu "Sent over PCIe.";
    PcieRx "pcie-rx" "KB/s" Gpu "Received over PCIe.";
    PcieReplays "pcie-replays" "count" Gpu "PCIe replays.";
    NvlinkTx "nvlink-tx" "KiB" Gpu "Sent over all NVLinks.";
    NvlinkRx "nvlink-rx" "KiB" Gpu "Received over all NVLinks.";
    NvlinkReplays "nvlink-replays" "count" Gpu "NVLink replays, counted on link 0.";
    NvlinkRecoveries "nvlink-recoveries" "count" Gpu "NVLink recoveries, counted on link 0.";
    NvlinkCrcFlit "nvlink-crc-flit" "count" Gpu "NVLink flit CRC errors, counted on link 0.";
    NvlinkCrcData "nvlink-crc-data" "count" Gpu "NVLink data CRC errors, counted on link 0.";
    CorrectedVolatile "ecc-corrected-volatile" "count" Gpu "Corrected memory errors since the driver was loaded.";
    UncorrectedVolatile "ecc-uncorrected-volatile" "count" Gpu "Uncorrected memory errors since the driver was loaded.";
    CorrectedAggregate "ecc-corrected-aggregate" "count" Gpu "Corrected memory errors in the board's life.";
    UncorrectedAggregate "ecc-uncorrected-aggregate" "count" Gpu "Uncorrected memory errors in the board's life.";
    RemappedCorrectable "remapped-correctable" "rows" Gpu "Rows replaced for correctable errors.";
    RemappedUncorrectable "remapped-uncorrectable" "rows" Gpu "Rows replaced for uncorrectable errors.";
    RemapPending "remap-pending" "0/1" Gpu "A row is to be replaced at the next reset.";
    RemapFailed "remap-failed" "0/1" Gpu "A row could not be replaced.";
    RetiredSingle "retired-single" "pages" Gpu "Pages retired for single-bit errors.";
    RetiredDouble "retired-double" "pages" Gpu "Pages retired for double-bit errors.";
    RetiredPending "retired-pending" "0/1" Gpu "A page is to be retired at the next reset.";
    RecoveryAction "recovery-action" "0-4" Gpu "0 none, 1 reset, 2 reboot, 3 drain peers, 4 drain and reset.";
    ViolationPower "violation-power" "ns" Gpu "Time that power held clocks down.";
    ViolationThermal "violation-thermal" "ns" Gpu "Time that heat held clocks down.";
    MemoryUsed "memory-used" "MiB" Instance "Memory in use.";
    MemoryReserved "memory-reserved" "MiB" Gpu "Memory that the driver keeps.";
    SramUncorrected "sram-uncorrected" "count" Instance "Uncorrected errors outside of the memory, since the driver was loaded.";
    GraphicsActive "graphics-active" "%" Instance "GPM: compute or graphics engine.";
    SmActive "sm-active" "%" Instance "GPM: multiprocessors with work.";
    SmOccupancy "sm-occupancy" "%" Instance "GPM: warps on the multiprocessors.";
    TensorActive "tensor-active" "%" Instance "GPM: tensor cores.";
    DramActive "dram-active" "%" Instance "GPM: memory bandwidth.";
    Fp64Active "fp64-active" "%" Instance "GPM: double precision.";
    Fp32Active "fp32-active" "%" Instance "GPM: single precision.";
    Fp16Active "fp16-active" "%" Instance "GPM: half precision.";
    IntegerActive "integer-active" "%" Instance "GPM: integers.";
}

const _: () = assert!(Reading::ALL.len() <= 64, "one bit for each in a word");

impl Reading {
    /// The reading that a command names.
    ///
    /// # Errors
    /// [`Trouble::Input`] gives the nearest name and all there are.
    pub fn find(name: &str) -> Result<Reading, Trouble> {
        let names = || Reading::ALL.iter().map(|reading| reading.name());
        Reading::ALL.iter().copied().find(|reading| reading.name() == name).ok_or_else(|| {
            let near = did_you_mean(name, names());
            Trouble::input(format!("no reading `{name}`{near} (there are {})", join(names(), ", ")))
        })
    }

    /// Reads a value of it as a person writes it; `auto` is none.
    ///
    /// # Errors
    /// [`Trouble::Input`] says what is legal.
    pub fn parse(self, text: &str) -> Result<Option<f64>, Trouble> {
        if text == "auto" {
            return Ok(None);
        }
        let legal = match self.unit() {
            "%" => 0.0..=100.0,
            "C" => -50.0..=255.0,
            "0/1" => 0.0..=1.0,
            "0-4" => 0.0..=4.0,
            "P" => 0.0..=15.0,
            // What NVML gives in 32 bits.
            "mW" | "MHz" | "KB/s" | "rows" | "pages" => 0.0..=4_294_967_294.0,
            _ => 0.0..=9_007_199_254_740_991.0,
        };
        let fraction = self.unit() == "%" && self.scope() == Scope::Instance;
        let found = text.parse::<f64>().ok();
        let found = found.filter(|value| legal.contains(value) && (fraction || value.fract() == 0.0));
        found.map(Some).ok_or_else(|| {
            let (from, to) = legal.into_inner();
            let kind = if fraction { "a number" } else { "a whole number" };
            Trouble::input(format!(
                "`{}={text}`: a value is {kind} from {from} to {to} ({}), or auto",
                self.name(),
                self.unit()
            ))
        })
    }

    /// Its bit in a mask, and its place in a list.
    pub(crate) fn place(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let error = Reading::find("temprature").unwrap_err().to_string();
        assert!(error.contains("temperature") && error.contains("remap-pending"), "{error}");
    }

    #[test]
    fn values_out_of_range_are_refused_with_what_is_legal() {
        assert_eq!(Reading::Power.parse("123456").unwrap(), Some(123_456.0));
        assert_eq!(Reading::SmActive.parse("12.5").unwrap(), Some(12.5));
        assert_eq!(Reading::Power.parse("auto").unwrap(), None);
        for (reading, text) in [
            (Reading::Power, "-1"),
            (Reading::Power, "1.5"),
            (Reading::Utilisation, "101"),
            (Reading::Energy, "NaN"),
            (Reading::RemapPending, "2"),
            (Reading::Energy, "inf"),
        ] {
            let error = reading.parse(text).unwrap_err().to_string();
            assert!(error.contains("a whole number from"), "{error}");
        }
    }
}
