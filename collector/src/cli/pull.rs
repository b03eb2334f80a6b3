//! `vramscope pull`: fetches a trace that somebody shared by a link.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use format::EXTENSION;
use trace::units::Bytes;

use super::destination::read_password;
use super::output::{Overwrite, next_step};
use super::progress::Progress;
use super::push::{ServerOptions, wait};
use super::read::name_of;
use super::{one_line, refuse, show};
use crate::file_name::file_name;
use crate::remote::LinkAddress;

/// The options of `pull`.
#[derive(Args, Debug)]
pub(super) struct Pull {
    /// The link
    #[arg(value_name = "LINK")]
    link: String,
    /// Recording to write [default: the link's name in the current folder]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// File with the link's password; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    server: ServerOptions,
}

impl Pull {
    /// Fetches the trace, and prints the name of its file and the next step.
    pub(super) fn run(self) -> ExitCode {
        match self.pull() {
            Ok(text) => show(&text),
            Err(sentence) => refuse(&sentence),
        }
    }

    fn pull(&self) -> Result<String, String> {
        let LinkAddress { server, token } = LinkAddress::parse(&self.link)?;
        let remote = self.server.remote("LINK", &server)?;
        let password = self.password_file.as_deref().map(read_password).transpose()?;
        wait(async {
            let (linked, key) = remote
                .look(&token, password.as_deref())
                .await?
                .ok_or("This link has a password. Name a file that holds it with --password-file.")?;
            let out = match &self.out {
                Some(out) => out.clone(),
                None => PathBuf::from(format!("{}.{EXTENSION}", file_name(&linked.name, "trace"))),
            };
            self.overwrite.check(&out)?;
            let progress = Progress::new("Fetching the trace");
            let mut report = |done, all| progress.bytes("Fetched", done, all);
            let bytes = remote.pull(&token, (&linked, key.as_deref()), &mut report).await?;
            self.overwrite.write(&out, |file| file.write_all(&bytes))?;
            let name = one_line(&linked.name);
            let next = next_step("doctor", &out);
            Ok(format!("Wrote {}: {} of \"{name}\".\n{next}", name_of(&out), Bytes(linked.bytes)))
        })
    }
}
