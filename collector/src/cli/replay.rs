//! `vramscope replay`: runs a script of allocator operations on a simulated device, as a PyTorch release would.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use trace::units::Bytes;

use super::progress::Progress;
use super::read::{self, name_of, short_name_of};
use super::{print, refuse, setting};
use crate::script::{Script, execute};

/// The options of `replay`.
#[derive(Args, Debug)]
pub(super) struct Replay {
    /// Script in JSON; plain, .gz or .zst; `-` reads standard input
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
    /// PyTorch release to follow: 2.4 to 2.15
    #[arg(long, value_name = "VERSION", default_value = "2.11")]
    torch: String,
}

/// The longest script, in bytes of JSON: about ten million operations.
const SCRIPT_BYTES: usize = 1 << 30;

impl Replay {
    /// Runs the script and prints its results.
    pub(super) fn run(self) -> ExitCode {
        let profile = match setting::profile(&self.torch) {
            Ok(profile) => profile,
            Err(sentence) => return refuse(&sentence),
        };
        let progress = Progress::new(format!("Replaying {}", short_name_of(&self.script)));
        let output = read::bytes(&self.script, SCRIPT_BYTES)
            .map_err(|error| format!("the script can't be read. {error}"))
            .and_then(|text| match text.len() > SCRIPT_BYTES {
                true => Err(format!("the script has more than {}. Split it.", Bytes(SCRIPT_BYTES as u64))),
                false => Ok(text),
            })
            .and_then(|text| Script::parse(&text).map_err(|error| error.to_string()))
            .and_then(|script| execute(script, profile).map_err(|error| error.to_string()));
        drop(progress);
        let output = match output {
            Ok(output) => output,
            Err(sentence) => return refuse(&format!("{}: {}.", name_of(&self.script), sentence.trim_end_matches('.'))),
        };
        print(|out| {
            serde_json::to_writer(&mut *out, &output)?;
            writeln!(out)
        })
    }
}
