//! `vramscope open FILE`, or `vramscope FILE`: opens files in the page, or a job that the running server keeps.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use query::link::Encoded;

use super::destination::{destination, remote_at};
use super::page_address::page_address;
use super::push::wait;
use super::serve::Serve;
use super::suggestion::did_you_mean;
use super::{browser, message, print, refuse};
use crate::announcement::{Announcement, state_folder};
use crate::remote::{Listed, Remote};

/// What to open.
#[derive(Args, Debug)]
pub(super) struct Open {
    /// Files to open in the browser, which alone reads them; or a job of `vramscope ls`
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the address without opening the browser
    #[arg(long, requires = "files")]
    no_browser: bool,
}

impl Open {
    /// Does what the program does without a command: opens what is named, or serves.
    pub(super) fn run_or_serve(self) -> ExitCode {
        if !self.files.is_empty() {
            return self.run();
        }
        if io::stderr().is_terminal() {
            message::note("All commands: vramscope --help");
        }
        Serve::plain().run()
    }

    /// Opens the files, or the page alone. A server of this user that runs shows them. If there is none, this program serves
    /// them until Ctrl-C.
    pub(super) fn run(self) -> ExitCode {
        let running = state_folder().map_or(Ok(None), |state| Announcement::newest(&state));
        // No reason not to open the files.
        let running = running.inspect_err(|sentence| message::note(sentence)).ok().flatten();
        if let Some(missing) = self.files.iter().find(|path| !path.is_file() || is_script(path)) {
            return match running.as_ref().and_then(|server| recording_at(server, missing)) {
                Some(address) => self.show(&address),
                None => refuse(&unknown(missing, running.is_some())),
            };
        }
        // A server that can't open files is no reason either.
        match running.and_then(|server| self.files_at(&server).ok()) {
            Some(address) => self.show(&address),
            None => {
                let no_browser = self.no_browser;
                Serve::plain().run_showing(&self.files, move |address| {
                    if !no_browser {
                        browser::open(address);
                    }
                })
            }
        }
    }

    /// Prints the address of what was opened, and shows it.
    fn show(&self, address: &str) -> ExitCode {
        let printed = print(|out| writeln!(out, "Opened at {address}"));
        if let Some(tunnel) = browser::tunnel(address) {
            message::note(&tunnel);
        }
        if !self.no_browser {
            browser::open(address);
        }
        printed
    }

    /// Asks a server to show the files. Returns the address that opens them.
    fn files_at(&self, server: &Announcement) -> Result<String, String> {
        let destination = destination("the running server", &server.address, None, None)?;
        // Not the token of the variable: it is for another server.
        let destination = destination.token(server.secret.clone());
        let remote = Remote::new(&destination)?;
        let mut parts = Vec::new();
        for path in &self.files {
            let path = path.canonicalize().map_err(|error| format!("{}: {error}.", path.display()))?;
            parts.push(wait(remote.offer(&path))?);
        }
        Ok(page_address(&destination.address(), server.token.as_deref(), &parts))
    }
}

/// Returns the address that opens a job of a server by its name, or a session by its id; `None` if the server keeps none.
fn recording_at(server: &Announcement, name: &Path) -> Option<String> {
    let name = name.to_str()?;
    let sessions = wait(remote_at(server).ok()?.sessions()).ok()??;
    let is_it = |session: &&Listed| session.id == name || session.title() == name;
    let session = sessions.iter().find(is_it)?;
    let part = match session.job == name {
        true => format!("job={}", Encoded(&session.job)),
        false => format!("session={}", session.id),
    };
    Some(format!("{}/#{}{part}", server.address, browser::token_part(server.token.as_deref())))
}

/// Whether a name is that of a Python script: it is no trace, and jobs are named after theirs.
fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// Returns the sentence for an argument that is neither a command, a file nor a job of the server, if one is running.
fn unknown(path: &Path, is_running: bool) -> String {
    let shown = path.display();
    if path.is_dir() {
        return format!("{shown} is a folder. Name the files in it.");
    }
    if is_script(path) {
        return format!("{shown} is a script and no trace, and no running server keeps a job of that name.");
    }
    let is_word = path.extension().is_none() && path.components().count() == 1;
    if !is_word {
        return format!("{shown}: there is no such file.");
    }
    let program = super::Arguments::command();
    let meant = did_you_mean(&shown.to_string(), program.get_subcommands().map(clap::Command::get_name));
    let what = if is_running {
        "neither a command, a file nor a job of the running server"
    } else {
        "neither a command nor a file"
    };
    let list = if is_running { ", and vramscope ls the jobs" } else { "" };
    format!("{shown} is {what}.{meant} vramscope --help lists the commands{list}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_told() {
        assert_eq!(
            unknown(Path::new("repotr"), false),
            "repotr is neither a command nor a file. Did you mean report? vramscope --help lists the commands."
        );
        assert_eq!(
            unknown(Path::new("job-1"), true),
            "job-1 is neither a command, a file nor a job of the running server. vramscope --help lists the commands, and \
             vramscope ls the jobs."
        );
        assert_eq!(unknown(Path::new("a/job.pickle"), true), "a/job.pickle: there is no such file.");
        assert!(unknown(Path::new("train.py"), true).starts_with("train.py is a script and no trace, "));
    }
}
