//! Boards for this package's own tests, with the figures that the rules depend on.

use crate::{
    machine::Board,
    model::{ComputeProfile, Engines, Model, Place, Text},
    shared::{Info, Shard},
    state::GpuState,
};
use std::path::Path;

/// A node's description with a driver.
pub(crate) fn info(driver: &str) -> Info {
    // SAFETY: `Info` is plain data, legal when all bytes are zero.
    let mut info: Info = unsafe { std::mem::zeroed() };
    info.driver = Text::new(driver);
    info.nvml = Text::new(&format!("13.{driver}"));
    info.cuda = 13000;
    info
}

/// A GPU's state after boot.
pub(crate) fn fresh() -> GpuState {
    // SAFETY: `GpuState` is plain integers.
    unsafe { std::mem::zeroed() }
}

/// A GPU without MIG.
pub(crate) fn geforce() -> Model {
    // SAFETY: `Model` is plain data, legal when all bytes are zero.
    let mut model: Model = unsafe { std::mem::zeroed() };
    model.name = Text::new("NVIDIA GeForce RTX 3060");
    model.uuid = Text::new("GPU-00000000-0000-0000-0000-000000000003");
    model.bus = 3;
    model.memory_mib = 12288;
    model.architecture = 7;
    model
}

struct Row {
    slot: u32,
    id: u32,
    slices: u32,
    most: u32,
    size: u32,
    starts: &'static [u32],
    engines: [u32; 5],
    name: &'static str,
}

macro_rules! row {
    ($slot:literal, $id:literal, $slices:literal, $most:literal, $size:literal, $starts:expr, $engines:expr,
     $name:literal) => {
        Row {
            slot: $slot,
            id: $id,
            slices: $slices,
            most: $most,
            size: $size,
            starts: $starts,
            engines: $engines,
            name: $name,
        }
    };
}

const A100: &[Row] = &[
    row!(0, 19, 1, 7, 1, &[0, 1, 2, 3, 4, 5, 6], [1, 0, 0, 0, 0], "1g.5gb"),
    row!(7, 20, 1, 1, 1, &[0, 1, 2, 3, 4, 5, 6], [1, 1, 0, 1, 1], "1g.5gb+me"),
    row!(9, 15, 1, 4, 2, &[0, 2, 4, 6], [1, 1, 0, 0, 0], "1g.10gb"),
    row!(1, 14, 2, 3, 2, &[0, 2, 4], [2, 1, 0, 0, 0], "2g.10gb"),
    row!(2, 9, 3, 2, 4, &[0, 4], [3, 2, 0, 0, 0], "3g.20gb"),
    row!(3, 5, 4, 1, 4, &[0], [4, 2, 0, 0, 0], "4g.20gb"),
    row!(4, 0, 7, 1, 8, &[0], [7, 5, 0, 1, 1], "7g.40gb"),
];

const PRO_6000: &[Row] = &[
    row!(0, 14, 1, 4, 3, &[0, 3, 6, 9], [1, 1, 1, 1, 0], "1g.24gb"),
    row!(7, 21, 1, 1, 3, &[0, 3, 6, 9], [1, 1, 1, 1, 1], "1g.24gb+me"),
    row!(10, 47, 1, 4, 3, &[0, 3, 6, 9], [1, 1, 1, 1, 0], "1g.24gb+gfx"),
    row!(15, 65, 1, 1, 3, &[0, 3, 6, 9], [1, 4, 4, 4, 1], "1g.24gb+me.all"),
    row!(13, 67, 1, 4, 3, &[0, 3, 6, 9], [1, 0, 0, 0, 0], "1g.24gb-me"),
    row!(1, 5, 2, 2, 6, &[0, 6], [2, 2, 2, 2, 0], "2g.48gb"),
    row!(11, 35, 2, 2, 6, &[0, 6], [2, 2, 2, 2, 0], "2g.48gb+gfx"),
    row!(3, 0, 4, 1, 12, &[0], [4, 4, 4, 4, 1], "4g.96gb"),
];

/// The GPU instance id of a place: boards number their memory in one of two ways.
fn gi_id(variant: char, size: u32, start: u32) -> u32 {
    let ids: &[(u32, u32, u32)] = match variant {
        'A' => &[
            (8, 0, 0),
            (4, 0, 1),
            (4, 4, 2),
            (2, 0, 3),
            (2, 2, 4),
            (2, 4, 5),
            (2, 6, 6),
            (1, 0, 7),
            (1, 1, 8),
            (1, 2, 9),
            (1, 3, 10),
            (1, 4, 11),
            (1, 5, 12),
            (1, 6, 13),
        ],
        'B' => &[
            (8, 0, 0),
            (4, 4, 1),
            (4, 0, 2),
            (2, 4, 3),
            (2, 6, 4),
            (2, 0, 5),
            (2, 2, 6),
            (1, 4, 7),
            (1, 5, 8),
            (1, 6, 9),
            (1, 0, 11),
            (1, 1, 12),
            (1, 2, 13),
            (1, 3, 14),
        ],
        _ => &[(12, 0, 0), (6, 0, 1), (6, 6, 2), (3, 0, 3), (3, 3, 4), (3, 6, 5), (3, 9, 6)],
    };
    ids.iter().find(|(s, at, _)| (*s, *at) == (size, start)).map(|found| found.2).unwrap()
}

fn compute(profile: &Row) -> Vec<ComputeProfile> {
    let places = |slices: u32| -> Vec<u32> {
        let step = if slices == 3 { 4 } else { slices };
        (0..).map(|n| n * step).take_while(|start| start + slices <= profile.slices).collect()
    };
    let kinds: &[(u32, u32)] = &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 7)];
    let fitting = kinds.iter().filter(|(_, slices)| {
        // A 4g instance has no compute profile of 3 slices.
        *slices <= profile.slices && !(*slices == 3 && profile.slices == 4)
    });
    fitting
        .map(|(slot, slices)| {
            // SAFETY: plain data, legal when all bytes are zero.
            let mut one: ComputeProfile = unsafe { std::mem::zeroed() };
            let starts = places(*slices);
            (one.slot, one.id, one.slices) = (*slot, *slot, *slices);
            one.max_instances = starts.len() as u32;
            one.multiprocessors = 14 * slices;
            one.place_count = starts.len() as u32;
            for (to, start) in one.places.iter_mut().zip(starts) {
                *to = Place { start, size: *slices, gi_id: 0 };
            }
            let whole = *slices == profile.slices;
            let name = if whole { profile.name.to_owned() } else { format!("{slices}c.{}", profile.name) };
            one.name = Text::new(&name);
            one
        })
        .collect()
}

fn model(name: &str, rows: &[Row], variant: char) -> Model {
    let mut model = geforce();
    model.name = Text::new(name);
    model.uuid = Text::new("GPU-11111111-2222-3333-4444-555555555555");
    model.serial = Text::new("1320000000001");
    model.bus = 7;
    model.minor = 5;
    model.board_seed = 0xfeed;
    model.pci_device_id = 0x20b0_10de;
    model.compute_slices = if variant == '-' { 4 } else { 7 };
    model.profile_count = rows.len() as u32;
    for (to, row) in model.profiles.iter_mut().zip(rows) {
        (to.slot, to.id, to.slices, to.max_instances) = (row.slot, row.id, row.slices, row.most);
        let [copy, decoder, encoder, jpeg, ofa] = row.engines;
        to.engines = Engines { copy, decoder, encoder, jpeg, ofa };
        to.multiprocessors = 14 * row.slices;
        to.memory_mib = 4864 * u64::from(row.size);
        to.name = Text::new(row.name);
        to.place_count = row.starts.len() as u32;
        for (place, start) in to.places.iter_mut().zip(row.starts) {
            *place = Place { start: *start, size: row.size, gi_id: gi_id(variant, row.size, *start) };
        }
        let compute = compute(row);
        to.compute_count = compute.len() as u32;
        to.compute.iter_mut().zip(compute).for_each(|(to, one)| *to = one);
    }
    model
}

/// An A100 of board variant A or B.
pub(crate) fn a100(variant: char) -> Model {
    let mut model = model("NVIDIA A100-SXM4-40GB", A100, variant);
    model.family = 1;
    model.memory_mib = 40960;
    model
}

/// The same geometry on a chip whose mode needs no reset.
pub(crate) fn h100() -> Model {
    let mut model = model("NVIDIA H100 80GB HBM3", A100, 'A');
    model.family = 2;
    model.architecture = 9;
    model.memory_mib = 81920;
    model
}

/// An RTX PRO 6000, without its rarer profiles.
pub(crate) fn pro_6000() -> Model {
    let mut model = model("NVIDIA RTX PRO 6000 Blackwell Server Edition", PRO_6000, '-');
    model.family = 2;
    model.memory_mib = 97887;
    model
}

/// A board with a current driver.
pub(crate) fn board(model: &Model) -> Board<'_> {
    board_with(model, "580.95.05")
}

/// A board with this driver.
pub(crate) fn board_with<'a>(model: &'a Model, driver: &str) -> Board<'a> {
    Board::new(&info(driver), model)
}

/// A GPU with MIG on and nothing on it.
pub(crate) fn mig_on() -> GpuState {
    GpuState { mig_current: 1, mig_pending: 1, ..fresh() }
}

/// Makes a node of these GPUs.
pub(crate) fn node(folder: &Path, info: &Info, gpus: &[(Model, GpuState)]) {
    Shard::create(folder, info, gpus).unwrap();
}
