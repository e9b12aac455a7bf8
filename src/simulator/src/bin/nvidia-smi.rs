//! Stand-in for nvidia-smi on a simulated node: `-L` and `-r`, in nvidia-smi's own words and exit codes.
//!
//! It asks for the rest to be done otherwise, since an empty answer would be taken for a real one.

use nvidia_ml::{
    client::Clients,
    fault::{self, Scope},
    folder::effective_uid,
    handling::{self, address_of},
    machine::{Board, Code},
    model::Model,
    session::STATE_VARIABLE,
    shared::{Locked, Shard},
};
use std::{
    env,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

/// nvidia-smi's exit codes (its man page, RETURN VALUE).
const INVALID_ARGUMENT: u8 = 2;
const NOT_SUPPORTED: u8 = 3;
const NO_PERMISSION: u8 = 4;
const NOT_FOUND: u8 = 6;
const DRIVER_NOT_LOADED: u8 = 9;
const LOST: u8 = 15;
const FAILED: u8 = 255;

/// What to say on standard output, and the exit code.
struct Answer(String, u8);

#[derive(Debug, PartialEq, Eq)]
enum Verb {
    List,
    Reset,
    Help,
}

fn main() -> ExitCode {
    let Answer(text, code) = answer(&env::args().skip(1).collect::<Vec<_>>());
    // nvidia-smi says everything, errors too, on standard output; one that is closed leaves no one to tell.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::from(code)
}

fn answer(arguments: &[String]) -> Answer {
    let (verb, ids) = match read(arguments) {
        Ok((Verb::Help, _)) => return Answer(help(), 0),
        Ok(read) => read,
        Err(why) => return Answer(why, INVALID_ARGUMENT),
    };
    let opened = env::var_os(STATE_VARIABLE).and_then(|folder| Shard::open(Path::new(&folder)).ok());
    let Some(shard) = opened else {
        return Answer(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the \
             latest NVIDIA driver is installed and running.\n\n(simulated: NVML_SIMULATOR_STATE names no node)\n"
                .to_owned(),
            DRIVER_NOT_LOADED,
        );
    };
    let all = 0..shard.models().len();
    let chosen: Option<Vec<usize>> = match &ids {
        None => Some(all.collect()),
        Some(ids) => ids.split(',').map(|id| handling::find(&shard, id.trim()).ok()).collect(),
    };
    let Some(mut chosen) = chosen else {
        return Answer("No devices were found\n".to_owned(), NOT_FOUND);
    };
    chosen.sort_unstable();
    chosen.dedup();
    match verb {
        Verb::Reset => reset(&shard, &chosen),
        _ => Answer(list(&shard, &chosen), 0),
    }
}

fn help() -> String {
    "nvml-simulator's stand-in for nvidia-smi. It does\n    \
     -L, --list-gpus            list the GPUs and their MIG devices\n    \
     -r, --gpu-reset            reset GPUs that no one uses\n    \
     -i, --id=ID[,ID...]        only these: index, UUID or PCI address\n"
        .to_owned()
}

/// The one thing that is asked for, and of which GPUs.
fn read(arguments: &[String]) -> Result<(Verb, Option<String>), String> {
    let (mut verb, mut ids) = (None, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let found = match argument.as_str() {
            "-L" | "--list-gpus" => Verb::List,
            "-r" | "--gpu-reset" => Verb::Reset,
            "-h" | "--help" => Verb::Help,
            "-i" | "--id" => {
                ids = Some(arguments.next().ok_or_else(|| refuse("-i without a GPU"))?.clone());
                continue;
            }
            other => match other.strip_prefix("--id=") {
                Some(list) => {
                    ids = Some(list.to_owned());
                    continue;
                }
                None => return Err(refuse(&format!("`{other}`"))),
            },
        };
        if verb.as_ref().is_some_and(|verb| *verb != found) {
            return Err(refuse(&format!("`{argument}` with another")));
        }
        verb = Some(found);
    }
    match verb {
        Some(verb) => Ok((verb, ids)),
        None => Err(refuse("the summary of all GPUs (try `nvml-simulator show`)")),
    }
}

fn refuse(what: &str) -> String {
    format!("{what} is not done here: this is nvml-simulator's stand-in for nvidia-smi.\n\n{}", help())
}

/// `-L`, as nvidia-smi prints it.
fn list(shard: &Shard, chosen: &[usize]) -> String {
    let mut out = String::new();
    for index in chosen {
        let (Some(model), Some(state)) = (shard.models().get(*index), shard.read(*index)) else { continue };
        out.push_str(&format!("GPU {index}: {} (UUID: {})\n", model.name.as_str(), model.uuid.as_str()));
        let board = Board::new(shard.info(), model);
        for (number, device) in board.mig_devices(&state).into_iter().enumerate() {
            let Ok((gi, ci)) = board.mig_instances(&state, device) else { continue };
            let name = board.ci_profile_of(gi, ci).map_or("?", |profile| profile.name.as_str());
            let uuid = board.mig_uuid(device, ci);
            out.push_str(&format!("  MIG {name:<11} Device {number:>2}: (UUID: {uuid})\n"));
        }
    }
    out
}

/// Why one GPU is not reset.
#[derive(Debug)]
struct NotReset(Code);

impl From<Locked> for NotReset {
    fn from(_: Locked) -> NotReset {
        NotReset(Code::IN_USE)
    }
}

/// `-r`: all that are chosen, or none if one of them is in use.
fn reset(shard: &Shard, chosen: &[usize]) -> Answer {
    if shard.info().privileges_real != 0 && effective_uid() != 0 {
        return Answer(
            "Unable to reset this GPU because of insufficient permissions; root may.\n".to_owned(),
            NO_PERMISSION,
        );
    }
    let Ok(clients) = Clients::open(&shard.folder) else {
        return Answer(format!("cannot open the clients of {}\n", shard.folder.display()), FAILED);
    };
    // A client file that does not answer counts as in use.
    let others = |gpu: usize| clients.others(gpu).unwrap_or(true);
    let busy: Vec<&Model> = chosen
        .iter()
        .filter_map(|gpu| {
            let (model, state) = (shard.models().get(*gpu)?, shard.read(*gpu)?);
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
        let done = meet_faults(shard, *gpu).and_then(|()| {
            match shard.update(*gpu, |state| board.reset(state, others(*gpu)).map_err(NotReset)) {
                Some(done) => done,
                None => Err(NotReset(Code::INVALID_ARGUMENT)),
            }
        });
        let address = long_address(model);
        let (text, exit) = match done {
            Ok(()) => {
                out.push_str(&format!("GPU {address} was successfully reset.\n"));
                continue;
            }
            Err(NotReset(Code::IN_USE)) => (in_use(&[model]), FAILED),
            Err(NotReset(Code::NOT_SUPPORTED)) => {
                (format!("Resetting GPU {address} is not supported.\n"), NOT_SUPPORTED)
            }
            Err(NotReset(Code::GPU_IS_LOST)) => {
                (format!("GPU {address}: Unable to reset GPU: GPU is lost\n"), LOST)
            }
            Err(NotReset(code)) => {
                (format!("GPU {address}: Unable to reset GPU: {}\n", name_of(code)), FAILED)
            }
        };
        return Answer(out + &text, exit);
    }
    Answer(out + "All done.\n", 0)
}

/// What a person has laid in the way of resets, and how long one takes.
fn meet_faults(shard: &Shard, gpu: usize) -> Result<(), NotReset> {
    let lose = |gpu: usize| {
        // A lock that cannot be had leaves the GPU where it is.
        let _ = shard.update(gpu, |state| {
            state.lost = 1;
            Ok::<(), Locked>(())
        });
    };
    let (faults, folder) = (&shard.faults, &shard.folder);
    fault::meet_at(faults, folder, fault::RESET, Scope::Begin(Some(gpu)), &lose).map_err(NotReset)?;
    fault::delay(faults, folder, fault::RESET, Some(gpu), || shard.info().driver_lock_node != 0);
    Ok(())
}

fn name_of(code: Code) -> String {
    let name = Code::NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("error {}", code.0))
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

/// A PCI address with the eight digits of domain that nvidia-smi prints.
fn long_address(model: &Model) -> String {
    let address = address_of(model);
    format!("{:08X}:{:02X}:{:02X}.0", address.domain, address.bus, address.device)
}
