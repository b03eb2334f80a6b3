//! Gauges of each live session's memory, for `/metrics`. `collector/alerts.yml` has rules that use them.

use std::fmt;

use prometheus_client::metrics::gauge::ConstGauge;
use trace::limits::ServerLimits;
use wire::SessionState;

use super::metrics_writer::{MetricsWriter, gauge};
use crate::ingest::{DeviceGaps, Session, Sessions};

/// The labels of a device's gauge.
type DeviceLabels = [(&'static str, String); 2];

/// A family of gauges: its name, its help and what it measures.
type Family = (&'static str, &'static str, fn(&DeviceGauges) -> Option<u64>);

/// The families of the devices, apart from that by pool.
const FAMILIES: [Family; 8] = [
    ("session_allocated_bytes", "Bytes in live tensors of a live session.", |device| Some(device.now[0])),
    ("session_active_bytes", "Bytes in live tensors, and in blocks that wait for a stream.", |device| {
        Some(device.now[1])
    }),
    ("session_reserved_bytes", "Bytes that the allocator took from the driver.", |device| Some(device.now[2])),
    ("session_inactive_split_bytes", "Cached bytes in segments that are partly in use.", |device| {
        device.gaps.map(|gaps| gaps.sums.inactive_split)
    }),
    ("session_cached_whole_bytes", "Cached bytes in segments that are not in use.", |device| {
        device.gaps.map(|gaps| gaps.sums.cached_whole)
    }),
    ("session_capacity_bytes", "The device's total memory in bytes.", |device| {
        Some(device.capacity).filter(|capacity| *capacity > 0)
    }),
    ("session_ooms", "Requests that failed because memory ran out.", |device| Some(device.ooms)),
    ("session_events_lost", "Events that the session's collector lost.", |device| Some(device.lost)),
];

/// The values of the gauges of one device.
struct DeviceGauges {
    labels: DeviceLabels,
    /// Allocated, active and reserved bytes.
    now: [u64; 3],
    capacity: u64,
    ooms: u64,
    lost: u64,
    gaps: Option<DeviceGaps>,
}

/// The values of all gauges.
#[derive(Default)]
pub(super) struct SessionGauges {
    infos: Vec<[(&'static str, String); 5]>,
    devices: Vec<DeviceGauges>,
    /// The number of devices beyond [`ServerLimits::gauge_devices`].
    left_out: usize,
}

impl SessionGauges {
    /// Reads the live sessions, the newest first. Waits for the disk.
    pub(super) fn of(sessions: &Sessions) -> Self {
        let limits = sessions.limits();
        let mut live = sessions.all();
        live.retain(|session| session.state(limits) == SessionState::Live);
        live.sort_by_key(|session| {
            (std::cmp::Reverse(session.look(|view| view.record.created_us)), session.id().to_owned())
        });
        let mut gauges = Self::default();
        for session in &live {
            gauges.add(session, limits);
        }
        gauges
    }

    fn add(&mut self, session: &Session, limits: &ServerLimits) {
        let count = session.look(|view| view.totals.devices.len());
        if self.devices.len().saturating_add(count) > limits.gauge_devices {
            self.left_out = self.left_out.saturating_add(count);
            return;
        }
        let gaps = session.gaps(limits);
        session.look(|view| {
            let cut = |text: &str| text.chars().take(limits.label_chars).collect::<String>();
            let (id, record) = (cut(session.id()), &view.record);
            self.infos.push([
                ("session", id.clone()),
                ("name", cut(&record.name)),
                ("job_name", cut(&record.job)),
                ("host", cut(&record.host)),
                ("rank", record.rank.map(|rank| rank.to_string()).unwrap_or_default()),
            ]);
            for totals in &view.totals.devices {
                let described = record.devices.iter().find(|device| device.number == totals.number);
                self.devices.push(DeviceGauges {
                    labels: [("session", id.clone()), ("device", totals.number.to_string())],
                    now: totals.now,
                    capacity: described.map_or(0, |device| device.capacity),
                    ooms: totals.ooms,
                    lost: totals.lost,
                    gaps: gaps.iter().find(|gaps| gaps.device == totals.number).copied(),
                });
            }
        });
    }

    /// Writes all gauges.
    pub(super) fn encode(&self, metrics: &mut MetricsWriter<'_>) -> fmt::Result {
        let infos = self.infos.iter().map(|labels| (&labels[..], ConstGauge::new(1_u64)));
        metrics.family("session_info", "What is known of a live session; always 1.", infos)?;
        for (name, help, of) in FAMILIES {
            let values = self.devices.iter().filter_map(|device| Some((&device.labels[..], gauge(of(device)?))));
            metrics.family(name, help, values)?;
        }
        let pools = self.devices.iter().filter_map(|device| device.gaps.map(|gaps| (&device.labels, gaps.sums)));
        let by_pool = pools.flat_map(|([session, device], sums)| {
            [("small", sums.largest_servable_small()), ("large", sums.largest_servable_large())]
                .map(|(pool, largest)| ([session.clone(), device.clone(), ("pool", pool.to_owned())], gauge(largest)))
        });
        let help = "The largest request that a pool can serve without a driver call.";
        metrics.family("session_largest_servable_bytes", help, by_pool)?;
        let help = "Devices of live sessions that have no gauges, because there are too many.";
        metrics.one("session_gauges_left_out", help, &ConstGauge::new(self.left_out as u64))
    }
}
