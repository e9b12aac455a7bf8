//! One picture: a bar as wide as every other of the node, its instances to scale.

use crate::{
    node::{Gpu, Node},
    profile::{Placement, ProfileName},
};

/// The width that pictures have at least; five characters for each of eight slices.
const LEAST: usize = 40;
/// And at most, however odd the mix of GPUs.
const MOST: usize = 120;

/// An instance in a picture.
pub(super) struct Block {
    pub(super) placement: Placement,
    pub(super) profile: ProfileName,
    /// Its compute instances, largest first.
    pub(super) split: Vec<u32>,
    pub(super) busy: bool,
}

/// How wide the pictures of a node are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale(usize);

impl Scale {
    /// The least width in which the slices of every GPU are whole characters: 40 where GPUs have 4 or 8
    /// slices, 48 where some have 12.
    pub(super) fn of(node: &Node) -> Scale {
        Scale::of_all(&node.gpus)
    }

    /// How wide the picture of one GPU is.
    pub(super) fn of_one(gpu: &Gpu) -> Scale {
        Scale::of_all(std::slice::from_ref(gpu))
    }

    fn of_all(gpus: &[Gpu]) -> Scale {
        let every: Vec<usize> = gpus.iter().map(slices).filter(|slices| *slices > 0).collect();
        let fits = |width: &usize| every.iter().all(|slices| width.is_multiple_of(*slices));
        Scale((LEAST..=MOST).find(fits).unwrap_or(LEAST))
    }

    /// A GPU whose MIG mode is off.
    pub(super) fn off(self) -> String {
        let inner = self.0.saturating_sub(2);
        format!("[{:^inner$}]", "off")
    }

    /// A GPU with these instances.
    pub(super) fn draw(self, gpu: &Gpu, mut blocks: Vec<Block>) -> String {
        let slices = slices(gpu).max(1);
        let cell = (self.0 / slices).max(3);
        blocks.sort_by_key(|block| block.placement);
        let mut bar = String::new();
        let mut at = 0;
        for block in &blocks {
            let start = block.placement.start as usize;
            bar.extend((at..start).map(|_| format!("{:^cell$}", ".")));
            let inner = (block.placement.size as usize * cell).saturating_sub(2);
            bar.push_str(&format!("[{:inner$}]", label(block, inner)));
            at = block.placement.end() as usize;
        }
        bar.extend((at..slices).map(|_| format!("{:^cell$}", ".")));
        bar.trim_end().to_owned()
    }
}

/// Memory slices of a GPU; 0 where they are not known.
fn slices(gpu: &Gpu) -> usize {
    let own = gpu.profiles.iter().flat_map(|profile| &profile.placements);
    let used = gpu.instances.iter().map(|instance| &instance.placement);
    own.chain(used).map(|placement| placement.end() as usize).max().unwrap_or(0)
}

/// The longest of these that fits: `3g+me* 2c+1c`, `3g+me*`, `3g*`.
fn label(block: &Block, inner: usize) -> String {
    let star = if block.busy { "*" } else { "" };
    let short = format!("{}g", block.profile.slices);
    let named = format!("{short}{}{star}", block.profile.attribute.suffix());
    let split: Vec<String> = block.split.iter().map(|size| format!("{size}c")).collect();
    let split = match block.split.as_slice() {
        [whole] if *whole == block.profile.slices => String::new(),
        [] => " -".to_owned(),
        _ => format!(" {}", split.join("+")),
    };
    let labels = [format!("{named}{split}"), named, format!("{short}{star}")];
    labels.into_iter().find(|label| label.len() <= inner).unwrap_or_else(|| star.to_owned())
}
