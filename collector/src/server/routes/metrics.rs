//! `/metrics`: what Prometheus reads.

use std::fmt::Write;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use shared::event::Action;
use shared::wire::SessionState as Live;

use crate::ingest::{now_us, word};
use crate::server::App;
use crate::server::error::ErrorJson;

/// Returns the server's metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    security(("token" = [])),
    responses(
        (status = 200, description = "Text format 0.0.4.", content_type = "text/plain", body = String),
        (status = 401, description = "The token is missing or wrong.", body = ErrorJson),
    )
)]
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text(&app)).into_response()
}

fn text(app: &App) -> String {
    let mut text = Text::default();
    let counters = &app.sessions.counters;
    let plain = [
        ("events_total", "counter", "Events that were stored.", counters.events.get()),
        ("batches_total", "counter", "Batches that were stored.", counters.batches.get()),
        ("batches_repeated_total", "counter", "Batches that were there already.", counters.repeated.get()),
        ("bytes_total", "counter", "Bytes of chunks that were stored.", counters.bytes.get()),
        ("viewer_bytes_total", "counter", "Bytes sent to viewers.", counters.sent_bytes.get()),
        ("viewer_lags_total", "counter", "Times that a viewer was too slow for the bus.", counters.lagged.get()),
        ("viewer_skips_total", "counter", "Times that a viewer was set forward.", counters.skipped.get()),
        ("viewers_dropped_total", "counter", "Viewers that took nothing for too long.", counters.stuck.get()),
        ("fsync_total", "counter", "Times that batches were made durable.", counters.syncs.get()),
        ("store_bytes", "gauge", "Bytes of all segments.", app.sessions.store().usage()),
        ("store_full", "gauge", "Whether the store refused what came last.", app.sessions.is_full().into()),
    ];
    for (name, kind, help, value) in plain {
        text.head(name, kind, help);
        text.value(name, "", value);
    }
    text.head("fsync_seconds_total", "counter", "Seconds that making batches durable took.");
    text.value("fsync_seconds_total", "", counters.sync_micros.get() as f64 / 1e6);

    text.head("refused_total", "counter", "Collectors and viewers that were refused, by code.");
    for (code, count) in counters.refused() {
        text.value("refused_total", &format!("{{code=\"{}\"}}", word(code)), count);
    }
    sessions(app, &mut text);
    text.0
}

fn sessions(app: &App, text: &mut Text) {
    let (mut states, mut viewers, mut lost, mut behind_us) = ([0_u64; 3], 0, [0_u64; Action::ALL.len()], 0);
    let (mut lost_all, now_us) = (0_u64, now_us());
    for session in app.sessions.all() {
        let state = session.state(app.limits());
        states[state as usize] += 1;
        viewers += session.viewer_count();
        session.look(|view| {
            lost_all += view.totals.lost();
            for device in &view.totals.devices {
                lost.iter_mut().zip(device.lost_by_action).for_each(|(sum, count)| *sum += count);
            }
            if state == Live::Live {
                behind_us = now_us.saturating_sub(view.record.last_us).max(behind_us);
            }
        });
    }
    text.head("sessions", "gauge", "Sessions that are kept, by state.");
    for state in [Live::Live, Live::Ended, Live::Lost] {
        text.value("sessions", &format!("{{state=\"{}\"}}", state.name()), states[state as usize]);
    }
    text.head("viewers", "gauge", "Viewers that are connected.");
    text.value("viewers", "", viewers);
    // A gauge: sessions that are deleted take theirs along.
    text.head("events_lost", "gauge", "Events that collectors lost, of the sessions that are kept, by action.");
    let known: u64 = lost.iter().sum();
    for (action, count) in Action::ALL.iter().zip(lost) {
        text.value("events_lost", &format!("{{action=\"{}\"}}", action.name()), count);
    }
    text.value("events_lost", "{action=\"unknown\"}", lost_all.saturating_sub(known));
    text.head("ingest_lag_seconds", "gauge", "Since the newest batch of the live session that is furthest behind.");
    text.value("ingest_lag_seconds", "", behind_us as f64 / 1e6);
}

/// Prometheus' text format. Nothing in it comes from a client.
#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string can't fail.
        let _ = write!(self.0, "# HELP vramscope_{name} {help}\n# TYPE vramscope_{name} {kind}\n");
    }

    fn value(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "vramscope_{name}{labels} {value}");
    }
}
