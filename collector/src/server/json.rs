//! What the API says of sessions, as JSON.

use serde::Serialize;
use shared::event::Action;
use shared::limits::ServerLimits;
use shared::wire::SessionState;

use super::timestamp::rfc_3339;
use crate::ingest::{Session, View};
use crate::store::DeviceTotals;

/// A session.
#[derive(Debug, Serialize)]
pub(super) struct SessionJson {
    id: String,
    name: String,
    job: String,
    state: &'static str,
    mode: String,
    host: String,
    rank: Option<u32>,
    devices: Vec<DeviceJson>,
    started: String,
    started_us: i64,
    last_us: i64,
    ended_us: Option<i64>,
    events: u64,
    lost: u64,
    bytes: u64,
    events_per_second: f64,
    viewers: usize,
    torch: String,
    kept_from_us: i64,
    oom: u64,
    notes: Vec<String>,
}

/// A device of a session.
#[derive(Debug, Serialize)]
struct DeviceJson {
    number: i64,
    name: String,
    capacity: u64,
    allocated: u64,
    active: u64,
    reserved: u64,
}

/// What a session's memory came to.
#[derive(Debug, Serialize)]
pub(super) struct StatsJson {
    id: String,
    state: &'static str,
    devices: Vec<DeviceStatsJson>,
}

#[derive(Debug, Serialize)]
struct DeviceStatsJson {
    number: i64,
    points: Vec<(i64, u64, u64, u64)>,
    events: u64,
    lost: u64,
    lost_by_action: serde_json::Map<String, serde_json::Value>,
    peak_reserved: u64,
    peak_active: u64,
    peak_allocated: u64,
    peak_requested: u64,
    peaks_are_exact: bool,
}

/// A session, as it is now.
pub(super) fn session(session: &Session, limits: &ServerLimits) -> SessionJson {
    let state = session.state(limits);
    let viewers = session.viewer_count();
    session.look(|view| {
        let View { record, totals, .. } = view;
        let kept = view.segments.first().filter(|_| record.is_shortened).map(|segment| segment.from_us);
        SessionJson {
            id: record.id.clone(),
            name: record.name.clone(),
            job: record.job.clone(),
            state: state.name(),
            mode: record.mode.clone(),
            host: record.host.clone(),
            rank: record.rank,
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
            notes: record.notes.clone(),
        }
    })
}

/// The devices that the header names, and those that only events have told of.
fn devices(view: &View) -> Vec<DeviceJson> {
    let View { record, totals, .. } = view;
    let now = |number| totals.devices.iter().find(|device| device.number == number).map_or([0; 3], |device| device.now);
    let named = record.devices.iter().map(|device| (device.number, device.name.clone(), device.capacity));
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

/// A session's course.
pub(super) fn stats(session: &Session, limits: &ServerLimits) -> StatsJson {
    let state = session.state(limits).name();
    let devices = session.look(|view| view.totals.devices.iter().map(device_stats).collect());
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
        lost_by_action: lost.map(|(action, count)| (action.name().to_owned(), count.into())).collect(),
        peak_reserved,
        peak_active,
        peak_allocated,
        peak_requested: device.peak_requested,
        peaks_are_exact: device.is_exact,
    }
}
