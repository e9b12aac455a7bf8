//! Answers that nobody has seen on hardware, all in one place.

use crate::shared::Info;

macro_rules! unknowns {
    ($($index:literal $name:ident: $text:literal;)*) => {
        /// Each is 0 by default, the answer that is thought likely; what else it may be stands with it.
        /// A node can set them (`unknowns` of its description) to try a program against either.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Unknowns {
            $(#[doc = $text] pub $name: u32,)*
        }

        impl Unknowns {
            /// The names by which a node's description sets them, with their index in [`Info::unknowns`] and
            /// what they mean.
            pub const NAMES: &[(usize, &str, &str)] = &[$(($index, stringify!($name), $text)),*];

            /// The node's choice.
            pub fn new(info: &Info) -> Unknowns {
                Unknowns { $($name: info.unknowns.get($index).copied().unwrap_or(0)),* }
            }
        }
    };
}

unknowns! {
    0 enable_again_with_instances: "SetMigMode(on) while on with instances: 0 success, 1 IN_USE.";
    1 ampere_disable_with_instances: "SetMigMode(off) with instances on Ampere: 0 returns IN_USE, 1 success with activation IN_USE and pending off.";
    2 current_mode_keeps_pending: "SetMigMode(current mode) while another is pending: 0 clears the pending one, 1 keeps it.";
    3 mig_index_past_maximum: "MIG device at an index past the maximum: 0 INVALID_ARGUMENT, 1 NOT_FOUND.";
    4 placement_not_in_list: "GPU instance at a placement that its profile does not have: 0 INVALID_ARGUMENT, 1 INSUFFICIENT_RESOURCES.";
    5 compute_profile_not_in_instance: "Compute instance of a profile that the GPU instance lacks: 0 NOT_SUPPORTED, 1 INVALID_ARGUMENT.";
    6 stale_instance_handle: "A handle of an instance that is gone: 0 INVALID_ARGUMENT, 1 NOT_FOUND.";
    7 mig_handle_minor: "Minor number of a MIG device: 0 NOT_SUPPORTED, 1 its GPU's.";
    8 mig_handle_pci: "PCI data of a MIG device: 0 its GPU's, 1 NOT_SUPPORTED.";
    9 mig_handle_mode: "MIG mode of a MIG device: 0 NOT_SUPPORTED, 1 its GPU's.";
    10 mig_handle_compute_mode: "Compute mode of a MIG device: 0 DEFAULT, 1 NOT_SUPPORTED.";
    11 hopper_disable_with_readers: "SetMigMode(off) on Hopper and later while others have the GPU open but compute nothing: 0 success, 1 IN_USE.";
    12 lost_facts: "Name, UUID, index of a lost GPU: 0 answered, 1 GPU_IS_LOST.";
    13 profile_name_prefix: "Name in a versioned profile info: 0 the profile's (1g.5gb), 1 with 'MIG ' before it.";
    14 mig_handle_sensors: "Power, temperature, clocks and performance state of a MIG device: 0 NOT_SUPPORTED, 1 its GPU's.";
    15 mig_handle_fields: "Field values of a MIG device: 0 each NOT_SUPPORTED, 1 its GPU's.";
    16 nvlink_under_mig: "NVLinks of a GPU with MIG on: 0 inactive, 1 as without MIG.";
}
