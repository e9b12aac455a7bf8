//! End to end: the built programs on simulated nodes, judged by the trace of driver calls and by NVIDIA's own
//! Python binding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod calls;
mod check;
mod command_line;
mod docs;
mod events;
mod examples;
mod faults;
mod functions;
mod holders;
mod labels;
mod python;
mod readings;
mod reasons;
mod record;
mod scenarios;
mod slurm;
mod topology;
mod walls;
mod way;
mod written;
