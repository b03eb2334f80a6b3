//! `vramscope whatif`: runs the requests of a trace under other allocator settings, or on another device.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shared::allocator::{AllocatorConfig, DriverError, Profile, TORCH_2_6, TORCH_2_11, TORCH_2_15};
use shared::import::Imported;
use shared::replay::Replay;
use shared::trace::Snapshot;
use shared::units::{Bytes, Count, counted};
use shared::whatif::{AMPLE, Outcome, Requests, SelfCheck, Terms, Why};

use super::device::choose;
use super::read::read;
use super::{one_line, print, refuse, setting};

/// The options of `whatif`.
#[derive(Args, Debug)]
pub(super) struct WhatIf {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope); plain, .gz or .zst
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Allocator settings to try, as in PYTORCH_CUDA_ALLOC_CONF; can be repeated
    #[arg(long, value_name = "SETTINGS")]
    conf: Vec<String>,
    /// Memory that the process can have, such as 80GiB [default: as in the trace where it tells, or more than any device has]
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// PyTorch release to follow [default: that of the trace where it tells, or the one that fits it best]
    #[arg(long, value_name = "VERSION")]
    torch: Option<String>,
    /// Device, by its number in the file [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// The printed result.
#[derive(Serialize)]
struct Printed {
    file: String,
    device: i64,
    selfcheck: SelfCheck,
    /// The first one has the settings of the recording.
    runs: Vec<Run>,
}

/// One run.
#[derive(Serialize)]
struct Run {
    conf: String,
    torch: &'static str,
    /// The memory that the process can have; `None` if it is not limited.
    capacity: Option<u64>,
    #[serde(flatten)]
    outcome: Outcome,
    smallest_capacity: u64,
}

impl WhatIf {
    /// Prints the answer, or why there is none.
    pub(super) fn run(self) -> ExitCode {
        match self.answer() {
            Ok(printed) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&printed).unwrap_or_default() + "\n",
                    false => text(&printed),
                };
                print(|out| out.write_all(text.as_bytes()))
            }
            Err(sentence) => refuse(&format!("{}: {sentence}", self.file.display())),
        }
    }

    fn answer(&self) -> Result<Printed, String> {
        let Imported { snapshot, header, .. } = read(&self.file)?;
        let Snapshot { mut devices, symbols, mut tags, settings, .. } = snapshot;
        let trace = devices.swap_remove(choose(self.device, &devices)?);
        let replay = Replay::build(&trace, &mut tags, &settings);
        let requests = Requests::of(&trace, (&symbols, &tags), &replay, &settings);
        if requests.is_empty() {
            return Err("the trace has no request for memory, so there is nothing to repeat.".to_owned());
        }
        let told = self.torch.clone().or(header.map(|header| header.torch).filter(|torch| !torch.is_empty()));
        let profiles = match told {
            Some(torch) => vec![setting::profile(&torch)?],
            // Of releases that fit equally well, the first one is taken.
            None => vec![&TORCH_2_11, &TORCH_2_15, &TORCH_2_6],
        };
        let (profile, selfcheck) = best(&requests, profiles, &settings.conf)?;
        let capacity = match &self.capacity {
            Some(text) => Some(setting::capacity(text)?),
            None => requests.capacity(),
        };
        let confs = std::iter::once(&settings.conf).chain(&self.conf);
        let runs = confs.map(|conf| run(&requests, profile, conf, capacity)).collect::<Result<_, String>>()?;
        Ok(Printed { file: self.file.display().to_string(), device: trace.device, selfcheck, runs })
    }
}

fn config(conf: &str, profile: &Profile) -> Result<AllocatorConfig, String> {
    AllocatorConfig::from_conf(conf, profile).map_err(|error| format!("the settings {:?}: {error}", one_line(conf)))
}

fn refused(error: &DriverError) -> String {
    format!("the trace can't be repeated: {error}.")
}

/// Returns the release under which most of the trace comes out as recorded.
fn best(
    requests: &Requests,
    profiles: Vec<&'static Profile>,
    conf: &str,
) -> Result<(&'static Profile, SelfCheck), String> {
    let mut best: Option<(&'static Profile, SelfCheck)> = None;
    let mut failed = String::new();
    for profile in profiles {
        let config = match config(conf, profile) {
            Ok(config) => config,
            Err(sentence) => {
                failed = sentence;
                continue;
            }
        };
        let check = requests.check(&Terms::ample(profile, config)).map_err(|error| refused(&error))?;
        if best.as_ref().is_none_or(|(_, known)| check.equal > known.equal) {
            best = Some((profile, check));
        }
    }
    best.ok_or(failed)
}

fn run(requests: &Requests, profile: &'static Profile, conf: &str, capacity: Option<u64>) -> Result<Run, String> {
    let terms = Terms::ample(profile, config(conf, profile)?).on(capacity.unwrap_or(AMPLE));
    let outcome = requests.run(&terms).map_err(|error| refused(&error))?;
    let smallest_capacity = requests.smallest_capacity(&terms).map_err(|error| refused(&error))?;
    Ok(Run { conf: conf.to_owned(), torch: profile.torch, capacity, outcome, smallest_capacity })
}

/// Returns the answer as text for people.
fn text(printed: &Printed) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_text(&mut out, printed);
    out
}

fn write_text(out: &mut String, Printed { device, selfcheck, runs, .. }: &Printed) -> std::fmt::Result {
    let SelfCheck { requests, equal, first_difference } = selfcheck;
    let all = counted(*requests, "request");
    writeln!(out, "Device {device}: {} of {all} got the recorded address under the recorded settings.", Count(*equal))?;
    if let Some(difference) = first_difference {
        writeln!(out, "The first difference is at event {}. {}.", Count(difference.event.into()), difference.why)?;
        writeln!(out, "Trust the numbers below only as far as that.")?;
    }
    for Run { conf, torch, capacity, outcome, smallest_capacity } in runs {
        let conf = if conf.is_empty() { "default settings".to_owned() } else { one_line(conf) };
        let on = capacity.map_or_else(|| "any device".to_owned(), |bytes| Bytes(bytes).to_string());
        writeln!(out, "\n{conf} (torch {torch}, {on})")?;
        writeln!(out, "  peak reserved      {}", Bytes(outcome.peak_reserved))?;
        writeln!(out, "  peak allocated     {}", Bytes(outcome.peak_allocated))?;
        writeln!(
            out,
            "  driver calls       {} allocate, {} free",
            Count(outcome.device_allocs),
            Count(outcome.device_frees)
        )?;
        writeln!(out, "  retries            {}", Count(outcome.retries))?;
        writeln!(out, "  smallest capacity  {}", Bytes(*smallest_capacity))?;
        if let (Some(event), Some(why)) = (outcome.stopped_at, outcome.stopped_why) {
            let what = match why {
                Why::Failed => "it runs out of memory",
                Why::Served => "it is served where the recording ran out of memory",
            };
            writeln!(out, "  at event {} {what}; what would follow can't be told", Count(event.into()))?;
        }
    }
    Ok(())
}
