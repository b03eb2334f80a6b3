//! The view of a file: what is shown and how. A link carries all of it.

use query::link::Link;
pub use query::link::{Listing, Pin, Selection, Setting, Settings, Side, Split, Tab, Zooms};
use query::{Axis, DeviceSummary, Measure, Moments, SegmentsQuery, Summary, Window};
use trace::order::{SortFew, Within};

use super::base::Base;

/// The curves that are shown first.
pub const FIRST_CURVES: [Measure; 3] = [Measure::InactiveSplit, Measure::LargestServableLarge, Measure::UnusableShare];

/// The view of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The device: an index into the summary's devices.
    pub device: u32,
    /// The tab.
    pub tab: Tab,
    /// The x axis of overview and timeline.
    pub axis: Axis,
    /// The visible part of the axis, shared by every view.
    pub window: Window,
    /// The cursor: a position, `0..=events`.
    pub cursor: u32,
    /// The selection.
    pub selection: Selection,
    /// The settings.
    pub settings: Settings,
    /// What the views are magnified to.
    pub zooms: Zooms,
    /// The selected range of positions. A range without an extent is a mark from which it can be extended.
    pub range: Option<(u32, u32)>,
    /// The steps at which a run is compared with itself, that of A first, by their places in the list of steps.
    pub compared: Option<(u32, u32)>,
    /// The run that this one is compared with, once it was chosen.
    pub base: Option<Base>,
    /// The cursor that a link gives the base, until the base is open.
    pub base_cursor: Option<u32>,
    /// The filters: search terms.
    pub filter: Vec<String>,
    /// The highlighted search term: everything else is painted faint.
    pub highlight: Option<String>,
    /// The pins, in the order of their positions.
    pub pins: Vec<Pin>,
    /// The second view, if two are shown.
    pub split: Option<Split>,
    /// The path from the root to the chosen box of the flame graph, to which transforms apply. It is not in the link.
    pub flame_box: Vec<u32>,
    /// The first finished step, by its number, and the position of its end: growth counts from there. It is not in the link.
    pub baseline: Option<(u64, u32)>,
    /// A requested axis, until the window's ends on it are known.
    pub wanted_axis: Option<Axis>,
    /// Whether the window follows the cursor once the cursor's coordinate is known.
    pub follows_cursor: bool,
}

/// Returns the extent of a device's trace on an axis.
pub fn extent(device: &DeviceSummary, axis: Axis) -> Window {
    match axis {
        Axis::Time => device.time,
        Axis::Event => device.event,
    }
}

/// Returns the window nearest to `wanted` that is inside the trace and not too short.
pub fn clamp(wanted: Window, extent: Window) -> Window {
    /// Four events, or four microseconds, at least.
    const SHORTEST: f64 = 4.0;
    let whole = extent.length();
    let length = wanted.length();
    if !(length.is_finite() && wanted.start.is_finite()) || length >= whole {
        return extent;
    }
    let new_length = length.max(SHORTEST).min(whole);
    let middle = wanted.start + length / 2.0;
    let start = (middle - new_length / 2.0).within(extent.start, extent.end - new_length);
    Window { start, end: start + new_length }
}

impl View {
    /// Returns whether a tab is shown, as the only view or as one of two.
    pub fn shows(&self, tab: Tab) -> bool {
        self.tab == tab || self.split.is_some_and(|split| split.tab == tab)
    }

    /// Shows a tab in the focused view. If the other view shows it already, that one gets the focus.
    pub fn show(&mut self, tab: Tab) {
        if self.split.is_some_and(|split| split.tab == tab) {
            self.swap_focus();
        } else {
            self.tab = tab;
        }
    }

    /// Gives the focus to the other of two views.
    pub fn swap_focus(&mut self) {
        if let Some(split) = &mut self.split {
            std::mem::swap(&mut self.tab, &mut split.tab);
            split.side = split.side.opposite();
        }
    }

    /// Returns the selected range, unless it is a mark without an extent.
    pub fn extended_range(&self) -> Option<(u32, u32)> {
        self.range.filter(|(from, to)| from < to)
    }

    /// Sorts the pins by position.
    pub fn sort_pins(&mut self) {
        self.pins.sort_few_by_key(|pin| (pin.position, pin.allocation));
    }

    /// Returns the next pin after the cursor, or the last one before it; wraps around at the ends.
    pub fn next_pin(&self, forward: bool) -> Option<&Pin> {
        if forward {
            self.pins.iter().find(|pin| pin.position > self.cursor).or(self.pins.first())
        } else {
            self.pins.iter().rev().find(|pin| pin.position < self.cursor).or(self.pins.last())
        }
    }

    /// Returns the step behind which growth counts, unless the cursor is before its end: its number, and its end.
    pub fn finished_step(&self) -> Option<(u64, u32)> {
        self.baseline.filter(|(_, end)| *end < self.cursor)
    }

    /// Returns the moment that lists are of, or the two moments between which they show the growth. `peak` is the
    /// position of the peak.
    pub fn moments(&self, peak: u32) -> Moments {
        let (since, at) = match self.settings.listing {
            Listing::AtCursor => (None, self.cursor),
            Listing::AtPeak => (None, peak),
            Listing::Growth => {
                let since = self.finished_step().map_or(0, |(_, end)| end);
                let (from, to) = self.extended_range().unwrap_or((since, self.cursor));
                (Some(from), to)
            }
        };
        Moments { at, since }
    }

    /// Returns the view that a file opens with: the device that ran out of memory, otherwise the one that requested
    /// most; the whole trace; the cursor at the last out-of-memory event, otherwise at the peak.
    pub fn first(summary: &Summary) -> Self {
        let mut view = Self { device: summary.telling_device().unwrap_or(0), ..Self::default() };
        view.reset_to_device(summary);
        if summary.devices.is_empty() {
            // Nothing to draw: the findings describe the file.
            view.tab = Tab::Findings;
        }
        view
    }

    /// Shows the events before a position and some after it. On the time axis, the window is mapped as after a change
    /// of
    /// the axis.
    pub fn show_before(&mut self, device: &DeviceSummary, position: u32) {
        const BEFORE: f64 = 200.0;
        const AFTER: f64 = 50.0;
        let at = f64::from(position);
        self.show_events(device, position, Window { start: at - BEFORE, end: at + AFTER });
    }

    /// Shows a window of events, with the cursor at a position. On the time axis, the window is mapped as after a
    /// change of the axis.
    pub fn show_events(&mut self, device: &DeviceSummary, position: u32, window: Window) {
        self.wanted_axis = Some(self.axis).filter(|axis| *axis == Axis::Time);
        self.axis = Axis::Event;
        // Shifted into the trace rather than cut off at its ends.
        self.window = clamp(window, extent(device, Axis::Event));
        self.zooms.bytes = None;
        self.cursor = position;
        self.follows_cursor = false;
    }

    /// Shows the whole trace, on the axis that the view has or waits for. The cursor stays.
    pub fn show_whole(&mut self, device: &DeviceSummary) {
        self.axis = self.wanted_axis.take().unwrap_or(self.axis);
        self.window = extent(device, self.axis);
    }

    /// Resets everything that belongs to a device; preferences stay.
    pub fn reset_to_device(&mut self, summary: &Summary) {
        self.zooms = Zooms { segments: self.zooms.segments, ..Zooms::default() };
        self.selection = Selection::None;
        (self.range, self.compared, self.baseline) = (None, None, None);
        self.pins.clear();
        self.flame_box.clear();
        self.wanted_axis = None;
        self.follows_cursor = false;
        let Some(device) = summary.devices.get(self.device as usize) else { return };
        if !device.has_times {
            self.axis = Axis::Event;
        }
        if device.events < 2 && !device.has_times && self.tab == Tab::Timeline {
            self.show(Tab::Segments);
        }
        self.window = extent(device, self.axis);
        self.cursor = device.decisive_oom.unwrap_or(device.peak_position);
    }

    /// Returns what of a link a file doesn't have, in words for people ("the cursor"): a sign that the link is for
    /// another file.
    pub fn missing(link: &Link, summary: &Summary) -> Vec<&'static str> {
        let Some(device) = summary.devices.get(link.device as usize) else { return vec!["the device"] };
        let is_out = |window: Window| {
            let whole = extent(device, link.axis);
            window.end <= whole.start || window.start >= whole.end
        };
        let is_absent = match link.selection {
            Selection::Allocation(id) => id >= device.allocations,
            Selection::Site(stack) | Selection::Line(stack) => stack >= device.stacks,
            _ => false,
        };
        let parts = [
            (link.axis == Axis::Time && !device.has_times, "the x axis"),
            (link.window.is_some_and(is_out), "the visible part"),
            (link.cursor.is_some_and(|cursor| cursor > device.events), "the cursor"),
            (is_absent, "the selection"),
            (link.range.is_some_and(|(_, end)| end > device.events), "the range"),
            (link.pins.iter().any(|pin| pin.position > device.events), "a pin"),
        ];
        parts.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, word)| word).collect()
    }

    /// Returns the view of a link to a file that has been read. What the file doesn't have is ignored.
    pub fn restore(link: &Link, summary: &Summary) -> Self {
        let mut view = Self::first(summary);
        if (link.device as usize) < summary.devices.len() && view.device != link.device {
            view.device = link.device;
            view.reset_to_device(summary);
        }
        let Some(device) = summary.devices.get(view.device as usize) else { return view };
        // An old link of two steps names no run that they are compared with.
        let is_of_steps = link.compared.is_some() && link.base.is_none();
        view.tab = if is_of_steps { Tab::Compare } else { link.tab };
        if device.has_times || link.axis == Axis::Event {
            view.axis = link.axis;
        }
        let whole = extent(device, view.axis);
        view.window = link.window.filter(|_| view.axis == link.axis).map_or(whole, |window| clamp(window, whole));
        view.cursor = link.cursor.map_or(view.cursor, |cursor| cursor.min(device.events));
        view.selection = match link.selection {
            Selection::Allocation(id) if id >= device.allocations => Selection::None,
            Selection::Site(stack) | Selection::Line(stack) if stack >= device.stacks => Selection::None,
            other => other,
        };
        view.range = link.range.map(|(from, to)| (from.min(device.events), to.min(device.events)));
        view.compared = link.compared;
        view.base = link.base.clone().map(|base| Base::Linked(Box::new(base)));
        view.base_cursor = link.base_cursor;
        view.settings = link.settings.clone();
        view.filter.clone_from(&link.filter);
        view.highlight.clone_from(&link.highlight);
        view.zooms = link.zooms.clone();
        view.zooms.segments = link.zooms.segments.within(1.0, SegmentsQuery::MOST_ZOOM);
        view.flame_box.clone_from(&link.zooms.flame);
        let is_here =
            |pin: &&Pin| pin.position <= device.events && pin.allocation.is_none_or(|id| id < device.allocations);
        view.pins = link.pins.iter().filter(is_here).cloned().collect();
        view.sort_pins();
        view.split = link.split.filter(|split| split.tab != view.tab);
        view
    }

    /// Returns the link to this view, without what identifies its file or session, and those that it is compared with.
    pub fn link(&self, device: Option<&DeviceSummary>) -> Link {
        let whole = device.map(|device| extent(device, self.axis));
        Link {
            file: None,
            hash: None,
            session: None,
            device: self.device,
            tab: self.tab,
            axis: self.axis,
            window: Some(self.window).filter(|window| Some(*window) != whole && window.length() > 0.0),
            cursor: Some(self.cursor),
            selection: self.selection,
            settings: self.settings.clone(),
            zooms: self.zooms.clone(),
            range: self.range,
            compared: self.compared.filter(|_| self.shows(Tab::Compare)),
            base: None,
            base_cursor: None,
            filter: self.filter.clone(),
            highlight: self.highlight.clone(),
            pins: self.pins.clone(),
            split: self.split,
        }
    }
}
