//! The command line.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod baseline;
mod bench;
mod bisect;
mod browser;
mod budget;
mod check;
mod choice;
mod conf;
mod curves;
mod destination;
mod device;
mod diff;
mod doctor;
mod export;
mod fit;
mod gate;
mod groups;
mod help;
mod job;
mod listening;
mod listing;
mod live;
mod log;
mod message;
mod open;
mod output;
mod page_address;
mod parallel;
mod plan;
mod predict;
mod progress;
mod pull;
mod push;
mod read;
mod redaction;
mod remote_file;
mod replay;
mod report;
mod rules;
mod run;
mod serve;
mod setting;
mod stop;
mod store;
mod streams;
mod strip;
mod style;
mod subject;
mod suggestion;
mod sweep;
mod token;
mod top;
mod tune;
mod tuned_run;
mod usage;
mod watch;
mod whatif;
mod width;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use trace::text::is_hidden;

use self::message::{UNUSABLE, one_line, refuse, tell};
use self::streams::{print, print_json, show, show_as};
use crate::assets::{Asset, set_page};

/// Explains GPU memory: what filled it, when, and from which line of code
#[derive(Debug, Parser)]
#[command(
    name = "vramscope",
    // Whatever the file of the program is called.
    bin_name = "vramscope",
    version,
    args_conflicts_with_subcommands = true,
    help_template = groups::TEMPLATE,
    after_help = gate::EXIT_STATUS
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    open: open::Open,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Open files in the page, or a job by its name
    Open(open::Open),
    /// Run a training job and watch its memory
    Watch(watch::Watch),
    /// Run a workload on a simulated device or a GPU
    Run(run::RunCommand),
    /// Run a script of allocations as a PyTorch release would
    Replay(replay::Replay),
    /// Tell why memory ran out, and what to try
    Doctor(doctor::Doctor),
    /// Report the peak of a trace, and the lines that held it
    Report(report::Report),
    /// Tell what changed from one run to another
    Diff(Box<diff::Diff>),
    /// Check that a run keeps to the budgets of vramscope.toml
    Check(check::Check),
    /// Tell `git bisect run` whether a commit needs more memory
    Bisect(bisect::Bisect),
    /// Keep runs in brief, to compare later ones with
    Baseline(baseline::BaselineCommand),
    /// Print fragmentation after every event, as CSV or JSON
    Curves(curves::Curves),
    /// Tell whether a run fits other settings, or another device
    Whatif(whatif::WhatIf),
    /// Look for the allocator settings that serve a run best
    Tune(tune::Tune),
    /// Tell what to checkpoint, offload or free to save memory
    Plan(plan::Plan),
    /// Run a script without a GPU, and tell what memory it needs
    Predict(Box<predict::Predict>),
    /// Estimate the memory of a transformer
    Budget(Box<budget::BudgetCommand>),
    /// Find the largest value of a parameter that fits
    Sweep(sweep::Sweep),
    /// Compare PyTorch's allocator with those of CUDA
    BenchAllocators(bench::Bench),
    /// Share a trace by a link
    Push(push::Push),
    /// Fetch a trace that somebody shared by a link
    Pull(pull::Pull),
    /// Delete a link that `push` made
    Unshare(push::Unshare),
    /// Write a trace as a web page that opens from disk
    Export(export::Export),
    /// Write a copy of a trace without users, hosts and homes
    Strip(strip::Strip),
    /// Serve the page and the sessions of running jobs
    Serve(serve::Serve),
    /// List the recordings that a server keeps
    Ls(listing::Ls),
    /// Follow a running job's memory in the terminal
    Top(top::Top),
    /// Stop the servers that `watch` or a job started
    Stop(stop::Stop),
    /// Make a token for a server's file of tokens
    Token(token::Token),
    /// Check, repair and rebuild the stored sessions
    Store(store::Store),
    /// Print the script that completes commands in a shell
    Completions(help::Completions),
    /// Print or write manual pages
    Man(help::Man),
}

/// Runs the program and returns its exit code.
pub fn main(page: &'static [Asset]) -> ExitCode {
    set_page(page);
    style::set_for_terminal();
    let parsed = groups::grouped(Arguments::command()).try_get_matches();
    let arguments = match parsed.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let meant = choice::as_option(&error).filter(|_| has_choices());
            let meant = meant.or_else(|| groups::option_of_serve(&error, std::env::args_os().nth(1)));
            let meant = meant.or_else(|| usage::in_one_line(&error, &Arguments::command(), std::env::args().nth(1)));
            match choice::as_script(std::env::args()).or(meant) {
                Some(sentence) => return refuse(&sentence),
                None if !std::env::args().any(|argument| argument.contains(is_hidden)) => error.exit(),
                // Its colors can't be told from those of a file's name.
                None => {
                    tell(&error.to_string());
                    return ExitCode::from(UNUSABLE);
                }
            }
        }
    };
    let Some(command) = arguments.command else { return arguments.open.run_or_serve() };
    match command {
        Command::Open(open) => open.run(),
        Command::Serve(serve) => serve.run(),
        Command::Watch(watch) => watch.run(),
        Command::Ls(ls) => ls.run(),
        Command::Top(top) => top.run(),
        Command::Stop(stop) => stop.run(),
        Command::Report(report) => report.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Diff(diff) => diff.run(),
        Command::Check(check) => check.run(),
        Command::Bisect(bisect) => bisect.run(),
        Command::Baseline(baseline) => baseline.run(),
        Command::Curves(curves) => curves.run(),
        Command::Plan(plan) => plan.run(),
        Command::Predict(predict) => predict.run(),
        Command::Budget(budget) => budget.run(),
        Command::Run(run) => run.run(),
        Command::Sweep(sweep) => sweep.run(),
        Command::Replay(replay) => replay.run(),
        Command::Whatif(whatif) => whatif.run(),
        Command::Tune(tune) => tune.run(),
        Command::BenchAllocators(bench) => bench.run(),
        Command::Strip(strip) => strip.run(),
        Command::Push(push) => push.run(),
        Command::Pull(pull) => pull.run(),
        Command::Unshare(unshare) => unshare.run(),
        Command::Export(export) => export.run(),
        Command::Token(token) => token.run(),
        Command::Store(store) => store.run(),
        Command::Completions(completions) => completions.run(Arguments::command()),
        Command::Man(man) => man.run(Arguments::command()),
    }
}

/// Whether the command is one that has parameters of workloads.
fn has_choices() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|name| ["run", "sweep", "bench-allocators"].iter().any(|known| name == *known))
}
