//! `vramscope plan`: which calls to checkpoint, what to offload and what to free earlier, so that a job needs less memory.
//!
//! Everything is proven on the trace: the requests of the job as planned go through the allocator that the trace was recorded under.

mod answer;

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use format::import::Imported;
use plan::{Goal, Plan as Planned, Survey, Trial};
use query::whatif::{Outcome, Why};
use replay::{Replay, Replayed};
use whatif::{AMPLE, Edit, Requests, Terms};

use self::answer::Answer;
use super::device::choose;
use super::message::TRIPPED;
use super::parallel;
use super::progress::Progress;
use super::read::{given, name_of, read, short_name_of};
use super::setting;
use super::subject::{Subject, card_or};
use super::{refuse, show_as};

/// What `--help` says about the exit status.
const STATUS: &str = "\
Exit status:
  0  The plan reaches the goal
  1  It falls short of it
  2  It can't be told: invalid arguments, or a file that can't be used";

/// The options of `plan`.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub(super) struct Plan {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope) of training steps; plain, .gz or .zst; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Memory to save at the peak, such as 12GiB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, conflicts_with = "fit")]
    save: Option<String>,
    /// Card or memory that the job should fit, such as A100-40GB (less 512 MiB for the CUDA context) or 40GiB
    #[arg(long, value_name = "CARD|SIZE", allow_hyphen_values = true)]
    fit: Option<String>,
    /// PyTorch release to follow [default: that of the trace where it tells, or the one that fits it best]
    #[arg(long, value_name = "VERSION")]
    torch: Option<String>,
    /// Device, by its number in the file [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
    /// Print also what each measure saves by itself
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

impl Plan {
    /// Prints the answer, or why there is none.
    pub(super) fn run(self) -> ExitCode {
        match self.answer() {
            Ok(answer) => {
                let text = match self.json {
                    true => serde_json::to_string_pretty(&answer).unwrap_or_default() + "\n",
                    false => answer.text(self.verbose),
                };
                let code = show_as(self.json, &text);
                match code == ExitCode::SUCCESS && !answer.is_reached() {
                    true => ExitCode::from(TRIPPED),
                    false => code,
                }
            }
            Err(sentence) => refuse(&format!("{}: {sentence}", name_of(&self.file))),
        }
    }

    fn answer(&self) -> Result<Answer, String> {
        // Wrong options are refused before a large file is read.
        let goal = self.goal()?;
        let told = self.torch.as_deref().map(setting::profile).transpose()?;
        let Imported { mut snapshot, header, .. } = read(&self.file)?;
        let index = choose(self.device, &snapshot.devices)?;
        let progress = Progress::new(format!("Repeating {} as it was recorded", short_name_of(&self.file)));
        let subject = Subject::of(&mut snapshot, index, &header.unwrap_or_default(), told)?;
        progress.show(|| "Looking for what could be freed".to_owned());
        let trace = snapshot.devices.get(index).ok_or("The file has no device.")?;
        let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
        let input = Replayed { trace, tags: &snapshot.tags, replay: &replay };
        let survey = Survey::of(input, &snapshot.symbols);
        let terms = subject.terms(&subject.conf)?;
        // The plan would have been followed before the recording began, too.
        let requests = subject.requests.without_cache_at_start();
        let mut tried = 0;
        let planned = plan::plan(&survey, goal, &mut |lists| {
            let show =
                |done: usize| progress.show(|| format!("Tried {} of {} plans", tried + done, tried + lists.len()));
            let trials = parallel::map(&lists, |edits| trial(&requests, edits, &terms, goal), show);
            tried += lists.len();
            Ok::<_, Infallible>(trials)
        });
        let Ok(planned): Result<Planned, Infallible> = planned;
        drop(progress);
        Ok(Answer::new(given(&self.file), &subject, planned, (survey.missing, survey.step_us)))
    }

    fn goal(&self) -> Result<Goal, String> {
        if let Some(text) = &self.save {
            return setting::capacity(text).map(Goal::Save).map_err(|error| format!("--save: {error}"));
        }
        let text = self.fit.as_deref().ok_or("Say what to reach: --save 12GiB, or --fit A100-40GB.")?;
        // What begins with a digit is meant as a size.
        match setting::capacity(text) {
            Ok(bytes) => Ok(Goal::Fit(bytes)),
            Err(error) if text.trim().starts_with(|first: char| !first.is_ascii_alphabetic()) => {
                Err(format!("--fit: {error}"))
            }
            Err(_) => card_or(text, "a size, such as 40GiB").map(|card| Goal::Fit(card.usable())),
        }
    }
}

/// Runs a job with some edits. What can't be run saves nothing.
fn trial(requests: &Requests, edits: &[Edit], terms: &Terms, goal: Goal) -> Trial {
    let edited = requests.edited(edits);
    let on = |capacity: u64| Terms { held_by_others: 0, fraction: None, ..terms.on(capacity) };
    let Ok((Outcome { peak_allocated: allocated, stopped_why, .. }, curve)) = edited.run_with_curve(&on(AMPLE)) else {
        return Trial { reserved: u64::MAX, allocated: u64::MAX, fits: false, ends_early: false };
    };
    // Without what was cached at the start.
    let reserved = curve.reserved.iter().copied().max().unwrap_or_default();
    let fits = match goal {
        Goal::Save(_) => false,
        Goal::Fit(room) => edited.run(&on(room)).is_ok_and(|outcome| !outcome.fails()),
    };
    Trial { reserved, allocated, fits, ends_early: stopped_why == Some(Why::Served) }
}
