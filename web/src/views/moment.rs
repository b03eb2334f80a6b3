//! The moment that lists of memory are of, in words, and the control that chooses it.

use query::{DeviceSummary, Memory};
use trace::units::Count;
use yew::prelude::*;

use super::controls::{choice, sends};
use crate::hooks::ModelHandle;
use crate::model::{Action, Listing, Setting, View};
use crate::widgets::bytes_text::{bytes_text, change_text};

/// Renders the control: the cursor, the peak, or growth.
pub fn listing_control(model: &ModelHandle) -> Html {
    let is = |listing| model.view.settings.listing == listing;
    let choose = |listing| sends(model, Action::Set(Setting::Listing(listing)));
    let growth = if model.view.extended_range().is_some() {
        "List by how much lines grew over the range"
    } else {
        "List by how much lines grew up to the cursor, since the first finished step or the start"
    };
    html! {
        <div class="choices" role="group" aria-label="Moment of the list">
            { choice("list-cursor", "At cursor", "List the memory at the cursor", is(Listing::AtCursor), choose(Listing::AtCursor)) }
            { choice("list-peak", "At peak", "List the memory at the peak", is(Listing::AtPeak), choose(Listing::AtPeak)) }
            { choice("list-growth", "Growth", growth, is(Listing::Growth), choose(Listing::Growth)) }
        </div>
    }
}

/// Describes the moment: `at the peak, event 48,113`.
pub fn moment_text(view: &View, device: &DeviceSummary) -> String {
    let event = |position: u32| format!("event {}", Count(position.into()));
    match view.settings.listing {
        Listing::Growth => match view.extended_range() {
            Some((from, to)) => format!("over the range, {} to {}", event(from), Count(to.into())),
            None => match view.finished_step() {
                Some((step, end)) => {
                    format!("since step {} ended, {} to {}", Count(step), event(end), Count(view.cursor.into()))
                }
                None => format!("from the start to {}", event(view.cursor)),
            },
        },
        Listing::AtCursor if device.events == 0 => "in the snapshot".to_owned(),
        Listing::AtCursor if device.ooms.iter().any(|(position, _)| *position == view.cursor) => {
            format!("when memory ran out, {}", event(view.cursor))
        }
        Listing::AtCursor if view.cursor != device.peak_position => format!("at the cursor, {}", event(view.cursor)),
        Listing::AtCursor | Listing::AtPeak => format!("at the peak, {}", event(device.peak_position)),
    }
}

/// Renders the memory of a line or class as the list shows it: the bytes, or the growth.
pub fn memory_text(listing: Listing, memory: &Memory) -> Html {
    match listing {
        Listing::Growth => change_text(memory.growth()),
        Listing::AtCursor | Listing::AtPeak => bytes_text(memory.now.bytes),
    }
}

#[cfg(test)]
mod tests {
    use query::link::Settings;

    use super::*;

    #[test]
    fn a_list_says_what_moment_it_is_of() {
        let device = DeviceSummary {
            events: 50_000,
            peak_position: 40_000,
            ooms: vec![(45_000, 1)],
            ..DeviceSummary::default()
        };
        let view = |listing, cursor| {
            let settings = Settings { listing, ..Settings::default() };
            View { settings, cursor, ..View::default() }
        };
        let text = |listing, cursor, range| moment_text(&View { range, ..view(listing, cursor) }, &device);
        use Listing::{AtCursor, AtPeak, Growth};
        for (listing, cursor, range, want) in [
            (AtCursor, 7, None, "at the cursor, event 7"),
            (AtCursor, 40_000, None, "at the peak, event 40,000"),
            (AtCursor, 45_000, None, "when memory ran out, event 45,000"),
            (AtPeak, 7, None, "at the peak, event 40,000"),
            (Growth, 7_000, None, "from the start to event 7,000"),
            (Growth, 7, Some((5, 9_000)), "over the range, event 5 to 9,000"),
            (Growth, 7, Some((5, 5)), "from the start to event 7"),
        ] {
            assert_eq!(text(listing, cursor, range), want);
        }
        let view = View { baseline: Some((3, 900)), ..view(Growth, 7_000) };
        assert_eq!(moment_text(&view, &device), "since step 3 ended, event 900 to 7,000");
        assert_eq!(moment_text(&View { cursor: 900, ..view }, &device), "from the start to event 900");
    }
}
