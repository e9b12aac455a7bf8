//! A GPU, an instance of it, or a compute instance of that, as commands name them: `GPU[/GI[/CI]]`.

use crate::{
    handling,
    shared::Shard,
    state::GpuState,
    trouble::{Trouble, join},
};

/// A place on a node, all of which exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// NVML index of the GPU.
    pub gpu: usize,
    /// GPU instance id.
    pub gi: Option<u32>,
    /// Compute instance id.
    pub ci: Option<u32>,
}

/// Finds the place that `GPU[/GI[/CI]]` names: the GPU by index, UUID or PCI address, the instances by id.
///
/// # Errors
/// [`Trouble::Input`] says which GPUs or instances there are.
pub fn find(shard: &Shard, text: &str) -> Result<Target, Trouble> {
    let mut parts = text.split('/');
    let gpu = handling::find(shard, parts.next().unwrap_or_default())?;
    let state = shard.read(gpu).ok_or_else(|| Trouble::Failed(format!("no GPU {gpu}")))?;
    let mut target = Target { gpu, gi: None, ci: None };
    if let Some(word) = parts.next() {
        target.gi = Some(id(text, word, "GPU instance", &gis(&state))?);
    }
    if let (Some(word), Some(gi)) = (parts.next(), target.gi) {
        let cis = state.gis.get(gi as usize).map(|gi| gi.live_cis().map(|(id, _)| id).collect::<Vec<_>>());
        target.ci = Some(id(text, word, "compute instance", &cis.unwrap_or_default())?);
    }
    match parts.next() {
        Some(more) => Err(Trouble::input(format!(
            "`{text}`: nothing comes after the compute instance, but there is `{more}` (GPU[/GI[/CI]])"
        ))),
        None => Ok(target),
    }
}

fn gis(state: &GpuState) -> Vec<u32> {
    state.live_gis().map(|(id, _)| id).collect()
}

fn id(text: &str, word: &str, what: &str, there: &[u32]) -> Result<u32, Trouble> {
    let found = word.parse().ok().filter(|id| there.contains(id));
    found.ok_or_else(|| {
        let have = match there {
            [] => "there are none".to_owned(),
            there => format!("there are {}", join(there, ", ")),
        };
        Trouble::input(format!("`{text}`: no {what} `{word}`; {have} (GPU[/GI[/CI]], instances by id)"))
    })
}
