//! `-r`, as nvidia-smi does it: only what no one uses, and all of what is asked for or none.

use super::{
    Answer, FAILED, LOST, NO_PERMISSION, NOT_SUPPORTED, Refused, long_address, meet_faults, name_of,
};
use nvidia_ml::{
    client::Clients,
    fault::RESET,
    folder::effective_uid,
    machine::{Board, Code},
    model::Model,
    shared::Shard,
    topology,
};

/// `-r`: all that are chosen, or none if one of them is in use.
pub(super) fn reset(shard: &Shard, chosen: &[usize]) -> Answer {
    if shard.info().privileges_real != 0 && effective_uid() != 0 {
        return Answer(
            "Unable to reset this GPU because of insufficient permissions; root may.\n".to_owned(),
            NO_PERMISSION,
        );
    }
    for gpu in chosen {
        let group = topology::reset_group(shard.info(), shard.models(), *gpu);
        let missing: Vec<&Model> = group
            .iter()
            .filter(|one| !chosen.contains(one))
            .filter_map(|one| shard.models().get(*one))
            .collect();
        if let (Some(model), false) = (shard.models().get(*gpu), missing.is_empty()) {
            return Answer(not_alone(model, &missing), FAILED);
        }
    }
    let Ok(clients) = Clients::open(&shard.folder) else {
        return Answer(format!("cannot open the clients of {}\n", shard.folder.display()), FAILED);
    };
    // A client file that does not answer counts as in use.
    let others = |gpu: usize| clients.others(gpu).unwrap_or(true);
    let busy: Vec<&Model> = chosen
        .iter()
        .filter_map(|gpu| {
            let (model, state) = (shard.models().get(*gpu)?, shard.seen(*gpu)?);
            let board = Board::new(shard.info(), model);
            (state.lost == 0 && (others(*gpu) || board.busy(&state))).then_some(model)
        })
        .collect();
    if !busy.is_empty() {
        return Answer(in_use(&busy), FAILED);
    }
    let mut out = String::new();
    for gpu in chosen {
        let Some(model) = shard.models().get(*gpu) else { continue };
        let board = Board::new(shard.info(), model);
        let done = meet_faults(shard, *gpu, RESET).and_then(|()| {
            match shard.update(*gpu, |state| board.reset(state, others(*gpu)).map_err(Refused)) {
                Some(done) => done,
                None => Err(Refused(Code::INVALID_ARGUMENT)),
            }
        });
        let address = long_address(model);
        let (text, exit) = match done {
            Ok(()) => {
                out.push_str(&format!("GPU {address} was successfully reset.\n"));
                continue;
            }
            Err(Refused(Code::IN_USE)) => (in_use(&[model]), FAILED),
            Err(Refused(Code::NOT_SUPPORTED)) => {
                (format!("Resetting GPU {address} is not supported.\n"), NOT_SUPPORTED)
            }
            Err(Refused(Code::GPU_IS_LOST)) => {
                (format!("GPU {address}: Unable to reset GPU: GPU is lost\n"), LOST)
            }
            Err(Refused(code)) => {
                (format!("GPU {address}: Unable to reset GPU: {}\n", name_of(code)), FAILED)
            }
        };
        return Answer(out + &text, exit);
    }
    Answer(out + "All done.\n", 0)
}

/// Ampere behind NVSwitches that no Fabric Manager looks after.
fn not_alone(model: &Model, missing: &[&Model]) -> String {
    let missing: Vec<String> = missing.iter().map(|model| long_address(model)).collect();
    format!(
        "GPU {}: Unable to reset GPU: it is connected by NVLink to GPUs that are not being reset, and Fabric Manager \
         is not running. Reset all of them in one command, also {}, or start Fabric Manager first.\n",
        long_address(model),
        missing.join(", ")
    )
}

fn in_use(busy: &[&Model]) -> String {
    let mut out = String::new();
    for model in busy {
        out.push_str(&format!("GPU {} is currently in use by another process.\n", long_address(model)));
    }
    let (count, is, these) = match busy.len() {
        1 => ("1 device".to_owned(), "is", "this device"),
        several => (format!("{several} devices"), "are", "these devices"),
    };
    out + &format!(
        "\n{count} {is} currently being used by one or more other processes (e.g., Fabric Manager, CUDA \
         application, graphics application such as an X server, or a monitoring application such as another \
         instance of nvidia-smi). Please first kill all processes using {these} and all compute applications \
         running in the system.\n"
    )
}
