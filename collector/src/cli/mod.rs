//! The command line: what is typed, and what becomes of it.

mod budget;
mod report;
mod run;
mod serve;
mod setting;

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
    /// Run a workload on a simulated device, and report what became of it
    Run(run::Run),
}

/// Runs the program and gives its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command.unwrap_or(Command::Serve(arguments.serve)) {
        Command::Serve(serve) => serve.run(),
        Command::Report(report) => report.run(),
        Command::Budget(budget) => budget.run(),
        Command::Run(run) => run.run(),
    }
}
