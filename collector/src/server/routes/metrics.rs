//! `/metrics`: the server's metrics for Prometheus.

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use trace::event::Action;
use wire::SessionState;

use super::blocking;
use super::metrics_writer::{MetricsWriter, gauge};
use super::session_gauges::SessionGauges;
use crate::clock::now_us;
use crate::ingest::{Sessions, word};
use crate::server::App;
use crate::server::error::{ApiError, ErrorJson};

/// The prefix of every name.
const PREFIX: &str = "vramscope";
/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the server's metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    security(("token" = [])),
    responses(
        (status = 200, description = "OpenMetrics text, version 1.0.0.", content_type = "application/openmetrics-text", body = String),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
    )
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    // It waits for writers of sessions, which wait for the disk.
    let text = blocking(move || text(&app.sessions)).await?.map_err(ApiError::internal)?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

fn text(sessions: &Arc<Sessions>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(SessionMetrics(Arc::clone(sessions))));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Reads the counters of the sessions when Prometheus asks for them.
#[derive(Debug)]
struct SessionMetrics(Arc<Sessions>);

impl Collector for SessionMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (mut metrics, sums) = (MetricsWriter::new(encoder), Sums::of(&self.0));
        let counters = &self.0.counters;
        // OpenMetrics appends `_total` to the name of a counter.
        for (name, help, value) in [
            ("events", "Events stored.", counters.events.get()),
            ("ooms", "Requests of jobs that failed because memory ran out.", counters.ooms.get()),
            ("batches", "Batches stored.", counters.batches.get()),
            ("batches_repeated", "Batches received that were stored before.", counters.repeated.get()),
            ("bytes", "Bytes of chunks stored.", counters.bytes.get()),
            ("viewer_bytes", "Bytes sent to viewers.", counters.sent_bytes.get()),
            ("viewer_lags", "Times that a viewer was too slow for the bus.", counters.lagged.get()),
            ("viewer_skips", "Times that a viewer skipped batches.", counters.skipped.get()),
            ("viewers_dropped", "Viewers disconnected because they did not read.", counters.stuck.get()),
            ("fsync", "Times that batches were synced to disk.", counters.syncs.get()),
        ] {
            metrics.one(name, help, &ConstCounter::new(value))?;
        }
        let seconds = counters.sync_micros.get() as f64 / 1e6;
        metrics.one("fsync_seconds", "Seconds spent syncing batches to disk.", &ConstCounter::new(seconds))?;
        let refused =
            counters.refused().into_iter().map(|(code, count)| ([("code", word(code))], ConstCounter::new(count)));
        metrics.family("refused", "Collectors and viewers refused, by code.", refused)?;

        let full = u64::from(self.0.is_full());
        metrics.one("store_bytes", "Bytes of all log segments.", &gauge(self.0.store().usage()))?;
        metrics.one("store_full", "Whether the store refused the last write.", &ConstGauge::new(full))?;
        let uploads = self.0.store().uploads();
        for (name, help, value) in [
            ("uploads_waiting", "Complete segments that wait to be uploaded to the object store.", uploads.count),
            ("uploads_waiting_bytes", "Bytes of these segments.", uploads.bytes),
            ("uploads_oldest_seconds", "How long the first of these segments has waited.", uploads.oldest.as_secs()),
        ] {
            metrics.one(name, help, &gauge(value))?;
        }
        let states = [SessionState::Live, SessionState::Ended, SessionState::Lost];
        let by_state = states.map(|state| ([("state", state.name())], gauge(sums.states[state as usize])));
        metrics.family("sessions", "Sessions kept, by state.", by_state)?;
        metrics.one("viewers", "Viewers connected.", &ConstGauge::new(sums.viewers as u64))?;
        let lag = sums.behind_us as f64 / 1e6;
        let help = "Seconds since the last batch of the live session that is furthest behind.";
        metrics.one("ingest_lag_seconds", help, &ConstGauge::new(lag))?;
        // A gauge, because deleting a session takes its lost events away.
        let known = sums.lost_by_action.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let by_action = Action::ALL.iter().map(|action| action.name()).zip(sums.lost_by_action);
        let by_action = by_action.chain([("unknown", sums.lost.saturating_sub(known))]);
        let by_action = by_action.map(|(action, count)| ([("action", action)], gauge(count)));
        metrics.family("events_lost", "Events lost by collectors, of the sessions kept, by action.", by_action)?;
        SessionGauges::of(&self.0).encode(&mut metrics)
    }
}

/// Sums over all sessions.
#[derive(Default)]
struct Sums {
    states: [u64; 3],
    viewers: usize,
    lost: u64,
    lost_by_action: [u64; Action::ALL.len()],
    behind_us: i64,
}

impl Sums {
    fn of(sessions: &Sessions) -> Self {
        let (mut sums, now_us) = (Self::default(), now_us());
        for session in sessions.all() {
            let state = session.state(sessions.limits());
            sums.states[state as usize] += 1;
            sums.viewers += session.viewer_count();
            session.look(|view| {
                // A collector may claim any number of lost events.
                sums.lost = sums.lost.saturating_add(view.totals.lost());
                for device in &view.totals.devices {
                    sums.lost_by_action.iter_mut().zip(device.lost_by_action).for_each(|(sum, count)| {
                        *sum = sum.saturating_add(count);
                    });
                }
                if state == SessionState::Live {
                    sums.behind_us = now_us.saturating_sub(view.record.last_us).max(sums.behind_us);
                }
            });
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use trace::limits::ServerLimits;
    use wire::Code;

    use super::*;
    use crate::bus::LocalBus;
    use crate::ingest::Retention;
    use crate::store::SegmentStore;

    #[test]
    fn every_name_type_and_label_stays() {
        let (store, bus) = (Arc::new(SegmentStore::in_memory(1 << 20)), Arc::new(LocalBus::new(1)));
        let sessions =
            Sessions::open(store, bus, ServerLimits::default(), Retention::default(), Arc::default()).unwrap();
        sessions.counters.events.add(3);
        sessions.counters.refuse(Code::Token);
        insta::assert_snapshot!(text(&Arc::new(sessions)).unwrap(), @r#"
        # HELP vramscope_events Events stored.
        # TYPE vramscope_events counter
        vramscope_events_total 3
        # HELP vramscope_ooms Requests of jobs that failed because memory ran out.
        # TYPE vramscope_ooms counter
        vramscope_ooms_total 0
        # HELP vramscope_batches Batches stored.
        # TYPE vramscope_batches counter
        vramscope_batches_total 0
        # HELP vramscope_batches_repeated Batches received that were stored before.
        # TYPE vramscope_batches_repeated counter
        vramscope_batches_repeated_total 0
        # HELP vramscope_bytes Bytes of chunks stored.
        # TYPE vramscope_bytes counter
        vramscope_bytes_total 0
        # HELP vramscope_viewer_bytes Bytes sent to viewers.
        # TYPE vramscope_viewer_bytes counter
        vramscope_viewer_bytes_total 0
        # HELP vramscope_viewer_lags Times that a viewer was too slow for the bus.
        # TYPE vramscope_viewer_lags counter
        vramscope_viewer_lags_total 0
        # HELP vramscope_viewer_skips Times that a viewer skipped batches.
        # TYPE vramscope_viewer_skips counter
        vramscope_viewer_skips_total 0
        # HELP vramscope_viewers_dropped Viewers disconnected because they did not read.
        # TYPE vramscope_viewers_dropped counter
        vramscope_viewers_dropped_total 0
        # HELP vramscope_fsync Times that batches were synced to disk.
        # TYPE vramscope_fsync counter
        vramscope_fsync_total 0
        # HELP vramscope_fsync_seconds Seconds spent syncing batches to disk.
        # TYPE vramscope_fsync_seconds counter
        vramscope_fsync_seconds_total 0.0
        # HELP vramscope_refused Collectors and viewers refused, by code.
        # TYPE vramscope_refused counter
        vramscope_refused_total{code="token"} 1
        # HELP vramscope_store_bytes Bytes of all log segments.
        # TYPE vramscope_store_bytes gauge
        vramscope_store_bytes 0
        # HELP vramscope_store_full Whether the store refused the last write.
        # TYPE vramscope_store_full gauge
        vramscope_store_full 0
        # HELP vramscope_uploads_waiting Complete segments that wait to be uploaded to the object store.
        # TYPE vramscope_uploads_waiting gauge
        vramscope_uploads_waiting 0
        # HELP vramscope_uploads_waiting_bytes Bytes of these segments.
        # TYPE vramscope_uploads_waiting_bytes gauge
        vramscope_uploads_waiting_bytes 0
        # HELP vramscope_uploads_oldest_seconds How long the first of these segments has waited.
        # TYPE vramscope_uploads_oldest_seconds gauge
        vramscope_uploads_oldest_seconds 0
        # HELP vramscope_sessions Sessions kept, by state.
        # TYPE vramscope_sessions gauge
        vramscope_sessions{state="live"} 0
        vramscope_sessions{state="ended"} 0
        vramscope_sessions{state="lost"} 0
        # HELP vramscope_viewers Viewers connected.
        # TYPE vramscope_viewers gauge
        vramscope_viewers 0
        # HELP vramscope_ingest_lag_seconds Seconds since the last batch of the live session that is furthest behind.
        # TYPE vramscope_ingest_lag_seconds gauge
        vramscope_ingest_lag_seconds 0.0
        # HELP vramscope_events_lost Events lost by collectors, of the sessions kept, by action.
        # TYPE vramscope_events_lost gauge
        vramscope_events_lost{action="alloc"} 0
        vramscope_events_lost{action="free_requested"} 0
        vramscope_events_lost{action="free_completed"} 0
        vramscope_events_lost{action="segment_alloc"} 0
        vramscope_events_lost{action="segment_free"} 0
        vramscope_events_lost{action="segment_map"} 0
        vramscope_events_lost{action="segment_unmap"} 0
        vramscope_events_lost{action="oom"} 0
        vramscope_events_lost{action="snapshot"} 0
        vramscope_events_lost{action="user_defined"} 0
        vramscope_events_lost{action="annotate"} 0
        vramscope_events_lost{action="other"} 0
        vramscope_events_lost{action="unknown"} 0
        # HELP vramscope_session_info What is known of a live session; always 1.
        # TYPE vramscope_session_info gauge
        # HELP vramscope_session_allocated_bytes Bytes in live tensors of a live session.
        # TYPE vramscope_session_allocated_bytes gauge
        # HELP vramscope_session_active_bytes Bytes in live tensors, and in blocks that wait for a stream.
        # TYPE vramscope_session_active_bytes gauge
        # HELP vramscope_session_reserved_bytes Bytes that the allocator took from the driver.
        # TYPE vramscope_session_reserved_bytes gauge
        # HELP vramscope_session_inactive_split_bytes Cached bytes in segments that are partly in use.
        # TYPE vramscope_session_inactive_split_bytes gauge
        # HELP vramscope_session_cached_whole_bytes Cached bytes in segments that are not in use.
        # TYPE vramscope_session_cached_whole_bytes gauge
        # HELP vramscope_session_capacity_bytes The device's total memory in bytes.
        # TYPE vramscope_session_capacity_bytes gauge
        # HELP vramscope_session_ooms Requests that failed because memory ran out.
        # TYPE vramscope_session_ooms gauge
        # HELP vramscope_session_events_lost Events that the session's collector lost.
        # TYPE vramscope_session_events_lost gauge
        # HELP vramscope_session_largest_servable_bytes The largest request that a pool can serve without a driver call.
        # TYPE vramscope_session_largest_servable_bytes gauge
        # HELP vramscope_session_gauges_left_out Devices of live sessions that have no gauges, because there are too many.
        # TYPE vramscope_session_gauges_left_out gauge
        vramscope_session_gauges_left_out 0
        # EOF
        "#);
    }
}
