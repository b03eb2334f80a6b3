//! The commands, as a person or a script types them: output, errors and exit codes.

mod check;
mod command_line;
mod conventions;
mod curves;
mod diff;
mod doctor;
mod on_server;
mod plan;
#[cfg(target_os = "linux")]
mod predict;
mod replay;
mod sample;
mod sweep;
mod terminal;
#[cfg(unix)]
mod watch;
mod whatif;
