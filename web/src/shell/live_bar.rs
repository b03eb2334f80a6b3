//! The bar over a watched session: its status, its lag, what is loaded, and buttons to pause and to jump to the newest
//! events.

use query::Summary;
use trace::units::{Bytes, Count};
use wire::SessionState;
use yew::prelude::*;

use super::older::older_menu;
use crate::hooks::ModelHandle;
use crate::model::{Action, Live, count};
use crate::source;
use crate::views::controls::sends;
use crate::widgets::format::{counted, moment, span_text};
use crate::widgets::icon::{Symbol, icon};
use crate::worker::message::Connection;

/// A job that sent nothing for this long has no lag, as there is nothing newer.
const QUIET_US: i64 = 2_000_000;

/// Renders the bar; empty for a file.
pub fn live_bar(model: &ModelHandle) -> Html {
    let (Some(live), Some(summary)) = (model.live(), model.summary()) else { return Html::default() };
    let (symbol, word, class) = state_of(live);
    let status = &live.status;
    let said = status_text(live, &summary);
    let mut parts = Vec::new();
    if live.is_paused {
        let (here, waiting) = (status.held_back_events, status.waiting_events);
        let newer = counted(here + waiting, "new event");
        let words = if waiting > 0 { format!("more than {newer}") } else { newer };
        parts.push(part("live-since", "live-since", "", words));
    }
    if status.state == SessionState::Live && !live.is_paused {
        let is_sending = status.connection == Connection::Open && status.is_caught_up && status.quiet_us <= QUIET_US;
        let rate = Count(status.events_per_second.round() as u64);
        // Its place is kept while there is none.
        let words = if is_sending { format!("{rate} events/s") } else { String::new() };
        parts.push(part("live-rate", "live-rate", "", words));
    }
    if status.lost > 0 {
        parts.push(part("live-lost", "live-lost", LOST, format!("{} lost", counted(status.lost, "event"))));
    }
    if let Some((count, why)) = &status.missed {
        let words = format!("{} not loaded: {why}", counted(*count, "part"));
        parts.push(part("live-lost", "live-missed", why, words));
    }
    if !live.mode.is_empty() {
        parts.push(part("live-mode", "live-mode", "How events are recorded", live.mode.clone()));
    }
    parts.push(part("live-held", "live-held", &loaded_exactly(live, &summary), loaded(live, &summary)));
    html! {
        <section class="live-bar" aria-label="Job" data-testid="live-bar" data-state={word.to_ascii_lowercase()} data-following={live.is_following.to_string()}>
                <span class={classes!("live-state", class)} data-testid="live-state">
                    { icon(symbol) }
                    // While paused and at the end, the sentence beside it has the word.
                    <span class={said.contains(&word.to_ascii_lowercase()).then_some("visually-hidden")}>{ word }</span>
                </span>
                <span class="live-said" data-testid="live-said">{ said }</span>
                { for parts }
                { older_menu(model) }
                { buttons(model, live) }
            </section>
    }
}

/// Tooltip of lost events.
const LOST: &str = "These events never left the job. Hatched areas show where they are missing.";

/// Renders a part of the bar: class, test id, tooltip (if any) and text.
fn part(class: &'static str, test_id: &'static str, title: &str, words: String) -> Html {
    let title = (!title.is_empty()).then(|| title.to_owned());
    html! { <span {class} {title} data-testid={test_id}>{ words }</span> }
}

/// Returns the state as a symbol, a word, and the class of its colour.
pub(super) fn state_of(live: &Live) -> (Symbol, &'static str, &'static str) {
    match (live.status.state, &live.status.connection) {
        (SessionState::Ended, _) => (Symbol::Ended, "Ended", "is-ended"),
        (_, Connection::Retrying { .. } | Connection::Refused { .. }) => (Symbol::Lost, "Disconnected", "is-lost"),
        (SessionState::Lost, _) => (Symbol::Lost, "Disconnected", "is-lost"),
        (SessionState::Live, Connection::Open) if !live.status.is_caught_up && live.status.events > 0 => {
            (Symbol::Live, "Loading", "is-paused")
        }
        (SessionState::Live, _) if live.is_paused => (Symbol::Pause, "Paused", "is-paused"),
        (SessionState::Live, _) if !live.is_following => (Symbol::Pause, "Stopped", "is-paused"),
        (SessionState::Live, _) => (Symbol::Live, "Live", "is-live"),
    }
}

/// Describes the status in a few words.
fn status_text(live: &Live, summary: &Summary) -> String {
    let status = &live.status;
    match (&status.connection, status.state) {
        (Connection::Retrying { seconds }, _) => format!("Connection lost; retrying in {seconds} s"),
        (Connection::Refused { message, .. }, _) => message.clone(),
        (Connection::Connecting, SessionState::Live) => "Connecting".to_owned(),
        // The server has not yet sent the number of events.
        _ if !status.is_caught_up && status.events > 0 => {
            let came = Count(status.held_events + status.dropped_events).to_string();
            // Of a long session only the newest events are sent; their number is known once they have arrived.
            if status.is_late {
                format!("Loading the latest events: {came} so far")
            } else {
                format!("Loading {came} of {}", counted(status.events, "event"))
            }
        }
        (_, SessionState::Ended) if status.ran_out => "Job ended: out of memory".to_owned(),
        (_, SessionState::Ended) => "Job ended".to_owned(),
        // From outside, a process that was killed and a network that is down look the same.
        (_, SessionState::Lost) => format!(
            "No data from the job for {}: it was killed, or its connection is down. It continues here if it reconnects.",
            span_text(status.quiet_us)
        ),
        (_, SessionState::Live) if live.is_paused => format!("Paused at {}", paused_at(longest(summary))),
        (_, SessionState::Live) if live.oom.is_some() => {
            "The view stopped where memory ran out; the job continues".to_owned()
        }
        (_, SessionState::Live) if !live.is_following => {
            "The view stopped at an earlier moment; the job continues".to_owned()
        }
        (_, SessionState::Live) if live.sees_part() && status.quiet_us > QUIET_US => {
            format!("Statistics are live; events were read {} ago", span_text(status.quiet_us))
        }
        (_, SessionState::Live) if status.quiet_us > QUIET_US => {
            format!("Last event {} ago", span_text(status.quiet_us))
        }
        (_, SessionState::Live) => status.behind_us.map_or_else(String::new, |us| format!("{} behind", span_text(us))),
    }
}

/// Describes how much of the session is loaded: `6,124 events loaded`.
fn loaded(live: &Live, summary: &Summary) -> String {
    let which = live.latest(summary).unwrap_or_else(|| counted(count(summary), "event"));
    format!("{which} loaded")
}

/// Returns the microseconds from the first to the last event shown.
fn longest(summary: &Summary) -> i64 {
    summary.devices.iter().map(|device| device.span_us).max().unwrap_or(0)
}

/// Formats where a job was paused: as the time axis has it, to a second that is worth reading beside a picture.
fn paused_at(us: i64) -> String {
    let exact = moment(us as f64);
    match exact.split_once('.') {
        Some((whole, _)) if us >= 60_000_000 => whole.to_owned(),
        _ => span_text(us),
    }
}

fn loaded_exactly(live: &Live, summary: &Summary) -> String {
    let status = &live.status;
    format!(
        "{} over {}, {} of memory. Above {}, the page drops the older half; the server keeps it longer.",
        counted(status.held_events, "event"),
        span_text(longest(summary)),
        Bytes(status.held_bytes),
        counted(status.limit_events, "event"),
    )
}

fn buttons(model: &ModelHandle, live: &Live) -> Html {
    let (symbol, word, title) = if live.is_paused {
        (Symbol::Play, "Resume", "Resume at the newest events (Space)")
    } else {
        (Symbol::Pause, "Pause", "Freeze the picture (Space). No events are lost.")
    };
    let on_history = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| source::ask_history(&model))
    };
    html! {
        <span class="live-buttons">
            if live.sees_part() && live.status.state == SessionState::Live {
                { button(("live-history", BUTTON), Some(HISTORY), on_history, Html::default(), "Load full history") }
            }
            // There is nothing to pause of a job that sends nothing any more.
            if live.is_paused || (live.is_open() && live.status.state == SessionState::Live) {
                { button(("live-pause", BUTTON), Some(title), sends(model, Action::TogglePause), icon(symbol), word) }
            }
            if live.can_jump() && !live.is_paused {
                { button(("live-now", MAIN_BUTTON), Some(NOW), sends(model, Action::JumpToNow), icon(Symbol::ToEnd), "Jump to now") }
            }
        </span>
    }
}

/// Classes of a button, and of the primary button.
const BUTTON: &str = "toolbar-button live-button";
const MAIN_BUTTON: &str = "toolbar-button live-button is-primary";
/// Tooltips of the buttons.
const HISTORY: &str = "Ask the job for all events it has recorded. This takes a moment.";
const NOW: &str = "Show the newest events and follow them (End)";

/// Renders a button of the bar: test id and class, tooltip (if any), action, icon and label.
fn button(
    (test_id, class): (&'static str, &'static str),
    title: Option<&'static str>,
    onclick: Callback<MouseEvent>,
    shape: Html,
    word: &'static str,
) -> Html {
    html! { <button type="button" {class} {title} {onclick} data-testid={test_id}>{ shape }{ word }</button> }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::summary;
    use crate::worker::message::LiveStatus;

    #[test]
    fn a_pause_reads_as_on_the_axis() {
        assert_eq!(paused_at(9_949_999), "9.9 s");
        assert_eq!(paused_at(109_401_755), "1:49");
        assert_eq!(paused_at(3_723_000_001), "1:02:03");
    }

    #[test]
    fn each_status_has_its_text() {
        let status = |state, connection| LiveStatus {
            state,
            connection,
            is_caught_up: true,
            behind_us: Some(449_000),
            quiet_us: 100_000,
            ..LiveStatus::default()
        };
        let quiet = LiveStatus { quiet_us: 12_300_000, ..status(SessionState::Live, Connection::Open) };
        let behind =
            |status| LiveStatus { is_caught_up: false, events: 2_500, held_events: 600, dropped_events: 400, ..status };
        let loading = behind(status(SessionState::Ended, Connection::Done));
        let behind = behind(status(SessionState::Live, Connection::Open));
        let cases = [
            (status(SessionState::Live, Connection::Open), "Live", "0.4 s behind"),
            (status(SessionState::Live, Connection::Connecting), "Live", "Connecting"),
            (quiet, "Live", "Last event 12 s ago"),
            (behind.clone(), "Loading", "Loading 1,000 of 2,500 events"),
            (LiveStatus { is_late: true, ..behind }, "Loading", "Loading the latest events: 1,000 so far"),
            (loading, "Ended", "Loading 1,000 of 2,500 events"),
            (
                status(SessionState::Live, Connection::Retrying { seconds: 3 }),
                "Disconnected",
                "Connection lost; retrying in 3 s",
            ),
            (status(SessionState::Ended, Connection::Done), "Ended", "Job ended"),
            (
                status(SessionState::Lost, Connection::Open),
                "Disconnected",
                "No data from the job for 0.1 s: it was killed, or its connection is down. It continues here if it reconnects.",
            ),
            (
                LiveStatus { ran_out: true, ..status(SessionState::Ended, Connection::Done) },
                "Ended",
                "Job ended: out of memory",
            ),
        ];
        let open = status(SessionState::Live, Connection::Open);
        let failed = crate::worker::message::Failed { device: 0, position: 3, why: String::new() };
        for (oom, sentence) in [
            (Some(failed), "The view stopped where memory ran out; the job continues"),
            (None, "The view stopped at an earlier moment; the job continues"),
        ] {
            let mut live = Live { is_following: false, oom, ..Live::new("a".repeat(26)) };
            live.set_status(open.clone());
            assert_eq!((state_of(&live).1, status_text(&live, &summary(&[5])).as_str()), ("Stopped", sentence));
        }
        for (status, word, sentence) in cases {
            let mut live = Live::new("a".repeat(26));
            live.set_status(status);
            assert_eq!((state_of(&live).1, status_text(&live, &summary(&[5])).as_str()), (word, sentence));
        }
    }
}
