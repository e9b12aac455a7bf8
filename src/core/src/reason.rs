//! Why something was refused, failed or left undone: one word each, the same in Rust, D-Bus error names,
//! `--json`, journal fields and metrics; and the exit code that `migctl` gives for it.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal => $exit:ident,)*) => {
        /// A stable reason code. `docs/reasons.md` says of each what it means and what to do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Reason { $($(#[$doc])* #[serde(rename = $code)] $name,)* }

        impl Reason {
            /// Every reason there is, in the order of the source.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The code in kebab-case.
            pub fn code(self) -> &'static str {
                match self { $(Reason::$name => $code,)* }
            }

            /// The exit code of `migctl` when this reason decides the result.
            pub fn exit(self) -> Exit {
                match self { $(Reason::$name => Exit::$exit,)* }
            }
        }
    };
}

reasons! {
    // What was asked is wrong.
    /// The command line cannot be understood.
    UsageInvalid = "usage-invalid" => Invalid,
    /// A file cannot be read.
    FileUnreadable = "file-unreadable" => Invalid,
    /// A layout file of the search path that others than root could have written.
    FileUntrusted = "file-untrusted" => Invalid,
    /// The text is not YAML or JSON, or breaks its budget.
    LayoutSyntax = "layout-syntax" => Invalid,
    /// A key, value or combination that the layout language does not have.
    LayoutInvalid = "layout-invalid" => Invalid,
    /// The same layout name, key or document stands twice.
    LayoutDuplicate = "layout-duplicate" => Invalid,
    /// There is no layout of that name.
    LayoutUnknown = "layout-unknown" => Invalid,
    /// A device filter or match is malformed.
    FilterMalformed = "filter-malformed" => Invalid,
    /// A GPU index that this node does not have.
    IndexOutOfRange = "index-out-of-range" => Invalid,
    /// This node has no GPU of that index, UUID or address.
    GpuUnknown = "gpu-unknown" => Invalid,
    /// The GPU holds no such instance.
    InstanceUnknown = "instance-unknown" => Invalid,
    /// A profile name that cannot be read.
    ProfileMalformed = "profile-malformed" => Invalid,
    /// A GPU that the layout names does not have that profile.
    ProfileUnknown = "profile-unknown" => Invalid,
    /// None of the layout's entries matches a GPU of this node.
    NoGpuMatched = "no-gpu-matched" => Invalid,
    /// The layout is refused on a node with GPUs that it does not speak of, as it says itself.
    GpuUnlisted = "gpu-unlisted" => Invalid,
    /// The layout asks for sharing, which this version cannot set up.
    SharingUnavailable = "sharing-unavailable" => Invalid,
    /// This GPU can never hold what the layout asks of it.
    LayoutUnplaceable = "layout-unplaceable" => Invalid,
    /// The layout asks MIG of a GPU that has none.
    MigUnsupported = "mig-unsupported" => Invalid,
    /// A description of a simulated node is wrong, or its folder holds another node.
    NodeInvalid = "node-invalid" => Invalid,

    // What stands in the way.
    /// A process or client keeps an instance open.
    InstanceInUse = "instance-in-use" => Blocked,
    /// Other clients keep the GPU open, so that its mode cannot change.
    GpuInUse = "gpu-in-use" => Blocked,
    /// Only instances in use prevent an otherwise possible layout.
    PinnedUnplaceable = "pinned-unplaceable" => Blocked,

    // What the driver or the machine cannot do now.
    /// No NVIDIA driver library on this machine.
    DriverMissing = "driver-missing" => Unavailable,
    /// The kernel module is not loaded.
    DriverNotLoaded = "driver-not-loaded" => Unavailable,
    /// Library and kernel module are of different versions.
    DriverMismatch = "driver-mismatch" => Unavailable,
    /// The driver lacks a function that is needed for this.
    DriverTooOld = "driver-too-old" => Unavailable,
    /// The driver answered with an error that has no reason of its own.
    DriverError = "driver-error" => Unavailable,
    /// The GPU has fallen off the bus or needs a reset to answer.
    GpuLost = "gpu-lost" => Unavailable,
    /// The GPU's driver did not answer within its time; its worker was abandoned.
    WorkerHung = "worker-hung" => Unavailable,
    /// The GPU's worker ended while it was needed.
    WorkerLost = "worker-lost" => Unavailable,
    /// A helper program that is needed is not installed.
    ToolMissing = "tool-missing" => Unavailable,
    /// The caller may not do this.
    PermissionDenied = "permission-denied" => Denied,

    // How far it came.
    /// The mode is set and waits for a GPU reset.
    ResetRequired = "reset-required" => NeedsReset,
    /// The mode is set and waits for a reboot.
    RebootRequired = "reboot-required" => NeedsReset,
    /// The GPU's reset failed.
    ResetFailed = "reset-failed" => Failed,
    /// The node changed between planning and doing; nothing was written after that was seen.
    NodeChanged = "node-changed" => Failed,
    /// The driver's own profiles differ from the table that the plan had to use.
    ProvisionalWrong = "provisional-wrong" => Invalid,
    /// What was read back is not what was to be.
    VerifyFailed = "verify-failed" => Failed,
    /// A step failed; the GPU is as it was before.
    RolledBack = "rolled-back" => RolledBack,
    /// A step failed, and so did its undo.
    RollbackFailed = "rollback-failed" => NotRolledBack,
    /// The time ran out.
    TimedOut = "timed-out" => Cancelled,
    /// The caller gave it up.
    Cancelled = "cancelled" => Cancelled,
    /// A fault in migd itself.
    Internal = "internal" => Failed,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

/// The exit codes of `migctl`, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// Failed inside.
    Failed = 1,
    /// The plan has changes, or the node drifted.
    Differs = 2,
    /// Invalid input; usage errors too.
    Invalid = 3,
    /// Blocked by a holder, lease, owner or policy.
    Blocked = 4,
    /// Needs a reset or a reboot to finish.
    NeedsReset = 5,
    /// Failed, and rolled back.
    RolledBack = 6,
    /// Failed, and not (wholly) rolled back.
    NotRolledBack = 7,
    /// Driver or daemon unavailable.
    Unavailable = 8,
    /// Permission denied.
    Denied = 9,
    /// Cancelled or out of time.
    Cancelled = 10,
}

impl Exit {
    /// Which of several results a caller is told: those that refuse the whole request (3, 9) come first,
    /// then per-GPU results in the order 7, 6, 1, 8, 4, 5, 10, 2, 0.
    const RANK: [Exit; 11] = [
        Exit::Invalid,
        Exit::Denied,
        Exit::NotRolledBack,
        Exit::RolledBack,
        Exit::Failed,
        Exit::Unavailable,
        Exit::Blocked,
        Exit::NeedsReset,
        Exit::Cancelled,
        Exit::Differs,
        Exit::Done,
    ];

    /// The one exit code for results over several GPUs; [`Exit::Done`] for none.
    pub fn of_all(results: impl IntoIterator<Item = Exit>) -> Exit {
        let rank = |exit: &Exit| Exit::RANK.iter().position(|r| r == exit);
        results.into_iter().min_by_key(rank).unwrap_or(Exit::Done)
    }

    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_kebab_case_and_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for reason in Reason::ALL {
            let code = reason.code();
            assert!(code.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{code}");
            assert!(seen.insert(code), "{code} stands twice");
            assert_eq!(serde_json::to_value(reason).unwrap(), code);
        }
    }

    #[test]
    fn several_results_take_the_gravest() {
        use Exit::*;
        let order =
            [NotRolledBack, RolledBack, Failed, Unavailable, Blocked, NeedsReset, Cancelled, Differs, Done];
        for pair in order.windows(2) {
            assert_eq!(Exit::of_all([pair[1], pair[0]]), pair[0]);
        }
        assert_eq!(Exit::of_all([]), Done);
    }
}
