//! The command line: what is typed, and what becomes of it.

mod budget;
mod live;
mod log;
mod replay;
mod report;
mod run;
mod serve;
mod setting;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// See what filled the GPU's memory, when, and from which line.
#[derive(Debug, Parser)]
#[command(name = "vramscope", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Without a command: `serve`.
    #[command(flatten)]
    serve: serve::Serve,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the page on this machine. The files dropped on it stay in the browser
    Serve(serve::Serve),
    /// Print what memory snapshots hold, without a browser
    Report(report::Report),
    /// Plan the memory of a transformer, by formula and by simulation
    Budget(budget::Budget),
    /// Run a workload on a simulated device or a GPU, and report what became of it
    Run(run::Run),
    /// Run a script of allocations on a simulated device, as a release of PyTorch would
    Replay(replay::Replay),
}

/// Runs the program and gives its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command.unwrap_or(Command::Serve(arguments.serve)) {
        Command::Serve(serve) => serve.run(),
        Command::Report(report) => report.run(),
        Command::Budget(budget) => budget.run(),
        Command::Run(run) => run.run(),
        Command::Replay(replay) => replay.run(),
    }
}

/// The exit code for what was typed or named and can't be used.
const UNUSABLE: u8 = 2;

/// Says in one line why nothing was done.
fn refuse(sentence: &str) -> ExitCode {
    eprintln!("{}", one_line(sentence));
    ExitCode::from(UNUSABLE)
}

/// Writes to standard output. A reader who has seen enough (`| head`) ends the program without a word; what can't be
/// written otherwise is told, and the exit code is 1.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("Writing to standard output failed: {}.", one_line(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Text without line breaks or other control characters, as a file's name may hold.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_the_line() {
        assert_eq!(one_line("a\nb\x1b[2J"), "a\u{fffd}b\u{fffd}[2J");
    }
}
