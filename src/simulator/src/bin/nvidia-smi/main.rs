//! Stand-in for nvidia-smi on a simulated node: listing, resets, and the settings that managers of sharing need, in
//! nvidia-smi's own words and exit codes where they are known.
//!
//! It asks for the rest to be done otherwise, since an empty answer would be taken for a real one.

mod reset;
mod settings;

use nvidia_ml::{
    fault::{self, Scope},
    handling::{self, address_of},
    machine::{Board, Code},
    model::Model,
    session::STATE_VARIABLE,
    shared::{Locked, Shard},
};
use reset::reset;
use settings::Setting;
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
    Set(Setting),
    Policies,
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
        Verb::Set(setting) => setting.apply(&shard, &chosen),
        Verb::Policies => Answer(settings::policies(&shard, &chosen), 0),
        _ => Answer(list(&shard, &chosen), 0),
    }
}

fn help() -> String {
    "nvml-simulator's stand-in for nvidia-smi. It does\n    \
     -L, --list-gpus              list the GPUs and their MIG devices\n    \
     -r, --gpu-reset              reset GPUs that no one uses\n    \
     -c, --compute-mode=MODE      0/DEFAULT, 1/EXCLUSIVE_THREAD, 2/PROHIBITED, 3/EXCLUSIVE_PROCESS\n    \
     -pm, --persistence-mode=MODE 0/DISABLED, 1/ENABLED\n    \
     compute-policy --set-timeslice=N   0/DEFAULT, 1/SHORT, 2/MEDIUM, 3/LONG\n    \
     compute-policy -l            list the time-slices\n    \
     -i, --id=ID[,ID...]          only these: index, UUID or PCI address\n"
        .to_owned()
}

/// The one thing that is asked for, and of which GPUs.
fn read(arguments: &[String]) -> Result<(Verb, Option<String>), String> {
    let (mut verb, mut ids) = (None, None);
    let policy = arguments.first().is_some_and(|first| first == "compute-policy");
    let mut arguments = arguments.iter().skip(usize::from(policy));
    while let Some(argument) = arguments.next() {
        let (name, joined) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let mut value = || {
            let value = joined.clone().or_else(|| arguments.next().cloned());
            value.ok_or_else(|| refuse(&format!("`{name}` without a value")))
        };
        let found = match (policy, name) {
            (_, "-i" | "--id") => {
                ids = Some(value()?);
                continue;
            }
            (false, "-c" | "--compute-mode") => {
                Verb::Set(Setting::compute_mode(&value()?).map_err(|e| refuse(&e))?)
            }
            (false, "-pm" | "--persistence-mode") => {
                Verb::Set(Setting::persistence(&value()?).map_err(|e| refuse(&e))?)
            }
            (true, "--set-timeslice") => Verb::Set(Setting::timeslice(&value()?).map_err(|e| refuse(&e))?),
            (true, "-l" | "--list") if joined.is_none() => Verb::Policies,
            (false, "-L" | "--list-gpus") if joined.is_none() => Verb::List,
            (false, "-r" | "--gpu-reset") if joined.is_none() => Verb::Reset,
            (_, "-h" | "--help") if joined.is_none() => Verb::Help,
            _ => return Err(refuse(&format!("`{argument}`"))),
        };
        if verb.as_ref().is_some_and(|verb| *verb != found) {
            return Err(refuse(&format!("`{argument}` with another")));
        }
        verb = Some(found);
    }
    match verb {
        Some(verb) => Ok((verb, ids)),
        None if policy => Err(refuse("a compute policy without --set-timeslice or -l")),
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

/// Why something is not done to a GPU.
#[derive(Debug)]
struct Refused(Code);

impl From<Locked> for Refused {
    fn from(_: Locked) -> Refused {
        Refused(Code::IN_USE)
    }
}

/// What a person has laid in the way of a function on this GPU, and how long one takes.
fn meet_faults(shard: &Shard, gpu: usize, function: &str) -> Result<(), Refused> {
    let lose = |gpu: usize| {
        // A lock that cannot be had leaves the GPU where it is.
        let _ = shard.update(gpu, |state| {
            state.lost = 1;
            Ok::<(), Locked>(())
        });
    };
    let (faults, folder) = (&shard.faults, &shard.folder);
    fault::meet_at(faults, folder, function, Scope::Begin(Some(gpu)), &lose).map_err(Refused)?;
    fault::delay(faults, folder, function, Some(gpu), || shard.info().driver_lock_node != 0);
    Ok(())
}

fn name_of(code: Code) -> String {
    let name = Code::NAMES.iter().find(|(known, _)| *known == code).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("error {}", code.0))
}

/// A PCI address with the eight digits of domain that nvidia-smi prints.
fn long_address(model: &Model) -> String {
    let address = address_of(model);
    format!("{:08X}:{:02X}:{:02X}.0", address.domain, address.bus, address.device)
}
