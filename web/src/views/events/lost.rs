//! The row of the event list in place of lost events.

use query::LossRow;
use yew::prelude::*;

use crate::widgets::format::counted;

/// Describes lost events.
pub fn sentence(events: u64, kinds: &str) -> String {
    let lost = format!("{} lost", counted(events, "event"));
    if kinds.is_empty() { lost } else { format!("{lost}: {kinds}") }
}

/// Renders the glyph of lost events: a broken line.
pub fn lost_glyph() -> Html {
    html! {
        <svg class="glyph act-lost" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <path d="M0 4.2H2.4L3.6 2 4.8 3.2 3.6 5.8H0ZM10 4.2H7.6L6.4 6.8 5.2 8 6.4 5.8H10Z" />
        </svg>
    }
}

/// Renders the cells of the row.
pub fn cells(loss: &LossRow) -> Html {
    html! {
        <span role="gridcell" class="cell-lost" data-testid="lost-row" title="The recorder dropped these events, or the file is damaged here. Values that depend on them are not exact.">
            { lost_glyph() }<b>{ sentence(loss.events, &loss.kinds) }</b>
        </span>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_described() {
        assert_eq!(sentence(1, ""), "1 event lost");
        assert_eq!(sentence(1_200, "700 alloc, 500 oom"), "1,200 events lost: 700 alloc, 500 oom");
    }
}
