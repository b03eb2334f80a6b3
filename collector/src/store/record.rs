//! What is written about a session beside its segments.

use serde::{Deserialize, Serialize};
use shared::event::Action;
use shared::format::Header;
use shared::limits::ServerLimits;
use shared::lod::Series;

/// `session.json`. It is written when the session begins, when a segment is begun or dropped, and when it ends; what has
/// happened since the last segment began is in that segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Its name.
    pub id: String,
    /// SHA-256 of the key, in hexadecimal digits.
    pub key_hash: String,
    /// How events are had.
    pub mode: String,
    /// What the recording is called.
    pub name: String,
    /// The job.
    pub job: String,
    /// The machine.
    pub host: String,
    /// The process within the job.
    pub rank: Option<u32>,
    /// The release of PyTorch.
    pub torch: String,
    /// The devices.
    pub devices: Vec<RecordDevice>,
    /// When recording began, by the job's clock, in microseconds since the epoch.
    pub started_us: i64,
    /// When the server first heard of it, by its own clock.
    pub created_us: i64,
    /// When the newest batch came, by the server's clock, as far as this record knows.
    pub last_us: i64,
    /// When it ended, by the server's clock; `None` where it did not, or not as it should.
    pub ended_us: Option<i64>,
    /// The last batch of a session that has ended.
    pub last: u64,
    /// The segments that are kept, in order.
    pub segments: Vec<SegmentInfo>,
    /// Sums up to the start of the last segment; of a session that has ended, of all.
    pub totals: Totals,
    /// Whether older segments were dropped.
    pub is_shortened: bool,
    /// What else is to be said, in sentences.
    pub notes: Vec<String>,
}

/// A device, as the header has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordDevice {
    /// Its number.
    pub number: i64,
    /// Its model.
    pub name: String,
    /// Its memory in bytes; 0 when not known.
    pub capacity: u64,
}

/// A segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SegmentInfo {
    /// Its number in the store.
    pub number: u32,
    /// Its first batch.
    pub first: u64,
    /// Bytes before that: what makes it a recording by itself.
    pub head: u64,
    /// Its length in bytes; of the last one of a session that runs, that of its head.
    pub bytes: u64,
    /// The latest time of an event before it, in microseconds since the epoch: nothing in it is older, but for clocks
    /// that were set back.
    pub from_us: i64,
    /// The latest time of an event up to its end.
    pub to_us: i64,
    /// When it was begun, by the server's clock.
    pub begun_us: i64,
    /// Events of the session before it.
    pub before: u64,
}

/// Sums over a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Those of each device.
    pub devices: Vec<DeviceTotals>,
}

/// Sums over a device of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceTotals {
    /// Its number.
    pub number: i64,
    /// Events that came.
    pub events: u64,
    /// Events that are missing.
    pub lost: u64,
    /// How many of these were of each [`Action`], by its code, as far as that is known.
    pub lost_by_action: [u64; Action::ALL.len()],
    /// Requests that failed.
    pub ooms: u64,
    /// Bytes allocated, active and reserved, as last known.
    pub now: [u64; 3],
    /// The most of each: after any event, by a state, or by statistics that were newer than all events.
    pub peak: [u64; 3],
    /// The most bytes that were requested by active allocations, after any event.
    pub peak_requested: u64,
    /// Whether the peaks are exact so far: each event came and was looked at, none contradicted another, and nothing is
    /// known by statistics alone. False for what was summed up before this was known.
    pub is_exact: bool,
    /// The latest time of an event, in microseconds since the epoch.
    pub last_us: Option<i64>,
    /// Its course.
    pub series: Series,
}

impl Record {
    /// Takes over what a header says, and of its lists and texts no more than a server keeps in memory.
    pub fn describe(&mut self, header: &Header, limits: &ServerLimits) {
        let cut = |text: &str| text.chars().take(limits.text_chars).collect::<String>();
        self.name = cut(&header.name);
        self.job = cut(&header.job);
        self.host = cut(&header.host);
        self.torch = cut(&header.torch);
        (self.rank, self.started_us) = (header.rank, header.started_us);
        let device = |device: &shared::format::Device| RecordDevice {
            number: device.number,
            name: cut(&device.name),
            capacity: device.capacity,
        };
        self.devices = header.devices.iter().take(limits.devices).map(device).collect();
    }

    /// Bytes of its segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }
}

impl Totals {
    /// Events of all devices.
    pub fn events(&self) -> u64 {
        self.devices.iter().map(|device| device.events).fold(0, u64::saturating_add)
    }

    /// Events of all devices that are missing.
    pub fn lost(&self) -> u64 {
        self.devices.iter().map(|device| device.lost).fold(0, u64::saturating_add)
    }

    /// Requests that failed, on all devices.
    pub fn ooms(&self) -> u64 {
        self.devices.iter().map(|device| device.ooms).fold(0, u64::saturating_add)
    }

    /// The latest time of an event.
    pub fn last_us(&self) -> Option<i64> {
        self.devices.iter().filter_map(|device| device.last_us).max()
    }

    /// A device's sums; new ones where there are none.
    pub fn device(&mut self, number: i64) -> &mut DeviceTotals {
        let at = self.devices.iter().position(|device| device.number == number).unwrap_or_else(|| {
            self.devices.push(DeviceTotals { number, is_exact: true, ..DeviceTotals::default() });
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }
}
