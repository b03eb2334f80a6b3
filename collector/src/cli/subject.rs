//! The run that `whatif` and `tune` repeat: one device of a file, its requests, and what it was recorded under.

use std::path::PathBuf;

use allocator::{DriverError, Profile};
use clap::Args;
use format::Header;
use format::import::Imported;
use query::whatif::Outcome;
use replay::Replay;
use trace::Snapshot;
use whatif::{AMPLE, Baseline, Card, Requests, Terms};

use super::choice::Offered;
use super::device::choose;
use super::progress::Progress;
use super::read::{read, short_name_of};
use super::suggestion::did_you_mean;
use super::{conf, one_line, setting};

/// The options that say which run, on which device, in which release.
#[derive(Args, Debug)]
pub(super) struct SubjectOptions {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope); plain, .gz or .zst; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Memory of the device, such as 80GiB [default: what the process could have, where a failed request or the recording tells,
    /// or more than any device has]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    capacity: Option<String>,
    /// Device to run on, by name, such as H100-80GB, less 512 MiB for the CUDA context
    #[arg(long, value_name = "NAME", conflicts_with = "capacity", value_parser = Offered::cards(), hide_possible_values = true)]
    card: Option<String>,
    /// Share of the device's memory that the process may take, as by set_per_process_memory_fraction
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    fraction: Option<String>,
    /// Memory of the device that others hold, such as 2GiB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    others: Option<String>,
    /// PyTorch release to follow [default: that of the trace where it tells, or the one that fits it best]
    #[arg(long, value_name = "VERSION")]
    torch: Option<String>,
    /// Device, by its number in the file [default: the first one with events]
    #[arg(long, value_name = "N")]
    device: Option<i64>,
}

/// The file that a run was read from.
pub(super) struct Source {
    pub(super) snapshot: Snapshot,
    pub(super) header: Option<Header>,
    /// The index of the run's device.
    pub(super) index: usize,
}

/// A run that can be repeated.
pub(super) struct Subject {
    /// The device's number in the file.
    pub(super) device: i64,
    pub(super) requests: Requests,
    pub(super) baseline: Baseline,
    /// The recorded settings.
    pub(super) conf: String,
    /// The memory of the device; `None` if nothing limits it.
    pub(super) capacity: Option<u64>,
    /// Whether only the trace tells it: what the process could have when memory ran short. The device may have more.
    pub(super) is_capacity_inferred: bool,
    held_by_others: u64,
    pub(super) fraction: Option<f64>,
}

impl SubjectOptions {
    /// Reads the file, and checks how far its run comes out as recorded. Returns the run, and the file that it is of.
    pub(super) fn subject(&self) -> Result<(Subject, Source), String> {
        // Wrong options are refused before a large file is read.
        let told = self.torch.as_deref().map(setting::profile).transpose()?;
        let capacity = self.capacity()?;
        let fraction = self.fraction.as_deref().map(share).transpose()?;
        let held_by_others = self.others.as_deref().map(setting::capacity).transpose()?.unwrap_or_default();
        let Imported { mut snapshot, header, .. } = read(&self.file)?;
        let index = choose(self.device, &snapshot.devices)?;
        let progress = Progress::new(format!("Repeating {} as it was recorded", short_name_of(&self.file)));
        let subject = Subject::of(&mut snapshot, index, &header.clone().unwrap_or_default(), told)?;
        drop(progress);
        let is_capacity_inferred = subject.is_capacity_inferred && capacity.is_none();
        let capacity = capacity.or(subject.capacity);
        let subject = Subject { capacity, is_capacity_inferred, held_by_others, fraction, ..subject };
        Ok((subject, Source { snapshot, header, index }))
    }

    fn capacity(&self) -> Result<Option<u64>, String> {
        if let Some(text) = &self.capacity {
            return setting::capacity(text).map(Some);
        }
        self.card.as_deref().map(|name| card(name).map(Card::usable)).transpose()
    }
}

impl Subject {
    /// Reads the run of the device with an index, and checks how far it comes out as recorded: in a release, or in that which
    /// fits best if the header tells none.
    pub(super) fn of(
        snapshot: &mut Snapshot,
        index: usize,
        header: &Header,
        told: Option<&'static Profile>,
    ) -> Result<Self, String> {
        let Snapshot { devices, symbols, tags, settings, marks, .. } = snapshot;
        let trace = devices.get(index).ok_or("The file has no device.")?;
        let replay = Replay::build(trace, tags, settings);
        let requests = Requests::of(trace, (symbols, tags), &replay, settings);
        if requests.is_empty() {
            return Err(
                "The trace has no request for memory, so there is nothing to repeat. Record its history: call \
                        torch.cuda.memory._record_memory_history() before the model is made."
                    .to_owned(),
            );
        }
        let device = header.devices.iter().find(|known| known.number == trace.device);
        let whole = device.map(|known| known.capacity).filter(|bytes| *bytes > 0);
        let profiles = match (told, header.torch.as_str()) {
            (Some(profile), _) => vec![profile],
            (None, torch) if !torch.is_empty() => vec![setting::profile(torch)?],
            _ => Profile::candidates(settings, marks),
        };
        let baseline = requests.baseline(&profiles, &settings.conf).map_err(|error| error.to_string())?;
        let inferred = requests.capacity();
        let (capacity, is_capacity_inferred) = (inferred.or(whole), inferred.is_some());
        let (held_by_others, fraction) = (0, None);
        let conf = settings.conf.clone();
        Ok(Self {
            device: trace.device,
            requests,
            baseline,
            conf,
            capacity,
            is_capacity_inferred,
            held_by_others,
            fraction,
        })
    }

    /// Returns what the process can have of the device's memory; `None` if nothing limits it.
    pub(super) fn room(&self) -> Result<Option<u64>, String> {
        Ok(self.capacity.and(Some(self.terms(&self.conf)?.room())))
    }

    /// Returns what the run comes to under some settings.
    pub(super) fn run(&self, conf: &str) -> Result<Outcome, String> {
        self.requests.run(&self.terms(conf)?).map_err(|error| refused(&error))
    }

    /// Returns the least memory that the process must be able to have under some settings, in whole granules.
    pub(super) fn smallest_capacity(&self, conf: &str) -> Result<u64, String> {
        self.requests.smallest_capacity(&self.terms(conf)?).map_err(|error| refused(&error))
    }

    /// Returns the terms of a run under some settings.
    pub(super) fn terms(&self, conf: &str) -> Result<Terms, String> {
        let option = if conf == self.conf { "The recorded settings" } else { "--conf" };
        let config = conf::from_start(option, conf, self.baseline.profile)?;
        let capacity = self.capacity.unwrap_or(AMPLE);
        let (held_by_others, fraction) = (self.held_by_others, self.fraction);
        Ok(Terms { capacity, held_by_others, fraction, ..Terms::ample(self.baseline.profile, config) })
    }
}

fn refused(error: &DriverError) -> String {
    format!("The trace can't be repeated: {error}.")
}

/// Reads a share of the memory, up to the whole.
fn share(text: &str) -> Result<f64, String> {
    let share = text.trim().parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("--fraction {:?}: a share is more than 0 and at most 1, such as 0.9.", one_line(text)))
}

/// Returns the card of a name.
pub(super) fn card(name: &str) -> Result<&'static Card, String> {
    card_or(name, "--capacity")
}

/// Returns the card of a name. `other` is what can be given in its place.
pub(super) fn card_or(name: &str, other: &str) -> Result<&'static Card, String> {
    Card::named(name).ok_or_else(|| {
        let meant = Card::of_model(name);
        if !meant.is_empty() {
            return format!("{:?} may be {}. Name one of them.", one_line(name), meant.join(" or "));
        }
        let known: Vec<_> = whatif::CARDS.iter().map(|card| card.name).collect();
        let meant = did_you_mean(name, known.iter().copied());
        let known = if meant.is_empty() { format!(" Known: {}.", known.join(", ")) } else { String::new() };
        format!("There is no card {:?} in the list.{meant}{known} Or give {other}.", one_line(name))
    })
}
