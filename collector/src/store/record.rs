//! The record of a session: the metadata in its labels and in the catalogue.

use analysis::lod::Series;
use format::Header;
use serde::{Deserialize, Serialize};
use trace::event::Action;
use trace::limits::ServerLimits;
use trace::units::{Bytes, counted};

use super::{Found, Hash};

/// The metadata of a session. Each [label](super::Label) holds the record at its position; what follows is in the segment
/// after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// SHA-256 of the key, in hexadecimal digits.
    pub key_hash: String,
    /// How events are recorded, for people.
    pub mode: String,
    /// The recording's name.
    pub name: String,
    /// The job's name.
    pub job: String,
    /// The host name.
    pub host: String,
    /// The process's rank within the job.
    pub rank: Option<u32>,
    /// The number of the process on its host.
    pub pid: Option<u32>,
    /// The PyTorch release.
    pub torch: String,
    /// The devices.
    pub devices: Vec<RecordDevice>,
    /// When recording began, by the job's clock, in microseconds since the epoch.
    pub started_us: i64,
    /// When the session began, by the server's clock.
    pub created_us: i64,
    /// When the newest batch was received, by the server's clock, as far as this record knows.
    pub last_us: i64,
    /// When it ended, by the server's clock; `None` if it did not end, or not normally.
    pub ended_us: Option<i64>,
    /// The number of the last batch, for a session that has ended.
    pub last: u64,
    /// The segments that are kept, in order.
    pub segments: Vec<SegmentInfo>,
    /// The totals at the place of the label. In the catalogue they have no series.
    pub totals: SessionTotals,
    /// Whether older segments were deleted.
    pub is_shortened: bool,
    /// Bytes of its segments that were found damaged, or are missing.
    pub damaged_bytes: u64,
    /// Who recorded it, for the fair division of space: the name of a token, and the host.
    pub producer: String,
    /// When the newest batch was received, by the clock of retention.
    pub retention_us: i64,
    /// Notes that are shown with the session, in sentences.
    pub notes: Vec<String>,
}

/// A device, as the header describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordDevice {
    /// Its number.
    pub number: i64,
    /// Its model name.
    pub name: String,
    /// Its total memory in bytes; 0 if unknown.
    pub capacity: u64,
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentInfo {
    /// Its number in the store.
    pub number: u32,
    /// The number of its first batch.
    pub first: u64,
    /// The number of its last batch; 0 while it grows, or if it has none.
    pub last: u64,
    /// Bytes before that batch: the head, which makes it a recording by itself.
    pub head: u64,
    /// Its length in bytes, labels included.
    pub bytes: u64,
    /// Its hash in hexadecimal digits; empty while it grows.
    pub hash: String,
    /// The latest time of an event before it, in microseconds since the epoch. Nothing in it is older, unless a clock
    /// was set back.
    pub from_us: i64,
    /// The latest time of an event up to its end.
    pub to_us: i64,
    /// When it was begun, by the clock of retention.
    pub begun_us: i64,
    /// The number of the session's events before it.
    pub before: u64,
    /// Bytes that were damaged in the file that this one replaces.
    pub damaged_bytes: u64,
    /// Events that were in that file and can't be read any more, by device.
    pub missing: Vec<(i64, u64)>,
}

/// Totals of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionTotals {
    /// The totals of each device.
    pub devices: Vec<DeviceTotals>,
}

/// Totals of one device of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceTotals {
    /// Its number.
    pub number: i64,
    /// The number of events received.
    pub events: u64,
    /// The number of missing events.
    pub lost: u64,
    /// How many of the missing events were of each [`Action`], by its code, as far as known.
    pub lost_by_action: [u64; Action::ALL.len()],
    /// The number of failed requests.
    pub ooms: u64,
    /// The latest known bytes allocated, active and reserved.
    pub now: [u64; 3],
    /// The peak of each: after any event, in a written state, or in statistics newer than all events.
    pub peak: [u64; 3],
    /// The most bytes requested by active allocations, after any event.
    pub peak_requested: u64,
    /// Whether the peaks are exact: no event is missing, none contradicts another, and nothing is known from statistics
    /// alone. False for totals that were stored before this field existed.
    pub is_exact: bool,
    /// The latest time of an event, in microseconds since the epoch.
    pub last_us: Option<i64>,
    /// Allocated, active and reserved bytes over time.
    pub series: Series,
}

impl SegmentInfo {
    /// Returns it as a listing of the store has it.
    pub fn found(&self) -> Found {
        Found { number: self.number, bytes: self.bytes, hash: Hash::parse(&self.hash) }
    }
}

impl SessionTotals {
    /// Returns how many of these events are not among the readable ones, by device.
    pub fn missing_in(&self, readable: &Self) -> Vec<(i64, u64)> {
        let readable_of = |number| readable.devices.iter().find(|device| device.number == number);
        let missing = |device: &DeviceTotals| {
            let missing = device.events.saturating_sub(readable_of(device.number).map_or(0, |device| device.events));
            (device.number, missing)
        };
        self.devices.iter().map(missing).filter(|(_, missing)| *missing > 0).collect()
    }

    /// Counts events as lost that `before` counted and these totals don't. Returns how many there are.
    fn recall(&mut self, before: &Self) -> u64 {
        let mut missing = 0;
        for known in &before.devices {
            let all = known.events + known.lost;
            match self.devices.iter_mut().find(|device| device.number == known.number) {
                Some(device) if device.events + device.lost < all => {
                    missing += all - device.events - device.lost;
                    let (events, lost) = (device.events, all - device.events);
                    *device = DeviceTotals { events, lost, is_exact: false, ..known.clone() };
                }
                Some(_) => {}
                None => {
                    missing += known.events;
                    self.devices.push(DeviceTotals { events: 0, lost: all, is_exact: false, ..known.clone() });
                }
            }
        }
        missing
    }

    /// Counts events as lost that were received and can't be read any more.
    pub fn lose(&mut self, missing: &[(i64, u64)]) {
        for (number, missing) in missing {
            if let Some(device) = self.devices.iter_mut().find(|device| device.number == *number) {
                device.events = device.events.saturating_sub(*missing);
                device.lost = device.lost.saturating_add(*missing);
                device.is_exact = false;
            }
        }
    }
}

impl Record {
    /// Notes what of the session is missing, given what was known of it before: segments after the last one that is there, and
    /// the end of segments that became shorter. `first` is the number of the first segment that retention has kept.
    pub fn miss(&mut self, before: &Self, first: u32) {
        let found = self.segments.last().map_or(0, |segment| segment.number);
        let behind = |segment: &&SegmentInfo| segment.number > found && segment.number >= first;
        let behind = before.segments.iter().filter(behind).map(|segment| segment.bytes);
        let cut = self.segments.iter().filter_map(|segment| {
            let is_same = |whole: &&SegmentInfo| (whole.number, &whole.hash) == (segment.number, &segment.hash);
            Some(before.segments.iter().find(is_same)?.bytes.saturating_sub(segment.bytes))
        });
        let bytes = behind.chain(cut).sum::<u64>();
        let events = self.totals.recall(&before.totals);
        if self.segments.is_empty() {
            let (totals, damaged_bytes) = (std::mem::take(&mut self.totals), self.damaged_bytes);
            *self = Self { totals, damaged_bytes, segments: Vec::new(), ..before.clone() };
        } else if bytes == 0 && events == 0 {
            return;
        } else {
            let is_new = |note: &&String| !self.notes.contains(note);
            let known: Vec<_> = before.notes.iter().filter(is_new).cloned().collect();
            self.notes.splice(..0, known);
            self.ended_us = self.ended_us.or(before.ended_us);
        }
        self.damaged_bytes = (self.damaged_bytes + bytes).max(before.damaged_bytes);
        if bytes > 0 {
            self.notes.push(format!(
                "{} at the end of this recording are missing from the store, and with them {}.",
                Bytes(bytes).exact(),
                counted(events, "event")
            ));
        }
    }

    /// Copies the fields of a header; lists and texts are cut to what a server keeps in memory.
    pub fn describe(&mut self, header: &Header, limits: &ServerLimits) {
        let cut = |text: &str| text.chars().take(limits.text_chars).collect::<String>();
        self.name = cut(&header.name);
        self.job = cut(&header.job);
        self.host = cut(&header.host);
        self.torch = cut(&header.torch);
        (self.rank, self.pid, self.started_us) = (header.rank, header.pid, header.started_us);
        let device = |device: &format::Device| RecordDevice {
            number: device.number,
            name: cut(&device.name),
            capacity: device.capacity,
        };
        self.devices = header.devices.iter().take(limits.devices).map(device).collect();
    }

    /// Returns it without the series of its totals, which take most of its memory.
    #[must_use]
    pub fn without_series(mut self) -> Self {
        for device in &mut self.totals.devices {
            device.series = Series::default();
        }
        self
    }
}

impl SessionTotals {
    /// Returns the events of all devices.
    pub fn events(&self) -> u64 {
        self.devices.iter().map(|device| device.events).fold(0, u64::saturating_add)
    }

    /// Returns the missing events of all devices.
    pub fn lost(&self) -> u64 {
        self.devices.iter().map(|device| device.lost).fold(0, u64::saturating_add)
    }

    /// Returns the failed requests on all devices.
    pub fn ooms(&self) -> u64 {
        self.devices.iter().map(|device| device.ooms).fold(0, u64::saturating_add)
    }

    /// Returns the latest time of an event.
    pub fn last_us(&self) -> Option<i64> {
        self.devices.iter().filter_map(|device| device.last_us).max()
    }

    /// Returns the totals of a device, created if necessary.
    pub fn device(&mut self, number: i64) -> &mut DeviceTotals {
        let at = self.devices.iter().position(|device| device.number == number).unwrap_or_else(|| {
            self.devices.push(DeviceTotals { number, is_exact: true, ..DeviceTotals::default() });
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }
}
