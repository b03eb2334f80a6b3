//! The preferences, which the browser remembers for the next file and the next visit: theme, details pane, last tab,
//! axis, colours, folding and the like. A link's view takes precedence and is not remembered.
//!
//! ```text
//! p=1&theme=dark&width=380&details=0&v=1&dev=0&tab=flame&x=event&color=size
//! ```
//! The parts of the view are written as in a link.

use query::link::{Link, Parsed, Settings};
use query::{Axis, Summary};

use super::action::Action;
use super::state::ThemeChoice;
use super::view::{Side, Split, Tab, View, extent};

/// The version of the text. Text of any other version is ignored.
const VERSION: &str = "1";
/// The accepted widths of the details pane in pixels.
const WIDTHS: std::ops::RangeInclusive<u32> = 100..=4_000;

/// The preferences of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Preferences {
    /// The theme.
    pub theme: ThemeChoice,
    /// The width of the details pane in pixels; `None` for the default.
    pub details_px: Option<u32>,
    /// Whether the details pane is shown.
    pub is_details_open: bool,
    /// The settings of the view.
    view: Link,
}

impl Default for Preferences {
    fn default() -> Self {
        Self {
            theme: ThemeChoice::default(),
            details_px: None,
            is_details_open: true,
            view: View::default().link(None),
        }
    }
}

impl Preferences {
    /// Parses the text that [`Self::text`] returns. Invalid parts keep their defaults.
    pub fn parse(text: &str) -> Self {
        let mut read = Self::default();
        let value = |key: &str| {
            let mut parts = text.split('&').filter_map(|part| part.split_once('='));
            parts.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        if value("p") != Some(VERSION) {
            return read;
        }
        read.theme = ThemeChoice::by_name(value("theme").unwrap_or_default());
        read.details_px = value("width").and_then(|width| width.parse().ok()).filter(|width| WIDTHS.contains(width));
        read.is_details_open = value("details") != Some("0");
        if let Parsed::Link(link) = Link::parse(text) {
            read.view = settings(&link.link);
        }
        read
    }

    /// Returns the text that the browser stores.
    pub fn text(&self) -> String {
        let width = self.details_px.map(|width| format!("&width={width}")).unwrap_or_default();
        let details = if self.is_details_open { "" } else { "&details=0" };
        format!("p={VERSION}&theme={}{width}{details}&{}", self.theme.name(), self.view)
    }

    /// Updates the preferences with what an action sets.
    pub(super) fn hear(&mut self, action: &Action) {
        let view = &mut self.view;
        match action {
            Action::SetTheme(theme) => self.theme = *theme,
            Action::SetDetailsOpen(is_open) => self.is_details_open = *is_open,
            Action::SetDetailsWidth(width) => self.details_px = *width,
            // The what-if tab starts computing when it is opened, which must not happen unasked.
            Action::SetTab(tab) if *tab != Tab::WhatIf => view.tab = *tab,
            Action::SetAxis(axis) => view.axis = *axis,
            Action::Set(setting) => {
                let mut settings = view.settings.clone();
                settings.set(*setting);
                view.settings.remember(&settings);
            }
            Action::SetSplit(Some(split)) => view.split = Some(*split),
            _ => {}
        }
    }

    /// Takes over the second view that is being closed: the next one begins as it was.
    pub(super) fn keep_split(&mut self, split: Option<Split>) {
        self.view.split = split.or(self.view.split);
    }

    /// Returns the second view to show beside a tab: as the last one was, otherwise the timeline, or the segments beside it,
    /// on a side.
    pub fn second(&self, tab: Tab, side: Side) -> Split {
        let other = if tab == Tab::Timeline { Tab::Segments } else { Tab::Timeline };
        match self.view.split {
            Some(last) if last.tab != tab => last,
            Some(last) => Split { tab: other, ..last },
            None => Split { tab: other, side, percent: 50 },
        }
    }

    /// Applies the preferences to a new view.
    pub(super) fn apply(&self, view: &mut View) {
        let from = &self.view;
        view.tab = from.tab;
        view.settings.remember(&from.settings);
    }

    /// Returns the view of a file that was opened without a link. It shows the events before the failure if the device
    /// ran out of memory, otherwise the whole trace.
    pub(super) fn opened(&self, summary: &Summary) -> View {
        let mut view = self.first(summary);
        let device = summary.devices.get(view.device as usize);
        if let Some((device, position)) = device.and_then(|device| Some((device, device.decisive_oom?))) {
            view.show_before(device, position);
            view.tab = Tab::Timeline;
        }
        view
    }

    /// Returns the view that shows the whole trace.
    pub(super) fn first(&self, summary: &Summary) -> View {
        let mut view = View::first(summary);
        let tab = view.tab;
        self.apply(&mut view);
        if tab != Tab::Timeline {
            // Without a timeline, the view has chosen a tab that shows something.
            view.tab = tab;
        }
        if let Some(device) = summary.devices.get(view.device as usize)
            && (device.has_times || self.view.axis == Axis::Event)
            && view.axis != self.view.axis
        {
            if view.window == extent(device, view.axis) {
                view.axis = self.view.axis;
                view.window = extent(device, view.axis);
            } else {
                // The window has to be looked up on the other axis.
                view.wanted_axis = Some(self.view.axis);
            }
        }
        view
    }
}

/// Returns a link with only what is remembered of another.
fn settings(link: &Link) -> Link {
    let mut settings = Settings::default();
    settings.remember(&link.settings);
    Link {
        tab: if link.tab == Tab::WhatIf { Tab::Timeline } else { link.tab },
        axis: link.axis,
        settings,
        split: link.split,
        ..Preferences::default().view
    }
}

#[cfg(test)]
mod tests {
    use query::ColorBy;
    use query::link::Setting;

    use super::*;
    use crate::model::testing::{added, after, read, summary, watched};

    #[test]
    fn the_second_view_comes_back_as_it_was_closed() {
        let model = after([added(0, "a"), read(0, &[1000])]);
        let first = model.preferences.second(Tab::Timeline, Side::Right);
        assert_eq!(first, Split { tab: Tab::Segments, side: Side::Right, percent: 50 });
        let below = Split { tab: Tab::Flame, side: Side::Below, percent: 30 };
        let closed = [Action::SetSplit(Some(below)), Action::SetSplit(None)];
        let model = closed.into_iter().fold(model, |model, action| crate::model::update(&model, action));
        assert_eq!(model.preferences.second(Tab::Timeline, Side::Right), below);
        assert_eq!(
            Preferences::parse(&model.preferences.text()).second(Tab::Timeline, Side::Right),
            below,
            "next visit"
        );
        assert_eq!(model.preferences.second(Tab::Flame, Side::Right), Split { tab: Tab::Timeline, ..below });
        // Closed from the other view, the one that keys were for comes back.
        let other = [Action::SetSplit(Some(below)), Action::FocusView(Tab::Flame), Action::SetSplit(None)];
        let model = other.into_iter().fold(model, |model, action| crate::model::update(&model, action));
        assert_eq!(model.preferences.second(model.view.tab, Side::Right).tab, Tab::Timeline);
    }

    #[test]
    fn what_was_set_is_read_again_and_bad_content_is_ignored() {
        let set = [
            Action::SetTheme(ThemeChoice::Dark),
            Action::SetDetailsWidth(Some(412)),
            Action::SetDetailsOpen(false),
            Action::SetTab(Tab::Flame),
            Action::SetAxis(Axis::Event),
            Action::Set(Setting::ColorBy(ColorBy::Stream)),
            Action::Set(Setting::Folds(false)),
            Action::Set(Setting::FlameBottomUp(true)),
        ];
        let model = after(set);
        let text = model.preferences.text();
        assert_eq!(Preferences::parse(&text), model.preferences, "{text}");
        assert_ne!(model.preferences, Preferences::default());
        assert_eq!(Preferences::parse(&Preferences::default().text()), Preferences::default());
        for bad in
            ["", "p=2&theme=dark&width=400", "p=1&width=-3&theme=mud&tab=fog&color=&x=9", "{}", "p=1&width=99999999"]
        {
            assert_eq!(Preferences::parse(bad), Preferences::default(), "{bad}");
        }
    }

    #[test]
    fn the_next_file_opens_as_the_last_was_left_but_for_what_a_link_says() {
        let set =
            [Action::SetTab(Tab::Events), Action::Set(Setting::ColorBy(ColorBy::Size)), Action::SetAxis(Axis::Event)];
        let begun = [added(0, "a"), read(0, &[1000])].into_iter().chain(set);
        let model = after(begun.chain([added(1, "b"), read(1, &[10]), Action::SelectFile(super::super::FileKey(1))]));
        let view = &model.view;
        assert_eq!((view.tab, view.settings.color_by, view.axis), (Tab::Events, ColorBy::Size, Axis::Event));
        assert_eq!(view.window, model.extent());
        let linked = View::restore(&Link { tab: Tab::Flame, ..Link::default() }, &summary(&[10]));
        assert_eq!((linked.tab, linked.settings.color_by), (Tab::Flame, ColorBy::Site));
        let live = after([Action::Set(Setting::ColorBy(ColorBy::Pool))].into_iter().chain(watched(0, 100)));
        assert_eq!(live.view.settings.color_by, ColorBy::Pool);
    }

    #[test]
    fn what_if_is_not_opened_unasked() {
        let model = after([added(0, "a"), read(0, &[10]), Action::SetTab(Tab::Flame), Action::SetTab(Tab::WhatIf)]);
        assert_eq!(model.preferences.first(&summary(&[10])).tab, Tab::Flame);
        assert_eq!(Preferences::parse("p=1&v=1&tab=whatif"), Preferences::default());
    }
}
