//! The menu of older events of a session, which are no longer loaded and can be opened from the server.

use query::Summary;
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::source;
use crate::widgets::format::span_text;
use crate::widgets::menu::Menu;

/// The spans offered, in microseconds before the first loaded event.
const SPANS: [i64; 3] = [60_000_000, 600_000_000, 3_600_000_000];

/// Renders the menu; empty if everything is loaded.
pub fn older_menu(model: &ModelHandle) -> Html {
    let (Some(live), Some(summary)) = (model.live(), model.summary()) else { return Html::default() };
    let is_whole = live.status.dropped_events == 0 && !live.status.is_late;
    let Some(held_from) = held_from(&summary).filter(|_| !is_whole) else { return Html::default() };
    let started = summary.origin.as_ref().map(|origin| origin.started_us).filter(|us| *us > 0 && *us < held_from);
    let name = model.file().map(|file| file.name.clone()).unwrap_or_default();
    let rows = spans(held_from, started).into_iter().map(|(from, words)| {
        let (model, session) = (model.clone(), live.session.clone());
        let file = format!("{name}, {words}.vramscope");
        let onclick = Callback::from(move |_| source::fetch_older(&model, &session, &file, from, held_from));
        html! {
            <button type="button" class="menu-row" {onclick} data-testid="older-row">
                <span class="menu-label">{ words }</span>
            </button>
        }
    });
    let label = html! { <span class="menu-label">{ "Older" }</span> };
    html! {
        <Menu {label} name="Open older events from the server" test_id="older-menu">
            <p class="menu-heading">{ "Open from the server as a separate file" }</p>
            { for rows }
        </Menu>
    }
}

/// Returns the time of the first loaded event, in microseconds since the epoch.
fn held_from(summary: &Summary) -> Option<i64> {
    let known = summary.devices.iter().filter(|device| device.events > 0 && device.start_us > 0);
    known.map(|device| device.start_us).min()
}

/// Returns the start and label of each span offered. The last span goes back to the start of the session.
fn spans(held_from: i64, started: Option<i64>) -> Vec<(Option<i64>, String)> {
    let before = started.map_or(i64::MAX, |started| held_from.saturating_sub(started));
    let shorter = SPANS.into_iter().filter(|span| *span < before);
    let mut spans: Vec<_> =
        shorter.map(|span| (Some(held_from.saturating_sub(span)), format!("previous {}", span_text(span)))).collect();
    spans.push((None, "everything earlier".to_owned()));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_span_goes_back_further_than_the_session() {
        let minute = 60_000_000;
        let words = |started| spans(100 * minute, started).into_iter().map(|(_, words)| words).collect::<Vec<_>>();
        assert_eq!(words(Some(98 * minute)), ["previous 1 min", "everything earlier"]);
        assert_eq!(words(Some(99 * minute + 1)), ["everything earlier"]);
        assert_eq!(words(None).len(), 4);
        assert_eq!(spans(100 * minute, None).first().map(|span| span.0), Some(Some(99 * minute)));
    }
}
