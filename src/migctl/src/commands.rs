//! One function a command: ask the service, print the answer, say the exit code.

use crate::{
    args::{Args, Command, Common, File, Layout},
    output, simulate,
};
use migd::{LayoutText, Planned, Progress, Service, Site};
use migd_core::{
    diagnostic::{Diagnostic, Severity},
    document::{Failure, Layouts, Status},
    draw,
    reason::{Exit, Reason},
    render::render,
};
use std::{future::Future, io::Read};

/// Why a command ends without an answer: the faults, and the text that their places point into.
struct Stop {
    failure: Failure,
    source: String,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop { failure, source: String::new() }
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
        Command::Layouts(file) => layouts(&args.common, &file),
    };
    result.unwrap_or_else(|stop| {
        output::failure(&stop.failure, &stop.source, json);
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
    let text = read(&layout.file)?;
    let service = service(common)?;
    let planned = wait(service.plan(&text, &layout.name, layout.gpu.as_deref()))?
        .map_err(|failure| stop(failure, &text))?;
    if common.json {
        output::document(&planned.plan);
    } else {
        show(&planned, &text);
    }
    Ok(if planned.plan.is_empty() { Exit::Done } else { Exit::Differs })
}

fn apply(common: &Common, layout: &Layout) -> Result<Exit, Stop> {
    let text = read(&layout.file)?;
    let service = service(common)?;
    let json = common.json;
    let announce = |planned: &Planned| {
        if !json {
            show(planned, &text);
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
        let applied = service.apply(&text, &layout.name, layout.gpu.as_deref(), announce, &progress).await;
        drop(progress);
        applied
    };
    let applied = wait(async { tokio::join!(work, listen).0 })?.map_err(|failure| stop(failure, &text))?;
    if json {
        output::document(&applied.outcome);
    } else {
        output::print(&output::outcome(&applied.outcome));
    }
    Ok(applied.outcome.exit())
}

fn layouts(common: &Common, file: &File) -> Result<Exit, Stop> {
    let text = read(file)?;
    let file = text.parse().map_err(|failure| stop(failure, &text))?;
    let list = Layouts::of(&file);
    if common.json {
        output::document(&list);
    } else {
        let lines =
            list.layouts.iter().map(|layout| format!("{}  ({}:{})\n", layout.name, layout.file, layout.line));
        output::print(&lines.collect::<String>());
    }
    Ok(Exit::Done)
}

/// The plan on standard output; its warnings and notes on standard error, so that they spoil no picture.
fn show(planned: &Planned, text: &LayoutText) {
    let (notes, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) =
        planned.plan.notes.iter().cloned().partition(|note| note.severity == Severity::Note);
    output::say(&render(&warnings, &text.text, false));
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

fn service(common: &Common) -> Result<Service, Failure> {
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

/// The most that a layout file may hold; the largest real ones are some tens of kilobytes.
const MOST_BYTES: u64 = 4 << 20;

fn read(file: &File) -> Result<LayoutText, Failure> {
    let Some(path) = &file.path else {
        return Ok(LayoutText::shipped());
    };
    let stdin = path.as_os_str() == "-";
    let origin = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let result = if stdin {
        std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
    };
    let unreadable = |why: &str| {
        let fault = Diagnostic::error(Reason::FileUnreadable, format!("{origin}: {why}"));
        Failure::of(vec![fault.help("name a layout file with -f FILE, or `-f -` for standard input")])
    };
    match result {
        Err(error) => Err(unreadable(&error.to_string())),
        Ok(_) if bytes.len() as u64 > MOST_BYTES => {
            Err(unreadable("larger than 4 MiB, which no layout file is"))
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Ok(LayoutText { origin, text }),
            Err(_) => Err(unreadable("not UTF-8 text")),
        },
    }
}

fn stop(failure: Failure, text: &LayoutText) -> Stop {
    Stop { failure, source: text.text.clone() }
}

/// Runs a question to its end on this thread.
fn wait<T>(question: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::of(vec![Diagnostic::error(Reason::Internal, format!("the runtime does not start: {error}"))])
    })?;
    Ok(runtime.block_on(question))
}
