//! One function a command: ask the service, print the answer, say the exit code.

use crate::{
    args::{Args, Command, Common, Export, Layout},
    layouts, output, simulate, written,
};
use migd::{Planned, Progress, Service, Site};
use migd_core::{
    diagnostic::{Diagnostic, Severity},
    document::{Failure, Status},
    draw,
    layout::Library,
    reason::{Exit, Reason},
    render::{Sources, render},
};
use std::future::Future;

/// Why a command ends without an answer: the faults, and the texts that their places point into.
pub(crate) struct Stop {
    failure: Failure,
    sources: Sources,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop { failure, sources: Sources::new() }
    }
}

impl Stop {
    /// With the texts of these layouts.
    pub(crate) fn of(failure: Failure, library: &Library) -> Stop {
        Stop { failure, sources: library.sources().clone() }
    }
}

/// Runs a command.
pub(crate) fn run(args: Args) -> Exit {
    let json = args.common.json;
    let result = match args.command {
        Command::Simulate { arguments } => simulate::hand_over(&args.common, &arguments).map_err(Stop::from),
        Command::Status => status(&args.common),
        Command::Plan(layout) => plan(&args.common, &layout),
        Command::Apply(layout) => apply(&args.common, &layout),
        Command::Explain { gpu, profile } => explain(&args.common, &gpu, &profile),
        Command::Layouts(ask) => layouts::layouts(&args.common, &ask),
        Command::Check(ask) => layouts::check(&args.common, &ask),
        Command::Show(ask) => written::show(&args.common, &ask),
        Command::Generate { form } => written::generate(&args.common, form),
        Command::Export(Export::Layout { name, form }) => written::export(&args.common, &name, form),
        Command::Schema => written::schema(),
    };
    result.unwrap_or_else(|stop| {
        output::failure(&stop.failure, &stop.sources, json);
        stop.failure.reason.exit()
    })
}

fn status(common: &Common) -> Result<Exit, Stop> {
    let service = service(common)?;
    let node = wait(service.status())??;
    if common.json {
        output::document(&Status::of(&node));
    } else {
        output::print(&draw::status(&node));
    }
    Ok(Exit::of_all(node.unavailable.iter().map(|gpu| gpu.reason.exit())))
}

fn explain(common: &Common, gpu: &str, profile: &str) -> Result<Exit, Stop> {
    let service = service(common)?;
    let (gpu, explained) = wait(service.explain(gpu, profile))??;
    if common.json {
        output::document(&explained);
    } else {
        output::print(&migd_core::explain::text(&explained, &gpu));
    }
    Ok(Exit::Done)
}

fn plan(common: &Common, layout: &Layout) -> Result<Exit, Stop> {
    let library = layouts::read(&layout.file)?;
    let service = service(common)?;
    let planned = wait(service.plan(&library, &layout.name, layout.gpu.as_deref()))?
        .map_err(|failure| Stop::of(failure, &library))?;
    if common.json {
        output::document(&planned.plan);
    } else {
        show(&planned, &library);
    }
    Ok(if planned.plan.is_empty() { Exit::Done } else { Exit::Differs })
}

fn apply(common: &Common, layout: &Layout) -> Result<Exit, Stop> {
    let library = layouts::read(&layout.file)?;
    let service = service(common)?;
    let json = common.json;
    let announce = |planned: &Planned| {
        if !json {
            show(planned, &library);
        }
    };
    let (progress, mut events) = Progress::channel();
    let listen = async {
        while let Some(event) = events.recv().await {
            if let Some(line) = output::progress(&event).filter(|_| !json) {
                output::say(&(line + "\n"));
            }
        }
    };
    let work = async {
        let applied = service.apply(&library, &layout.name, layout.gpu.as_deref(), announce, &progress).await;
        drop(progress);
        applied
    };
    let applied =
        wait(async { tokio::join!(work, listen).0 })?.map_err(|failure| Stop::of(failure, &library))?;
    if json {
        output::document(&applied.outcome);
    } else {
        output::print(&output::outcome(&applied.outcome));
    }
    Ok(applied.outcome.exit())
}

/// The plan on standard output; its warnings and notes on standard error, so that they spoil no picture.
fn show(planned: &Planned, library: &Library) {
    let (notes, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) =
        planned.plan.notes.iter().cloned().partition(|note| note.severity == Severity::Note);
    output::say(&render(&warnings, library.sources(), false));
    // The layout that was asked for is right; others may not be there when they are needed.
    let wrong = library.faults().iter().filter(|fault| fault.severity == Severity::Error).count();
    if wrong > 0 {
        let number = output::count(u32::try_from(wrong).unwrap_or(u32::MAX), "error");
        output::say(&format!("warning: {number} in other layout files; `migctl check` shows them\n"));
    }
    // A file for many models has many entries that are for others: one line says so.
    let (others, notes): (Vec<Diagnostic>, Vec<Diagnostic>) =
        notes.into_iter().partition(|note| note.reason == Reason::NoGpuMatched);
    match others.as_slice() {
        [] => {}
        [one] => output::say(&output::note(one)),
        many => output::say(&format!(
            "note: {} of the layout's entries are for GPUs that this node does not have\n",
            many.len()
        )),
    }
    notes.iter().for_each(|note| output::say(&output::note(note)));
    output::print(&draw::plan(&planned.plan, &planned.node));
}

pub(crate) fn service(common: &Common) -> Result<Service, Failure> {
    let site = match &common.simulate {
        Some(node) => simulate::site(node, common.state.as_deref(), common.trace.as_deref())?,
        None if common.state.is_some() || common.trace.is_some() => {
            let text = "--state and --trace go with --simulate NODE";
            return Err(Failure::of(vec![Diagnostic::error(Reason::UsageInvalid, text)]));
        }
        None => Site::default(),
    };
    Ok(Service::new(site))
}

/// Runs a question to its end on this thread.
pub(crate) fn wait<T>(question: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::of(vec![Diagnostic::error(Reason::Internal, format!("the runtime does not start: {error}"))])
    })?;
    Ok(runtime.block_on(question))
}
