//! What a person does to a node from outside of it: cut a GPU, reset it, reload the driver, reboot.
//!
//! These happen whoever uses the GPU: they are the power switch, not the request. The stand-in for nvidia-smi
//! asks first. Who forgets what is `machine`'s.

use crate::{
    events::{Event, NO_INSTANCE},
    geometry,
    machine::Board,
    model::Model,
    notation::Address,
    place::Target,
    shared::Shard,
    state::GpuState,
    trouble::{Trouble, join},
    watch,
};

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
