//! A program that is run as a job, by `watch` and `predict`: what it is, whether its Python has the recorder, and the signals
//! that reach it.

mod probe;
mod program;
mod signals;

pub(super) use probe::{Recorder, answer, ask_and_mend};
pub(super) use program::{Program, is_python, python_path, run_name};
#[cfg(unix)]
pub(super) use signals::Handlers;
pub(super) use signals::{end_as, killed_by, wait};

/// The variable that names the folder in which the recorder tells how far it has come. That it is set at all tells the agent
/// that a link was printed.
pub(super) const WATCHED_VARIABLE: &str = "VRAMSCOPE_WATCHED";
