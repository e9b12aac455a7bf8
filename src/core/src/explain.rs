//! What `explain` answers: where an instance of a profile can be created on a GPU now, and if nowhere, why and
//! what would help.

use crate::{
    diagnostic::Diagnostic,
    draw,
    geometry::{Clash, Explanation, Geometry, Placed, Seat, Way},
    id::{GpuUuid, PciAddress},
    node::{Driver, Gpu, GpuInstance, InUse},
    plan::{holder, pins},
    profile::{GiProfile, ProfileName},
};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The format word of [`Explained`].
pub const FORMAT: &str = "migd-explain/1";

/// The answer as `explain --json` gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// [`FORMAT`].
    pub format: String,
    /// NVML's index.
    pub index: u32,
    /// Which GPU.
    pub uuid: GpuUuid,
    /// The product's name.
    pub model: String,
    /// Where it sits.
    pub pci: PciAddress,
    /// Whether MIG is on. Where it is off, all else holds for the time after it was turned on.
    pub mig: bool,
    /// The profile asked for.
    pub profile: ProfileName,
    /// Its id.
    pub profile_id: u32,
    /// Whether one can be created now.
    pub creatable: bool,
    /// Where; empty if nowhere.
    pub starts: Vec<u32>,
    /// What the GPU has not enough of, wherever it begins.
    pub lack: Option<String>,
    /// Each of the profile's starts with the instances in its slices; empty if it can be created.
    pub blocked: Vec<BlockedStart>,
    /// The smallest ways to make room, best first, all of the same size.
    pub ways: Vec<Remedy>,
    /// All profiles of the GPU with the starts at which one can be created now.
    pub profiles: Vec<Room>,
}

/// A start at which an instance could begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedStart {
    /// The memory slice.
    pub start: u32,
    /// Who lies in its slices; nobody, if something else is short.
    pub by: Vec<Sitter>,
}

/// An instance that is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sitter {
    /// Its profile.
    pub profile: ProfileName,
    /// First memory slice.
    pub start: u32,
    /// Memory slices.
    pub size: u32,
    /// Whether anything keeps it open; null: cannot tell, which counts as in use.
    pub in_use: InUse,
    /// The same in words, with the processes.
    pub holder: Option<String>,
}

/// One way to make room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// Idle instances that would have to lie elsewhere.
    pub moves: Vec<Moved>,
    /// Instances that would have to go.
    pub removes: Vec<Sitter>,
    /// Where one can be created then.
    pub start: u32,
}

/// An instance at another place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Its profile.
    pub profile: ProfileName,
    /// Its first memory slice now.
    pub from: u32,
    /// And then.
    pub to: u32,
}

/// Where a profile can be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// The profile.
    pub profile: ProfileName,
    /// The starts; empty if nowhere.
    pub starts: Vec<u32>,
}

/// Explains `profile` on `gpu`.
///
/// # Errors
/// `driver-error` where the driver's list of profiles cannot be one.
pub fn explain(gpu: &Gpu, driver: &Driver, profile: &GiProfile) -> Result<Explained, Diagnostic> {
    let geometry = Geometry::of(gpu, driver)?;
    let seats: Vec<Seat> = gpu.instances.iter().map(seat).collect();
    let found = geometry.explain(profile.id, &seats).unwrap_or_default();
    let free = |id: u32| geometry.explain(id, &seats).map(|found| found.starts).unwrap_or_default();
    let room = |p: &GiProfile| Room { profile: p.name, starts: free(p.id) };
    let sitters = |placed: &[Placed]| placed.iter().map(|placed| sitter(gpu, placed)).collect();
    let remedy = |way: &Way| Remedy {
        moves: way
            .moves
            .iter()
            .map(|(placed, to)| Moved { profile: placed.profile, from: placed.placement.start, to: to.start })
            .collect(),
        removes: sitters(&way.removes),
        start: way.start,
    };
    let used: u32 = gpu.instances.iter().map(|instance| instance.profile.slices).sum();
    Ok(Explained {
        format: FORMAT.to_owned(),
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        model: gpu.model.clone(),
        pci: gpu.pci,
        mig: gpu.mig_enabled(),
        profile: profile.name,
        profile_id: profile.id,
        creatable: !found.starts.is_empty() && gpu.mig_enabled(),
        lack: lack(&found, profile, geometry.compute_slices(), used),
        blocked: found
            .blocked
            .iter()
            .map(|(start, by)| BlockedStart { start: *start, by: sitters(by) })
            .collect(),
        ways: found.ways.iter().map(remedy).collect(),
        profiles: gpu.profiles.iter().map(room).collect(),
        starts: found.starts,
    })
}

pub(crate) fn seat(instance: &GpuInstance) -> Seat {
    let placed = Placed {
        placement: instance.placement,
        profile_id: instance.profile_id,
        profile: instance.profile.whole(),
    };
    Seat { placed, movable: !pins(instance) }
}

fn sitter(gpu: &Gpu, placed: &Placed) -> Sitter {
    let instance = gpu.instances.iter().find(|instance| instance.placement == placed.placement);
    let held = instance.filter(|instance| pins(instance));
    Sitter {
        profile: placed.profile,
        start: placed.placement.start,
        size: placed.placement.size,
        in_use: match held {
            None => InUse::No,
            Some(instance) if instance.in_use == InUse::Yes => InUse::Yes,
            Some(instance) => {
                let yes = instance.compute.iter().any(|compute| compute.in_use == InUse::Yes);
                if yes { InUse::Yes } else { InUse::Unknown }
            }
        },
        holder: held.map(holder),
    }
}

fn lack(found: &Explanation, profile: &GiProfile, compute: u32, used: u32) -> Option<String> {
    found.lack.as_ref().map(|clash| match clash {
        Clash::Compute { .. } => format!(
            "it needs {} compute slice{}, and {} of {compute} are free",
            profile.slices,
            if profile.slices == 1 { "" } else { "s" },
            compute.saturating_sub(used)
        ),
        other => other.to_string(),
    })
}

/// What `explain` prints.
pub fn text(explained: &Explained, gpu: &Gpu) -> String {
    let mut text = draw::gpu(gpu);
    let profile = explained.profile;
    let list = |starts: &[u32]| starts.iter().map(|s| format!("@{s}")).collect::<Vec<_>>().join(", ");
    let when = if explained.mig { "now" } else { "once MIG is on" };
    if explained.starts.is_empty() {
        let _ = writeln!(text, "{profile} cannot be created {when}:");
        if let Some(lack) = &explained.lack {
            let _ = writeln!(text, "  {lack}");
        }
        for blocked in explained.blocked.iter().filter(|blocked| !blocked.by.is_empty()) {
            let by: Vec<String> = blocked.by.iter().map(Sitter::to_string).collect();
            let verb = if by.len() == 1 { "lies" } else { "lie" };
            let _ = writeln!(text, "  @{}: {} {verb} there", blocked.start, by.join(", "));
        }
        for (at, way) in explained.ways.iter().enumerate() {
            let _ = writeln!(text, "  {}{}", if at == 0 { "it can if " } else { "or if " }, words(way));
        }
        if explained.ways.is_empty() {
            let _ = writeln!(text, "  nothing on this GPU would change that");
        }
    } else {
        let _ = writeln!(text, "{profile} can be created {when} {}", list(&explained.starts));
    }
    let rooms = explained.profiles.iter().map(|room| {
        let starts = if room.starts.is_empty() { "nowhere".to_owned() } else { list(&room.starts) };
        [room.profile.to_string(), starts, String::new()]
    });
    let rooms: Vec<[String; 3]> = rooms.collect();
    let _ = writeln!(text, "creatable {when}:");
    text + &draw::table(&rooms)
}

/// `1g.10gb @5 goes to @2: then @4`.
fn words(way: &Remedy) -> String {
    let moves = way.moves.iter().map(|m| format!("{} @{} goes to @{}", m.profile, m.from, m.to));
    let removes = way.removes.iter().map(|sitter| match &sitter.holder {
        Some(_) => format!("{sitter} ends and goes"),
        None => format!("{sitter} goes"),
    });
    format!("{}: then @{}", moves.chain(removes).collect::<Vec<_>>().join(" and "), way.start)
}

impl std::fmt::Display for Sitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} @{}:{}", self.profile, self.start, self.size)?;
        match &self.holder {
            Some(holder) => write!(f, " ({holder})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
