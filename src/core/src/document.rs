//! The documents that programs read: status, layouts, errors. A plan is its own document.

use crate::{
    check::Checked,
    diagnostic::Diagnostic,
    id::{GpuUuid, PciAddress},
    layout::{Layout, Library},
    node::{Driver, Gpu, InUse, MigMode, Node, UnavailableGpu},
    profile::ProfileName,
    reason::Reason,
};
use serde::{Deserialize, Serialize};

/// The format word of [`Status`].
pub const STATUS: &str = "migd-status/1";
/// The format word of [`Layouts`].
pub const LAYOUTS: &str = "migd-layouts/1";
/// The format word of [`LayoutText`].
pub const LAYOUT_TEXT: &str = "migd-layout-text/1";
/// The format word of [`Failure`].
pub const ERROR: &str = "migd-error/1";

/// A node as `status --json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// [`STATUS`].
    pub format: String,
    /// The driver.
    pub driver: Driver,
    /// The GPUs that answered, by NVML index.
    pub gpus: Vec<StatusGpu>,
    /// The GPUs that did not.
    pub unavailable: Vec<UnavailableGpu>,
}

/// One GPU of [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusGpu {
    /// NVML's index.
    pub index: u32,
    /// Which GPU.
    pub uuid: GpuUuid,
    /// The product's name.
    pub model: String,
    /// Where it sits.
    pub pci: PciAddress,
    /// N in /dev/nvidiaN.
    pub minor: Option<u32>,
    /// All its memory in MiB.
    pub memory_mib: u64,
    /// MIG mode; null where the GPU has no MIG.
    pub mig: Option<StatusMode>,
    /// The profiles that the GPU can be cut into, by name.
    pub profiles: Vec<ProfileName>,
    /// Its GPU instances, by start.
    pub instances: Vec<StatusInstance>,
}

/// MIG mode in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusMode {
    /// `enabled` or `disabled`.
    pub current: String,
    /// The same, after the next reset.
    pub pending: String,
}

/// A GPU instance of [`StatusGpu`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusInstance {
    /// The profile's name.
    pub profile: ProfileName,
    /// Its id.
    pub profile_id: u32,
    /// The GPU instance's id.
    pub gi: u32,
    /// First memory slice.
    pub start: u32,
    /// Memory slices.
    pub size: u32,
    /// Whether anything keeps it open; null: cannot tell, which counts as in use.
    pub in_use: InUse,
    /// Processes in it.
    pub processes: Vec<u32>,
    /// Its compute instances, by id.
    pub compute: Vec<StatusCompute>,
}

/// A compute instance of [`StatusInstance`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCompute {
    /// The MIG device's profile name.
    pub profile: ProfileName,
    /// The compute instance's id.
    pub ci: u32,
    /// Compute slices.
    pub slices: u32,
    /// The MIG device's UUID.
    pub uuid: Option<String>,
    /// As for the GPU instance.
    pub in_use: InUse,
}

impl From<MigMode> for StatusMode {
    fn from(mode: MigMode) -> StatusMode {
        let word = |on| if on { "enabled" } else { "disabled" }.to_owned();
        StatusMode { current: word(mode.current), pending: word(mode.pending) }
    }
}

impl From<&Gpu> for StatusGpu {
    fn from(gpu: &Gpu) -> StatusGpu {
        let instances = gpu.instances.iter().map(|instance| StatusInstance {
            profile: instance.profile,
            profile_id: instance.profile_id,
            gi: instance.id,
            start: instance.placement.start,
            size: instance.placement.size,
            in_use: instance.in_use,
            processes: instance.processes.clone(),
            compute: instance
                .compute
                .iter()
                .map(|compute| StatusCompute {
                    profile: compute.profile,
                    ci: compute.id,
                    slices: compute.slices,
                    uuid: compute.uuid.clone(),
                    in_use: compute.in_use,
                })
                .collect(),
        });
        StatusGpu {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            model: gpu.model.clone(),
            pci: gpu.pci,
            minor: gpu.minor,
            memory_mib: gpu.memory_mib,
            mig: gpu.mig.map(StatusMode::from),
            profiles: gpu.profiles.iter().map(|p| p.name).collect(),
            instances: instances.collect(),
        }
    }
}

impl Status {
    /// The document of this node.
    pub fn of(node: &Node) -> Status {
        Status {
            format: STATUS.to_owned(),
            driver: node.driver.clone(),
            gpus: node.gpus.iter().map(StatusGpu::from).collect(),
            unavailable: node.unavailable.clone(),
        }
    }
}

/// The layouts of a file as `layouts --json` shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layouts {
    /// [`LAYOUTS`].
    pub format: String,
    /// The layouts, in the order of the files.
    pub layouts: Vec<ListedLayout>,
    /// What is wrong with files of the search path; their layouts are missing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Diagnostic>,
}

/// One layout of [`Layouts`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedLayout {
    /// Its name.
    pub name: String,
    /// The file that it stands in.
    pub file: String,
    /// The line of its name.
    pub line: u64,
    /// The number of its rules.
    pub rules: usize,
    /// What its writer says of it.
    pub description: Option<String>,
    /// Whether this node can have it; null where no driver answers.
    pub fits: Option<bool>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Diagnostic>,
}

impl Layouts {
    /// The document of these files, with what was found out about this node, if it was asked.
    pub fn of(library: &Library, checked: Option<&Checked>) -> Layouts {
        let listed = |layout: &Layout| {
            let found = checked.and_then(|c| {
                c.layouts.iter().find(|l| l.name == layout.name && l.file == layout.place.file)
            });
            let fits = found.and_then(|found| found.fits);
            let details = found.filter(|_| fits == Some(false)).map(|found| found.details.clone());
            ListedLayout {
                name: layout.name.clone(),
                file: layout.place.file.clone(),
                line: layout.place.line,
                rules: layout.rules.len(),
                description: layout.description.clone(),
                fits,
                details: details.unwrap_or_default(),
            }
        };
        let layouts = library.layouts().map(listed).collect();
        Layouts { format: LAYOUTS.to_owned(), layouts, faults: library.faults() }
    }
}

/// Layouts as text, as `show`, `generate` and `export layout` with `--json` give them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutText {
    /// [`LAYOUT_TEXT`].
    pub format: String,
    /// `native` or `v1`.
    pub form: String,
    /// A layout file.
    pub text: String,
}

/// An error as every command with `--json` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// [`ERROR`].
    pub format: String,
    /// The reason that decides the exit code.
    pub reason: Reason,
    /// The same for a person.
    pub message: String,
    /// Every fault found.
    pub details: Vec<Diagnostic>,
}

impl Failure {
    /// The document of these faults: the reason is that of the first error among the gravest.
    pub fn of(details: Vec<Diagnostic>) -> Failure {
        let errors = || details.iter().filter(|d| d.severity == crate::diagnostic::Severity::Error);
        let exit = crate::reason::Exit::of_all(errors().map(|d| d.reason.exit()));
        let first = errors().find(|d| d.reason.exit() == exit);
        let (reason, message) = first
            .map(|d| (d.reason, d.message.clone()))
            .unwrap_or((Reason::Internal, "failed without a reason".to_owned()));
        Failure { format: ERROR.to_owned(), reason, message, details }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{gpu, holding, lost, node, off, plain_gpu};
    use serde_json::json;

    #[test]
    fn status_has_the_shape_that_programs_rely_on() {
        let mut busy = holding(gpu("a100-40gb", 0), "3g@4 1g@0*");
        busy.instances[1].in_use = InUse::Unknown;
        let mut node = node(vec![busy, off(gpu("a30-24gb", 1)), plain_gpu(2)]);
        node.unavailable.push(lost(3));
        let status = serde_json::to_value(Status::of(&node)).unwrap();
        assert_eq!(status["format"], "migd-status/1");
        let first = &status["gpus"][0];
        assert_eq!(first["mig"], json!({"current": "enabled", "pending": "enabled"}));
        assert_eq!(first["pci"], "0000:07:00.0");
        let three = &first["instances"][1];
        for (key, value) in [
            ("profile", json!("3g.20gb")),
            ("profile_id", json!(9)),
            ("gi", json!(2)),
            ("start", json!(4)),
            ("size", json!(4)),
            ("in_use", json!(null)),
        ] {
            assert_eq!(three[key], value, "{key}");
        }
        let compute = &three["compute"][0];
        assert_eq!(compute["profile"], "3g.20gb");
        assert_eq!((&compute["ci"], &compute["in_use"]), (&json!(0), &json!(false)));
        assert!(compute["uuid"].as_str().unwrap().starts_with("MIG-"));
        assert_eq!(first["instances"][0]["in_use"], true);
        assert_eq!(status["gpus"][1]["mig"]["current"], "disabled");
        assert_eq!(status["gpus"][2]["mig"], json!(null));
        assert_eq!(status["unavailable"][0]["reason"], "gpu-lost");
        assert_eq!(serde_json::from_value::<Status>(status).unwrap(), Status::of(&node));
    }

    #[test]
    fn a_failure_takes_the_gravest_error_and_no_note() {
        let details = vec![
            Diagnostic::note(Reason::LayoutInvalid, "a note"),
            Diagnostic::error(Reason::InstanceInUse, "busy"),
            Diagnostic::error(Reason::ProfileUnknown, "unknown"),
        ];
        let failure = Failure::of(details);
        assert_eq!((failure.reason, failure.message.as_str()), (Reason::ProfileUnknown, "unknown"));
        let value = serde_json::to_value(&failure).unwrap();
        assert_eq!((&value["format"], &value["reason"]), (&json!("migd-error/1"), &json!("profile-unknown")));
        assert_eq!(value["details"].as_array().unwrap().len(), 3);
        assert_eq!(Failure::of(vec![]).reason, Reason::Internal);
    }

    #[test]
    fn layouts_are_listed_with_their_file_and_line() {
        let text = "version: v1\nmig-configs:\n  b:\n  - {devices: all, mig-enabled: false}\n  a:\n  \
                    - {devices: all, mig-enabled: false}\n";
        let library = Library::given(text, "t.yaml");
        let value = serde_json::to_value(Layouts::of(&library, None)).unwrap();
        let first = json!({
            "name": "b", "file": "t.yaml", "line": 3, "rules": 1, "description": null, "fits": null
        });
        assert_eq!(value["layouts"][0], first);
        assert_eq!(value["layouts"][1]["name"], "a");
        assert_eq!(value["faults"], json!(null));
        let node = crate::imagined::node("t4-16gb").unwrap();
        let checked = crate::check::check(&library, Some(("t4-16gb", &node)));
        let value = serde_json::to_value(Layouts::of(&library, Some(&checked))).unwrap();
        assert_eq!(value["layouts"][0]["fits"], false);
        assert_eq!(value["layouts"][0]["details"][0]["reason"], "no-gpu-matched");
    }
}
