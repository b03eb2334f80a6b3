//! `vramscope FILE`: opens files in the page.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory};

use super::destination::destination;
use super::page_address::page_address;
use super::push::wait;
use super::serve::Serve;
use super::suggestion::did_you_mean;
use super::{browser, message, print, refuse};
use crate::announcement::{Announcement, state_folder};
use crate::remote::Remote;

/// The files to open.
#[derive(Args, Debug)]
pub(super) struct Open {
    /// Snapshots and recordings to open in the browser; they are read by the page, and go nowhere else
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the address without opening the browser
    #[arg(long, requires = "files")]
    no_browser: bool,
}

impl Open {
    /// Opens the files; without any, serves. A server of this user that runs shows them. If there is none, or `serve` asks
    /// for another one, this program serves them until Ctrl-C.
    pub(super) fn run(self, serve: Serve) -> ExitCode {
        if self.files.is_empty() {
            if io::stderr().is_terminal() {
                message::note("All commands: vramscope --help");
            }
            return serve.run();
        }
        if let Some(missing) = self.files.iter().find(|path| !path.is_file()) {
            return refuse(&unknown(missing));
        }
        if serve.is_default() {
            let running = state_folder().map_or(Ok(None), |state| Announcement::newest(&state));
            // No reason not to open the files.
            let running = running.inspect_err(|sentence| message::note(sentence)).ok().flatten();
            // Neither is a server that can't open files.
            if let Some(address) = running.and_then(|server| self.show_at(&server).ok()) {
                let printed = print(|out| writeln!(out, "Opened at {address}"));
                self.browse(&address);
                return printed;
            }
        }
        let no_browser = self.no_browser;
        serve.run_showing(&self.files, move |address| {
            if !no_browser {
                browser::open(address);
            }
        })
    }

    /// Asks a server to show the files. Returns the address that opens them.
    fn show_at(&self, server: &Announcement) -> Result<String, String> {
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

    fn browse(&self, address: &str) {
        if !self.no_browser {
            browser::open(address);
        }
    }
}

/// Returns the sentence for an argument that is neither a command nor a file.
fn unknown(path: &Path) -> String {
    let shown = path.display();
    if path.is_dir() {
        return format!("{shown} is a folder. Name the files in it.");
    }
    let is_word = path.extension().is_none() && path.components().count() == 1;
    if !is_word {
        return format!("{shown}: there is no such file.");
    }
    let program = super::Arguments::command();
    let meant = did_you_mean(&shown.to_string(), program.get_subcommands().map(clap::Command::get_name));
    format!("{shown} is neither a command nor a file.{meant} vramscope --help lists the commands.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_told() {
        assert_eq!(
            unknown(Path::new("repotr")),
            "repotr is neither a command nor a file. Did you mean report? vramscope --help lists the commands."
        );
        assert_eq!(unknown(Path::new("a/job.pickle")), "a/job.pickle: there is no such file.");
    }
}
