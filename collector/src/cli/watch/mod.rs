//! `vramscope watch`: runs a job, and shows its memory while it runs.
//!
//! ```text
//! find or start a server ─► print one link ─► run the job, with variables for the agent ─► print what it was ─► end as the job did
//! ```
//! The job runs as without Vramscope: the same arguments, standard streams, signals and exit code. The agent inside it is
//! the Python package, which reads the variables. Every process of the job inherits them, and they share one link.

mod lookout;
mod server;
mod stage;
mod summary;
mod written;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::Args;
use format::EXTENSION;
use query::link::Encoded;

use self::lookout::Lookout;
use self::server::Server;
use self::stage::{Stage, Stages};
use super::browser;
use super::destination::{CA_FILE_VARIABLE, TO_VARIABLE, TOKEN_VARIABLE, named_server};
use super::job::{self, Program, Recorder, WATCHED_VARIABLE, python_path, run_name};
use super::message::note;
use super::output::next_step;
use super::push::{ServerOptions, wait};
use super::setting;
use super::{one_line, refuse};
use crate::announcement::token_at;
use crate::remote::Remote;

/// The longest wait for an answer of a server that was named.
const ANSWER: Duration = Duration::from_secs(3);

/// What `--help` says about the exit status.
const STATUS: &str = "\
Exit status: that of the job, also if a signal ended it; 2 if it could not be started.";

/// The options of `watch`.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub(super) struct Watch {
    /// Server to send to [default: the variable VRAMSCOPE_TO, your newest server on this machine, or a new one]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Stop the server at the end, if it was started for this job
    #[arg(long)]
    stop_server: bool,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Python for scripts and modules [default: python or python3 on the PATH]
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Write a recording as well; {rank} and {pid} are replaced
    #[arg(long, value_name = "FILE")]
    out: Option<OsString>,
    /// How events are captured
    #[arg(long, value_name = "MODE", value_parser = ["auto", "events", "budget"])]
    mode: Option<String>,
    /// Which frames stacks have
    #[arg(long, value_name = "STACKS", value_parser = ["python", "all", "none"])]
    stacks: Option<String>,
    /// Which events have their own stack
    #[arg(long, value_name = "CONTEXT", value_parser = ["alloc", "all", "state"])]
    context: Option<String>,
    /// Share of the job's time that recording may take with --mode budget, such as 0.01
    #[arg(long, value_name = "SHARE", value_parser = setting::share)]
    budget: Option<f64>,
    /// Say on standard error when this share of the cached memory becomes unusable, such as 0.3
    #[arg(long, value_name = "SHARE", value_parser = setting::share)]
    warn_at: Option<f64>,
    /// Seconds to wait at most, at the job's end, for the delivery of its events [default: 10]
    #[arg(long, value_name = "SECONDS")]
    end_seconds: Option<u32>,
    /// Name of the recording [default: the script's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
    /// Run a module, as python -m does
    #[arg(short = 'm')]
    is_module: bool,
    /// A Python script, a module with -m, or a program such as torchrun; everything after it belongs to it
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

impl Watch {
    /// Runs the job, and returns its exit code.
    pub(super) fn run(self) -> ExitCode {
        match self.watch() {
            Ok(status) => job::end_as(status),
            Err(sentence) => refuse(&sentence),
        }
    }

    fn watch(self) -> Result<ExitStatus, String> {
        // What can't work is refused before anything is started.
        let program =
            Program::of(&Watch::augment_args(clap::Command::new("watch")), self.is_module, self.program.clone())?;
        // The agent fills in a folder's placeholders, such as {rank}, in each process.
        let folder = self.out.as_ref().and_then(|out| Path::new(out).parent());
        let folder = folder.filter(|folder| !folder.to_string_lossy().contains('{'));
        if let Some(missing) = folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
            return Err(format!("--out: there is no folder {}. Create it, or name another.", missing.display()));
        }
        if let Some(out) = self.out.as_deref().map(Path::new).filter(|out| out.extension() != Some(EXTENSION.as_ref()))
        {
            return Err(format!("--out {}: a recording is written. End its name with .{EXTENSION}.", out.display()));
        }
        let mut command = program.command(self.python.as_deref())?;
        let name = run_name(&program.name())?;
        let named = named_server(self.to.clone());
        let option = named.as_ref().map_or(TO_VARIABLE, |(option, _)| option);
        let is_named = named.is_some();
        let server = Server::find_or_start(named.map(|(_, address)| address))?;
        let destination = self.server.destination(option, &server.address)?;
        let remote = Remote::new(&destination)?;
        // A page that is opened anew has no token. One that an operator gave is not part of the link.
        let made = token_at(&server.address);
        let link = format!("{}#{}job={}", destination.address(), browser::token_part(made.as_deref()), Encoded(&name));
        self.tell(&mut command, &server.address, &name);
        if let Some(token) = destination.bearer() {
            command.env(TOKEN_VARIABLE, token);
        }
        if let Some(file) = self.server.ca_file() {
            command.env(CA_FILE_VARIABLE, file);
        }
        let absent = if is_named { wait(async { Ok(remote.absence(ANSWER).await) })? } else { None };
        let recorder = match program.is_python() {
            true => job::ask_and_mend(&mut command),
            false => Recorder::Unknown,
        };
        let stages = Stages::new().map(Arc::new);
        command.env(WATCHED_VARIABLE, stages.as_ref().map_or(Path::new("1"), |stages| stages.path()));

        #[cfg(unix)]
        let handlers = job::Handlers::install()?;
        let is_kept = server.is_new() && !self.stop_server;
        let kept = if is_kept { " (its server keeps running; vramscope stop ends it)" } else { "" };
        // At once: the job may take hours.
        if let Some(why) = why_not(&recorder, &command.get_program().to_string_lossy()) {
            say(&why);
        }
        if recorder != Recorder::Missing {
            match &absent {
                None => say(&format!("Watch it at {link}{kept}")),
                Some(why) => say(&format!(
                    "No server answers at {} ({why}). The job runs all the same, and sends to it as soon as it answers. Watch \
                     it then at {link}",
                    server.address
                )),
            }
            if let Some(tunnel) = browser::tunnel(&link).filter(|_| absent.is_none()) {
                say(&tunnel);
            }
            if self.open && absent.is_none() {
                browser::open(&link);
            }
        } else if is_kept {
            // There is nothing to watch, unless the job starts another Python: the end tells.
            say(&format!("The server at {} keeps running; vramscope stop ends it", server.address));
        }
        let begun = SystemTime::now();
        let mut child = command.spawn().map_err(|error| {
            format!("{} can't be started: {error}.", one_line(&command.get_program().to_string_lossy()))
        })?;
        #[cfg(unix)]
        let forwarding = handlers.forward_to(&child);
        // Where the Python has answered, there is nothing to find out.
        let lookout = stages.clone().filter(|_| recorder == Recorder::Unknown).map(|stages| {
            Lookout::start(child.id(), stages, |python, pid| {
                let python = python.display();
                say(&format!(
                    "The recorder has not started in {python} (process {pid}), so nothing of it is recorded. Does that \
                     Python have the package? Install it with: {python} -m pip install vramscope"
                ));
            })
        });
        let status = job::wait(&mut child)?;
        drop(lookout);
        #[cfg(unix)]
        drop(forwarding);
        if let Some(line) = job::killed_by(status) {
            say(&line);
        }
        // The job is over, whatever becomes of the summary.
        let absent = match absent {
            Some(_) => wait(async { Ok(remote.absence(ANSWER).await) })?,
            None => None,
        };
        let said = match absent {
            None => wait(summary::summary(&remote, &name)),
            Some(why) => Err(format!("Nothing reached {}: {why}", server.address)),
        };
        let files = self.out.as_deref().map(|out| written::files(Path::new(out), begun)).unwrap_or_default();
        match said {
            Ok(None) => {
                say(&format!("What was recorded is at {link}. The token may not read it, so there is no summary here"));
            }
            Ok(Some(lines)) if lines.is_empty() => {
                let reached = stages.as_ref().map(|stages| stages.reached());
                let name = command.get_program().to_string_lossy();
                say(&why_nothing(&recorder, &name, reached, status.success()));
            }
            Ok(Some(lines)) => {
                for line in lines {
                    say(&line);
                }
                say(&format!("The recording is at {link}"));
            }
            Err(sentence) => {
                say(&sentence);
                for line in summary::of_files(&files) {
                    say(&line);
                }
            }
        }
        if let Some(first) = files.first() {
            say(&format!("Wrote {}", written::named(&files)));
            say(next_step("doctor", first).trim_end());
        }
        if self.stop_server {
            server.end();
        }
        Ok(status)
    }

    /// Sets the variables that the agent reads in every process of the job.
    fn tell(&self, command: &mut Command, to: &str, job: &str) {
        command.env(TO_VARIABLE, to).env("VRAMSCOPE_JOB", job);
        if let Some(out) = &self.out {
            command.env("VRAMSCOPE_OUT", out);
        }
        for (variable, value) in [
            ("VRAMSCOPE_MODE", self.mode.clone()),
            ("VRAMSCOPE_STACKS", self.stacks.clone()),
            ("VRAMSCOPE_CONTEXT", self.context.clone()),
            ("VRAMSCOPE_BUDGET", self.budget.map(|share| share.to_string())),
            ("VRAMSCOPE_WARN_AT", self.warn_at.map(|share| share.to_string())),
            ("VRAMSCOPE_END_SECONDS", self.end_seconds.map(|seconds| seconds.to_string())),
            ("VRAMSCOPE_NAME", self.name.clone()),
        ] {
            if let Some(value) = value {
                command.env(variable, value);
            }
        }
        if let Some(path) = python_path(std::env::var_os("PYTHONPATH").as_deref()) {
            command.env("PYTHONPATH", path);
        }
    }
}

/// Returns why nothing will be recorded in a Python that was asked, if that is so.
fn why_not(recorder: &Recorder, python: &str) -> Option<String> {
    match recorder {
        Recorder::Starts | Recorder::Unknown => None,
        Recorder::Missing => Some(format!(
            "Nothing will be recorded: {python} has no package vramscope. Install it with: {python} -m pip install vramscope"
        )),
        Recorder::Idle(_) => Some(format!(
            "Nothing will be recorded unless the job calls vramscope.attach(): {python} has the package vramscope, but does \
             not load it when it starts. Install it with: {python} -m pip install vramscope"
        )),
    }
}

/// Returns why nothing was recorded, as far as that is known: by what the job's Python answered, and by how far the
/// recorder came on this machine.
fn why_nothing(recorder: &Recorder, python: &str, reached: Option<Stage>, has_succeeded: bool) -> String {
    let what = match (reached, recorder) {
        (Some(Stage::Gpu), _) => "the job used the GPU, but nothing of it has arrived at the server",
        (Some(Stage::Torch), _) if has_succeeded => "the job loaded PyTorch, but did not use the GPU",
        (Some(Stage::Torch), _) => "the job failed after it loaded PyTorch and before it used the GPU",
        (Some(Stage::Started), _) if has_succeeded => "the job did not load PyTorch",
        (Some(Stage::Started), _) => "the job failed before it loaded PyTorch",
        (_, Recorder::Missing) => {
            return format!(
                "Nothing was recorded: {python} has no package vramscope. Install it with: {python} -m pip install vramscope"
            );
        }
        (_, Recorder::Idle(_)) => {
            return format!(
                "Nothing was recorded: the recorder never started in {python}. Install it with: {python} -m pip install \
                 vramscope"
            );
        }
        (Some(Stage::Absent), _) => {
            "the recorder never started in a Python of the job on this machine. A Python starts it if it has the package \
             vramscope"
        }
        (None, _) => "the job did not use the GPU, or its Python has no package vramscope",
    };
    format!("Nothing was recorded: {what}.")
}

/// Prints a line beside what the job prints. Standard output belongs to the job.
fn say(line: &str) {
    note(&format!("vramscope: {line}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_said_about_a_job_without_a_recording() {
        let idle = Recorder::Idle("/env/vramscope/__init__.py".into());
        for (recorder, reached, has_succeeded, wanted) in [
            (&Recorder::Missing, Stage::Absent, true, "PY has no package vramscope. Install it"),
            (&idle, Stage::Absent, false, "the recorder never started in PY. Install it"),
            (&Recorder::Unknown, Stage::Absent, false, "the recorder never started in a Python of the job"),
            (&Recorder::Starts, Stage::Started, true, "the job did not load PyTorch."),
            (&Recorder::Starts, Stage::Started, false, "the job failed before it loaded PyTorch."),
            (&Recorder::Starts, Stage::Torch, true, "the job loaded PyTorch, but did not use the GPU."),
            // What the job starts may have what its own Python lacks.
            (&Recorder::Missing, Stage::Gpu, false, "the job used the GPU, but nothing of it has arrived"),
        ] {
            let said = why_nothing(recorder, "PY", Some(reached), has_succeeded);
            assert!(said.starts_with(&format!("Nothing was recorded: {wanted}")), "{said}");
        }
        assert_eq!(why_not(&Recorder::Starts, "PY"), None);
        assert!(why_not(&idle, "PY").is_some_and(|why| why.contains("unless the job calls vramscope.attach()")));
    }
}
