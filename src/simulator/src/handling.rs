//! What a person does to a node from outside of it: cut a GPU, reset it, reload the driver, reboot.
//!
//! These happen whoever uses the GPU: they are the power switch, not the request. The stand-in for nvidia-smi
//! asks first. Who forgets what is `machine`'s.

use crate::{
    client::Clients,
    enclosure,
    events::{Event, NO_INSTANCE},
    geometry,
    holders::{self, Hold, Kind},
    machine::Board,
    model::Model,
    notation::Address,
    place::Target,
    shared::Shard,
    state::GpuState,
    tree,
    trouble::{Trouble, join},
    watch,
};
use std::{fs::File, path::PathBuf};

/// The index of a GPU given by index, UUID or PCI address.
///
/// # Errors
/// [`Trouble::Input`] names the GPUs of the node.
pub fn find(shard: &Shard, text: &str) -> Result<usize, Trouble> {
    let models = shard.models();
    let found = match text.parse::<usize>() {
        Ok(index) => (index < models.len()).then_some(index),
        Err(_) => match text.to_ascii_lowercase().parse::<Address>() {
            Ok(address) => models.iter().position(|model| address_of(model) == address),
            Err(_) => models.iter().position(|model| model.uuid.as_str().eq_ignore_ascii_case(text)),
        },
    };
    found.ok_or_else(|| {
        let all = (0..models.len()).zip(models);
        let all =
            all.map(|(index, model)| format!("{index} = {} = {}", address_of(model), model.uuid.as_str()));
        Trouble::input(format!(
            "no GPU `{text}` on {}; it has {}",
            shard.info().notation.as_str(),
            join(all, ", ")
        ))
    })
}

/// Where a GPU sits.
pub fn address_of(model: &Model) -> Address {
    Address { domain: model.domain, bus: model.bus, device: model.device }
}

/// Replaces a GPU's mode and instances by what the notation says, whatever is in use there.
///
/// # Errors
/// [`Trouble::Input`] for what is not legal on that GPU; nothing is changed then.
pub fn set(shard: &Shard, gpu: usize, text: &str) -> Result<(), Trouble> {
    change(shard, gpu, |board, state| {
        *state = geometry::parse(board, text, state)?;
        Ok(())
    })
}

/// Tells an XID to all who wait for one, as if the hardware had raised it there.
///
/// # Errors
/// [`Trouble::Failed`] if another teller does not go on.
pub fn xid(shard: &Shard, place: Target, code: u32) -> Result<(), Trouble> {
    let event = Event {
        kind: watch::XID,
        data: code.into(),
        gpu: place.gpu as u32,
        gi: place.gi.unwrap_or(NO_INSTANCE),
        ci: place.ci.unwrap_or(NO_INSTANCE),
    };
    Ok(shard.events.post(&event)?)
}

/// Holds a place until it is dropped, as a program does that computes there: listed by NVML with this process's
/// id, a client of the GPU, and in the way of whoever would take the place away.
///
/// # Errors
/// [`Trouble::Input`] if the place has gone meanwhile or another must be named; [`Trouble::Failed`] if it cannot
/// be held.
pub fn hold(shard: &Shard, place: Target, kind: Kind, memory: u64) -> Result<Held, Trouble> {
    let look = || shard.read(place.gpu).ok_or_else(|| Trouble::Failed(format!("no GPU {}", place.gpu)));
    let state = look()?;
    if state.lost != 0 {
        return Err(Trouble::Failed(format!("{place} has fallen off the bus")));
    }
    let clients =
        Clients::open(&shard.folder).map_err(|e| Trouble::io("open the clients of", &shard.folder, &e))?;
    clients.enter(place.gpu).map_err(|e| Trouble::io("become a client in", &shard.folder, &e))?;
    let hold = shard.holders.hold(&shard.folder, place, &state, kind, memory);
    let hold = hold.map_err(|error| Trouble::Failed(error.to_string()))?;
    // In an enclosure the devices have the names that every program there sees.
    let root = match std::env::var_os(enclosure::UNMOUNTED_VARIABLE) {
        Some(_) => PathBuf::from("/"),
        None => tree::ensure(shard)?,
    };
    let model =
        shard.models().get(place.gpu).ok_or_else(|| Trouble::Failed(format!("no GPU {}", place.gpu)))?;
    let devices = holders::open_devices(&root, model, place)?;
    // Whoever destroyed it before it was held did not see a holder; whoever comes now does.
    let now = look()?;
    if shard
        .holders
        .of(place.gpu, &now)
        .any(|holder| holder.pid == std::process::id() && holder.place == place)
    {
        Ok(Held { hold, clients, devices })
    } else {
        Err(Trouble::input(format!("{place} has gone meanwhile")))
    }
}

/// Holds as long as it lives.
#[expect(dead_code, reason = "its parts hold as long as they live")]
pub struct Held {
    hold: Hold,
    clients: Clients,
    devices: Vec<File>,
}

/// Resets one GPU.
///
/// # Errors
/// [`Trouble::Failed`] if its state cannot be had.
pub fn reset(shard: &Shard, gpu: usize) -> Result<(), Trouble> {
    change(shard, gpu, |board, state| {
        board.reset_now(state);
        Ok(())
    })
}

/// Unloads and loads the driver.
///
/// # Errors
/// As [`reset`].
pub fn reload_driver(shard: &Shard) -> Result<(), Trouble> {
    all(shard, |board, state| board.reload_driver(state))
}

/// Reboots the node.
///
/// # Errors
/// As [`reset`].
pub fn reboot(shard: &Shard) -> Result<(), Trouble> {
    all(shard, |board, state| board.reboot(state))
}

fn all(shard: &Shard, with: impl Fn(&Board<'_>, &mut GpuState)) -> Result<(), Trouble> {
    (0..shard.models().len()).try_for_each(|gpu| {
        change(shard, gpu, |board, state| {
            with(board, state);
            Ok(())
        })
    })
}

fn change(
    shard: &Shard,
    gpu: usize,
    with: impl FnOnce(&Board<'_>, &mut GpuState) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let missing = || Trouble::Failed(format!("no GPU {gpu}"));
    let board = Board::new(shard.info(), shard.models().get(gpu).ok_or_else(missing)?);
    shard.update(gpu, |state| with(&board, state)).ok_or_else(missing)?
}

#[cfg(test)]
mod tests;
