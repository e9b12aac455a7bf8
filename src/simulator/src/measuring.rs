//! What a person does to a node's measurements: gives its GPUs a load, sets what a sensor shows, looks at it.

use crate::{
    machine::Board,
    place::Target,
    reading::{Reading, Scope},
    readings::Values,
    sampler::Sampler,
    shared::Shard,
    state::GpuState,
    trouble::{Trouble, join},
};

/// Puts a load on a GPU, or on a GPU instance of one in MIG mode. It lasts until it is set anew, the instance
/// is gone, or the driver is loaded anew.
///
/// # Errors
/// [`Trouble::Input`] for what is no load, and for a place that has none of its own.
pub fn load(shard: &Shard, place: Target, text: &str) -> Result<(), Trouble> {
    let load = text.parse::<f64>().ok().filter(|load| (0.0..=1.0).contains(load));
    let load = load.ok_or_else(|| Trouble::input(format!("load `{text}`; legal is 0 (idle) to 1 (full)")))?;
    let (board, state) = look(shard, place.gpu)?;
    require_no_ci(place)?;
    let weight = match place.gi {
        None if board.mig_on(&state) => {
            let gis: Vec<u32> = state.live_gis().map(|(id, _)| id).collect();
            let have = match gis.as_slice() {
                [] => "it has none yet".to_owned(),
                gis => format!("it has {}", join(gis, ", ")),
            };
            let gpu = place.gpu;
            return Err(Trouble::input(format!(
                "GPU {gpu} is in MIG mode: its load is that of its GPU instances; {have} ({gpu}/GI)"
            )));
        }
        None => 1.0,
        Some(gi) => {
            let gi =
                state.gis.get(gi as usize).and_then(|gi| board.model.profiles().get(gi.profile as usize));
            let slices = gi.map_or(0, |profile| profile.slices);
            f64::from(slices) / f64::from(board.model.compute_slices.max(1))
        }
    };
    change(shard, place, |values, index| values.put_load(index, load, weight))
}

/// Sets what sensors show from now on, or gives them back to the simulation (`auto`): names and values by turns,
/// all at one instant.
///
/// # Errors
/// [`Trouble::Input`] names the readings, or says what values are legal; nothing is set then.
pub fn set(shard: &Shard, place: Target, words: &[String]) -> Result<(), Trouble> {
    require_no_ci(place)?;
    let mut wanted = Vec::new();
    for pair in words.chunks(2) {
        let [name, text] = pair else {
            let why = format!("`{}` has no value (READING VALUE, as often as wanted)", join(pair, " "));
            return Err(Trouble::input(why));
        };
        let reading = Reading::find(name)?;
        if place.gi.is_some() && reading.scope() != Scope::Instance {
            let own = Reading::ALL.iter().filter(|one| one.scope() == Scope::Instance);
            return Err(Trouble::input(format!(
                "`{name}` is measured of whole GPUs only; a GPU instance has {}",
                join(own.map(|one| one.name()), ", ")
            )));
        }
        wanted.push((reading, reading.parse(text)?));
    }
    change(shard, place, |values, index| {
        wanted.iter().for_each(|(reading, value)| values.put_value(index, *reading, *value));
    })
}

/// Every reading of a place as a table: what it shows, and whether a person has set it.
///
/// # Errors
/// [`Trouble::Failed`] if the readings cannot be had.
pub fn table(shard: &Shard, place: Target) -> Result<String, Trouble> {
    require_no_ci(place)?;
    let (board, state) = look(shard, place.gpu)?;
    let (values, now) = shard.readings.read(place.gpu).ok_or_else(|| missing(place.gpu))?;
    let sampler = Sampler::new(board.model, values, now).with(shard.holders.of(place.gpu, &state));
    let index = index(place);
    let mut out = format!("load {}\n", sampler.load(index));
    for reading in Reading::ALL {
        if place.gi.is_some() && reading.scope() != Scope::Instance {
            continue;
        }
        let shown = match place.gi {
            None if *reading == Reading::MemoryUsed => Some(sampler.memory_used(&state)),
            None => sampler.gpu(*reading),
            Some(gi) => {
                let profile = state.gis.get(gi as usize).map_or(0, |gi| gi.profile);
                let memory = board.model.profiles().get(profile as usize).map_or(0, |one| one.memory_mib);
                sampler.instance(gi, memory, *reading)
            }
        };
        let shown = shown.map_or_else(|| "-".to_owned(), |value| number(value, *reading));
        let by = if sampler.set(index, *reading).is_some() { "set" } else { "auto" };
        out.push_str(&format!(
            "{:<26} {shown:>20} {:<6} {by:<4} {}\n",
            reading.name(),
            reading.unit(),
            reading.text()
        ));
    }
    Ok(out)
}

/// As NVML shows it: whole, but for the per cents of GPM.
fn number(value: f64, reading: Reading) -> String {
    let whole = reading.unit() != "%" || reading.scope() == Scope::Gpu;
    if whole { value.trunc().to_string() } else { ((value * 1000.0).round() / 1000.0).to_string() }
}

fn look(shard: &Shard, gpu: usize) -> Result<(Board<'_>, GpuState), Trouble> {
    let model = shard.models().get(gpu).ok_or_else(|| missing(gpu))?;
    let state = shard.read(gpu).ok_or_else(|| missing(gpu))?;
    Ok((Board::new(shard.info(), model), state))
}

fn change(shard: &Shard, place: Target, with: impl FnOnce(&mut Values, usize)) -> Result<(), Trouble> {
    let model = shard.models().get(place.gpu).ok_or_else(|| missing(place.gpu))?;
    Ok(shard.readings.change(place.gpu, model, |values| with(values, index(place)))?)
}

/// Where the readings of a place lie.
fn index(place: Target) -> usize {
    place.gi.map_or(0, |gi| 1 + gi as usize)
}

fn require_no_ci(place: Target) -> Result<(), Trouble> {
    match place.ci {
        None => Ok(()),
        Some(ci) => {
            let why = format!("compute instance {ci} is measured with its GPU instance (GPU[/GI])");
            Err(Trouble::input(why))
        }
    }
}

fn missing(gpu: usize) -> Trouble {
    Trouble::Failed(format!("no GPU {gpu}"))
}
