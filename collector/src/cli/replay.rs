//! `vramscope replay`: runs a script of allocator operations on a simulated device, as a PyTorch release would.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use flate2::read::MultiGzDecoder;

use super::{print, refuse, setting};
use crate::script::{Script, execute};

/// The options of `replay`.
#[derive(Args, Debug)]
pub(super) struct Replay {
    /// Script in JSON, plain or .gz; `-` reads standard input
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
    /// PyTorch release to follow: 2.4 to 2.15
    #[arg(long, value_name = "VERSION", default_value = "2.11")]
    torch: String,
}

/// The longest script, in bytes of JSON: about ten million operations.
const SCRIPT_BYTES: u64 = 1 << 30;

impl Replay {
    fn name(&self) -> String {
        if self.script == Path::new("-") { "Standard input".to_owned() } else { self.script.display().to_string() }
    }

    /// Runs the script and prints its results.
    pub(super) fn run(self) -> ExitCode {
        let profile = match setting::profile(&self.torch) {
            Ok(profile) => profile,
            Err(sentence) => return refuse(&sentence),
        };
        let output = read(&self.script)
            .map_err(|error| format!("the script can't be read: {error}"))
            .and_then(|text| Script::parse(&text).map_err(|error| error.to_string()))
            .and_then(|script| execute(script, profile).map_err(|error| error.to_string()));
        let output = match output {
            Ok(output) => output,
            Err(sentence) => return refuse(&format!("{}: {}.", self.name(), sentence.trim_end_matches('.'))),
        };
        print(|out| {
            serde_json::to_writer(&mut *out, &output)?;
            writeln!(out)
        })
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(SCRIPT_BYTES).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(SCRIPT_BYTES).read_to_end(&mut bytes)?;
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        MultiGzDecoder::new(bytes.as_slice()).take(SCRIPT_BYTES).read_to_end(&mut plain)?;
        return Ok(plain);
    }
    Ok(bytes)
}
