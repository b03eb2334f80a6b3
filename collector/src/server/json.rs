//! Sessions and their statistics as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use trace::event::Action;
use trace::limits::ServerLimits;
use utoipa::ToSchema;
use wire::SessionState;

use super::timestamp::rfc_3339;
use crate::ingest::{Session, View};
use crate::store::{DeviceTotals, SegmentStore};

/// A recorded job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionJson {
    /// The session's id: 26 characters of a-z and 2-7.
    #[schema(example = "abcdefghijklmnopqrstuvwxyz")]
    id: String,
    #[schema(example = "train.py")]
    name: String,
    /// The job that several ranks belong to.
    job: String,
    #[schema(inline)]
    state: StateJson,
    /// How the collector gets its events.
    #[schema(example = "every event")]
    mode: String,
    host: String,
    #[schema(required)]
    rank: Option<u32>,
    /// The number of the process on its host, if it is known.
    #[schema(required)]
    pid: Option<u32>,
    devices: Vec<DeviceJson>,
    /// When the job started, in RFC 3339, UTC.
    #[schema(example = "2026-11-21T18:00:00Z")]
    started: String,
    /// When the job started, by its clock.
    started_us: i64,
    /// When the last batch arrived, by the server's clock.
    last_us: i64,
    /// When the session ended, if it has.
    #[schema(required)]
    ended_us: Option<i64>,
    /// Events that arrived.
    events: u64,
    /// Events that the collector lost.
    lost: u64,
    /// Bytes in the store.
    bytes: u64,
    /// Over the last seconds; 0 unless live.
    events_per_second: f64,
    /// Viewers that are connected.
    viewers: usize,
    /// The version of PyTorch.
    torch: String,
    /// The time from which on events are kept.
    kept_from_us: i64,
    /// Out-of-memory events.
    oom: u64,
    /// Bytes that were stored and can't be read any more. The notes say why.
    damaged_bytes: u64,
    /// When the session will be deleted for its age, if that was announced, in microseconds since the epoch.
    #[schema(required)]
    delete_us: Option<i64>,
    /// Whether retention keeps the session, whatever its age.
    pinned: bool,
    /// What a person should know about the session.
    notes: Vec<String>,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum StateJson {
    /// Its collector is connected, or may come back.
    Live,
    /// Its collector ended it.
    Ended,
    /// Its collector disappeared.
    Lost,
}

impl From<SessionState> for StateJson {
    fn from(state: SessionState) -> Self {
        match state {
            SessionState::Live => Self::Live,
            SessionState::Ended => Self::Ended,
            SessionState::Lost => Self::Lost,
        }
    }
}

/// A device of a session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Device)]
struct DeviceJson {
    number: i64,
    name: String,
    /// The device's memory; 0 if unknown.
    capacity: u64,
    /// Allocated bytes, as last known.
    allocated: u64,
    /// Active bytes, as last known.
    active: u64,
    /// Reserved bytes, as last known.
    reserved: u64,
}

/// The memory of a session over time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stats)]
pub(super) struct StatsJson {
    id: String,
    #[schema(inline)]
    state: StateJson,
    devices: Vec<DeviceStatsJson>,
}

/// The memory of one device over time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeviceStats)]
struct DeviceStatsJson {
    number: i64,
    /// Each point: the start of its time span, in microseconds since the epoch; then the most bytes allocated, active and
    /// reserved in it.
    #[schema(value_type = Vec<[i64; 4]>)]
    points: Vec<(i64, u64, u64, u64)>,
    events: u64,
    lost: u64,
    /// Lost events by action, where it is known.
    lost_by_action: BTreeMap<&'static str, u64>,
    /// The most reserved bytes after any event; the other peaks likewise.
    peak_reserved: u64,
    peak_active: u64,
    peak_allocated: u64,
    /// The most bytes requested by active allocations, as far as events tell; statistics don't include it.
    peak_requested: u64,
    /// Whether every event arrived and none contradicted another. Otherwise peaks and points are the most that was seen.
    peaks_are_exact: bool,
}

/// Returns a session as it is now.
pub(super) fn session(session: &Session, limits: &ServerLimits) -> SessionJson {
    let state = session.state(limits);
    let (viewers, pinned) = (session.viewer_count(), session.is_known_pinned());
    session.look(|view| {
        let View { record, totals, .. } = view;
        let kept = view.segments.first().filter(|_| record.is_shortened).map(|segment| segment.from_us);
        SessionJson {
            id: record.id.clone(),
            name: record.name.clone(),
            job: record.job.clone(),
            state: state.into(),
            mode: record.mode.clone(),
            host: record.host.clone(),
            rank: record.rank,
            pid: record.pid,
            devices: devices(view),
            started: rfc_3339(record.started_us),
            started_us: record.started_us,
            last_us: record.last_us,
            ended_us: record.ended_us.or_else(|| view.has_end.then_some(record.last_us)),
            events: totals.events(),
            lost: totals.lost(),
            bytes: view.bytes(),
            events_per_second: if state == SessionState::Live { view.rate() } else { 0.0 },
            viewers,
            torch: record.torch.clone(),
            kept_from_us: kept.unwrap_or(record.started_us),
            oom: totals.ooms(),
            damaged_bytes: record.damaged_bytes,
            delete_us: view.delete_us,
            pinned,
            notes: record.notes.clone(),
        }
    })
}

/// Returns the devices that the header names, then those that only appear in events. Of several devices that the header
/// names, those that the job has not used are left out once it has used one.
fn devices(view: &View) -> Vec<DeviceJson> {
    let View { record, totals, .. } = view;
    let now = |number| totals.devices.iter().find(|device| device.number == number).map_or([0; 3], |device| device.now);
    let is_used = |number| totals.devices.is_empty() || totals.devices.iter().any(|device| device.number == number);
    let named = record.devices.iter().filter(|device| is_used(device.number));
    let named = named.map(|device| (device.number, device.name.clone(), device.capacity));
    let is_named = |device: &&DeviceTotals| record.devices.iter().any(|named| named.number == device.number);
    let others = totals.devices.iter().filter(|device| !is_named(device));
    named
        .chain(others.map(|device| (device.number, String::new(), 0)))
        .map(|(number, name, capacity)| {
            let [allocated, active, reserved] = now(number);
            DeviceJson { number, name, capacity, allocated, active, reserved }
        })
        .collect()
}

/// Returns the statistics of a session. Waits for the disk.
pub(super) fn stats(session: &Session, store: &Arc<SegmentStore>, limits: &ServerLimits) -> StatsJson {
    let state = session.state(limits).into();
    let devices = session.totals(store).devices.iter().map(device_stats).collect();
    StatsJson { id: session.id().to_owned(), state, devices }
}

fn device_stats(device: &DeviceTotals) -> DeviceStatsJson {
    let lost = Action::ALL.iter().zip(device.lost_by_action).filter(|(_, count)| *count > 0);
    let [peak_allocated, peak_active, peak_reserved] = device.peak;
    DeviceStatsJson {
        number: device.number,
        points: device.series.points.iter().map(|&(time_us, [a, b, c])| (time_us, a, b, c)).collect(),
        events: device.events,
        lost: device.lost,
        lost_by_action: lost.map(|(action, count)| (action.name(), count)).collect(),
        peak_reserved,
        peak_active,
        peak_allocated,
        peak_requested: device.peak_requested,
        peaks_are_exact: device.is_exact,
    }
}
