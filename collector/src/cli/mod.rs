//! The command line: what is typed, and what becomes of it.

mod report;
mod serve;

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
}

/// Runs the program and gives its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command.unwrap_or(Command::Serve(arguments.serve)) {
        Command::Serve(serve) => serve.run(),
        Command::Report(report) => report.run(),
    }
}
