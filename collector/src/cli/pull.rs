//! `vramscope pull`: fetches a trace that somebody shared by a link.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use shared::format::EXTENSION;
use shared::units::Bytes;

use super::destination::read_password;
use super::push::{ServerOptions, report, wait};
use super::redaction::write_whole;
use super::{one_line, print, refuse};
use crate::file_name::file_name;
use crate::remote::LinkAddress;

/// The options of `pull`.
#[derive(Args, Debug)]
pub(super) struct Pull {
    /// The link
    #[arg(value_name = "LINK")]
    link: String,
    /// Recording to write [default: the link's name in the current folder; an existing file is kept]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// File with the link's password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOptions,
}

impl Pull {
    /// Fetches the trace, and prints the name of its file.
    pub(super) fn run(self) -> ExitCode {
        match self.pull() {
            Ok(line) => print(|out| writeln!(out, "{line}")),
            Err(sentence) => refuse(&sentence),
        }
    }

    fn pull(&self) -> Result<String, String> {
        let LinkAddress { server, token } = LinkAddress::parse(&self.link)?;
        let remote = self.server.remote("LINK", &server)?;
        let password = self.password_file.as_deref().map(read_password).transpose()?;
        wait(async {
            let (linked, key) = remote.look(&token, password.as_deref()).await?;
            let out = match &self.out {
                Some(out) => out.clone(),
                None => {
                    let out = PathBuf::from(format!("{}.{EXTENSION}", file_name(&linked.name, "trace")));
                    if out.exists() {
                        return Err(format!("{} exists already. Name another file with --out.", out.display()));
                    }
                    out
                }
            };
            let bytes = remote.pull(&token, (&linked, key.as_deref()), &mut report("Fetched")).await?;
            write_whole(&out, |file| file.write_all(&bytes))
                .map_err(|error| format!("{} can't be written: {error}.", out.display()))?;
            let name = one_line(&linked.name);
            Ok(format!("Wrote {}: {} of \"{name}\".", out.display(), Bytes(linked.bytes)))
        })
    }
}
