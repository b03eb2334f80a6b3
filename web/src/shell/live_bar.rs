//! The line over a session that is watched: how it is, how far behind the picture is, what of it is held here, and the
//! hand on it: pause, and back to now.

use shared::units::{Bytes, Count};
use shared::wire::State;
use yew::prelude::*;

use super::older::older_menu;
use crate::model::{Action, Live, LiveOom, ModelHandle, Tab};
use crate::source;
use crate::views::controls::sends;
use crate::widgets::format::{counted, span_text};
use crate::widgets::icon::{Symbol, icon};
use crate::worker::message::Connection;

/// A job that has been silent for so long has no lag: there is nothing newer.
const QUIET_US: i64 = 2_000_000;

/// The line; nothing over a file.
pub fn live_bar(model: &ModelHandle) -> Html {
    let (Some(live), Some(summary)) = (model.live(), model.summary()) else { return Html::default() };
    let (symbol, word, class) = state_of(live);
    let status = &live.status;
    let since = live.held_back_events(&summary);
    html! {
        <>
            <section class="live-bar" aria-label="Session" data-testid="live-bar" data-state={word} data-following={live.is_following.to_string()}>
                <span class={classes!("live-state", class)} data-testid="live-state">{ icon(symbol) }{ word }</span>
                <span class="live-said" role="status" data-testid="live-said">{ said(live) }</span>
                if live.is_paused {
                    <span class="live-since" data-testid="live-since">{ [&counted(since, "event"), " since"].concat() }</span>
                }
                if status.state == State::Live && !live.is_paused {
                    <span class="live-rate" data-testid="live-rate">{ [&Count(status.events_per_second.round() as u64).to_string(), " events/s"].concat() }</span>
                }
                if status.lost > 0 {
                    <span class="live-lost" data-testid="live-lost" title="They did not get out of the job. Where they are missing, the pictures are hatched.">
                        { [&counted(status.lost, "event"), " lost"].concat() }
                    </span>
                }
                if let Some((count, why)) = &status.missed {
                    <span class="live-lost" data-testid="live-missed" title={why.clone()}>{ [&counted(*count, "part"), " of it not here: ", why].concat() }</span>
                }
                if !live.mode.is_empty() {
                    <span class="live-mode" title="How the events are had" data-testid="live-mode">{ live.mode.clone() }</span>
                }
                <span class="live-held" title={held_exactly(live)} data-testid="live-held">{ held(live, &summary) }</span>
                { older_menu(model) }
                { buttons(model, live) }
            </section>
            if let Some(oom) = live.oom {
                { oom_bar(model, oom) }
            }
        </>
    }
}

/// The state as a shape, a word, and the class of its colour.
fn state_of(live: &Live) -> (Symbol, &'static str, &'static str) {
    match (live.status.state, &live.status.connection) {
        (State::Ended, _) => (Symbol::Ended, "ended", "is-ended"),
        (_, Connection::Retrying { .. } | Connection::Refused { .. }) => (Symbol::Lost, "cut off", "is-lost"),
        (State::Lost, _) => (Symbol::Lost, "lost", "is-lost"),
        (State::Live, _) if live.is_paused => (Symbol::Pause, "paused", "is-paused"),
        (State::Live, _) => (Symbol::Live, "live", "is-live"),
    }
}

/// How it is, in a few words.
pub fn said(live: &Live) -> String {
    let status = &live.status;
    match (&status.connection, status.state) {
        (Connection::Retrying { seconds }, _) => format!("connection lost, retrying in {seconds} s"),
        (Connection::Refused { message, .. }, _) => message.clone(),
        (Connection::Connecting, State::Live) => "connecting".to_owned(),
        (_, State::Ended) => "job ended".to_owned(),
        (_, State::Lost) => format!("nothing heard from the job for {}", span_text(status.quiet_us)),
        (_, State::Live) if !status.is_caught_up => "catching up".to_owned(),
        (_, State::Live) if status.quiet_us > QUIET_US => format!("last event {} ago", span_text(status.quiet_us)),
        (_, State::Live) => status.behind_us.map_or_else(String::new, |us| [&span_text(us), " behind"].concat()),
    }
}

/// How much of the session this page holds.
fn held(live: &Live, summary: &shared::query::Summary) -> String {
    let status = &live.status;
    let span = summary.devices.iter().map(|device| device.span_us).max().unwrap_or(0);
    let which = if status.dropped_events > 0 || status.missed.is_some() { "the last " } else { "all " };
    let events = counted(status.held_events, "event");
    [which, &events, " (", &span_text(span), "), ", &Bytes(status.held_bytes).to_string()].concat()
}

fn held_exactly(live: &Live) -> String {
    let status = &live.status;
    format!(
        "This page holds {} in {}. Beyond {} it lets go of the older half; the server keeps them longer.",
        counted(status.held_events, "event"),
        Bytes(status.held_bytes),
        counted(status.limit_events, "event"),
    )
}

fn buttons(model: &ModelHandle, live: &Live) -> Html {
    let (symbol, word, title) = if live.is_paused {
        (Symbol::Play, "Resume", "Go on from now (Space)")
    } else {
        (Symbol::Pause, "Pause", "Let the picture stand still (Space): nothing is lost")
    };
    let on_history = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| source::ask_history(&model))
    };
    html! {
        <span class="live-buttons">
            if live.sees_part() && live.status.state == State::Live {
                <button type="button" class="toolbar-button live-button" title="Ask the job for all events that it knows of; reading them takes it a moment" onclick={on_history} data-testid="live-history">{ "Read the history" }</button>
            }
            if live.is_paused || live.is_open() {
                <button type="button" class="toolbar-button live-button" {title} onclick={sends(model, || Action::TogglePause)} data-testid="live-pause">
                    { icon(symbol) }{ word }
                </button>
            }
            if live.can_jump() && !live.is_paused {
                <button type="button" class="toolbar-button live-button is-primary" title="Show the newest events and keep to them (End)"
                    onclick={sends(model, || Action::JumpToNow)} data-testid="live-now">
                    { icon(Symbol::ToEnd) }{ "Jump to now" }
                </button>
            }
        </span>
    }
}

/// What is said of the out-of-memory event that stopped the following.
fn oom_bar(model: &ModelHandle, oom: LiveOom) -> Html {
    let Some(summary) = model.summary() else { return Html::default() };
    let Some(device) = summary.devices.get(oom.device as usize) else { return Html::default() };
    let at = if model.view.device == oom.device && model.view.cursor == oom.position { "" } else { " (earlier)" };
    let whole = match device.capacity {
        0 => [&Bytes(device.end.reserved).to_string(), " were reserved"].concat(),
        all => [&Bytes(device.end.reserved).to_string(), " of ", &Bytes(all).to_string(), " were reserved"].concat(),
    };
    let LiveOom { position, .. } = oom;
    html! {
        <section class="oom-bar" role="alert" aria-label="Out of memory" data-testid="live-oom">
            { icon(Symbol::Flag) }
            <strong>{ ["Device ", &device.device.to_string(), " ran out of memory", at].concat() }</strong>
            <span>{ [&Bytes(oom.bytes).to_string(), " could not be had; ", &whole, "."].concat() }</span>
            <span class="live-buttons">
                <button type="button" class="toolbar-button" onclick={sends(model, move || Action::ShowPosition(position))} data-testid="oom-show">{ "Show what led there" }</button>
                <button type="button" class="toolbar-button" onclick={sends(model, || Action::SetTab(Tab::Findings))} data-testid="oom-findings">{ "Findings" }</button>
                <button type="button" class="icon-button" aria-label="Dismiss" onclick={sends(model, || Action::DismissOom)}>{ icon(Symbol::Cross) }</button>
            </span>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::message::LiveStatus;

    #[test]
    fn each_state_is_said_plainly() {
        let status = |state, connection| LiveStatus {
            state,
            connection,
            is_caught_up: true,
            behind_us: Some(449_000),
            quiet_us: 100_000,
            ..LiveStatus::default()
        };
        let quiet = LiveStatus { quiet_us: 12_300_000, ..status(State::Live, Connection::Open) };
        let behind = LiveStatus { is_caught_up: false, ..status(State::Live, Connection::Open) };
        let cases = [
            (status(State::Live, Connection::Open), "live", "0.4 s behind"),
            (status(State::Live, Connection::Connecting), "live", "connecting"),
            (quiet, "live", "last event 12 s ago"),
            (behind, "live", "catching up"),
            (status(State::Live, Connection::Retrying { seconds: 3 }), "cut off", "connection lost, retrying in 3 s"),
            (status(State::Ended, Connection::Done), "ended", "job ended"),
            (status(State::Lost, Connection::Open), "lost", "nothing heard from the job for 0.1 s"),
        ];
        for (status, word, sentence) in cases {
            let mut live = Live::new("a".repeat(26));
            live.tell(status);
            assert_eq!((state_of(&live).1, said(&live).as_str()), (word, sentence));
        }
    }
}
