//! What of a file is shown, and how: all that a link carries.

use shared::link::Link;
pub use shared::link::{Selection, Tab};
use shared::order::Within;
use shared::query::{Axis, ColorBy, DeviceSummary, SegmentLayout, Summary, Window};

/// The state of the view over one file.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The device: an index into the summary's devices.
    pub device: u32,
    /// The view that fills the page.
    pub tab: Tab,
    /// The x axis of overview and timeline.
    pub axis: Axis,
    /// The part of the axis that is shown. Every view keeps to it.
    pub window: Window,
    /// The part of the timeline's height that is shown, in bytes; `None` fits what the window holds.
    pub bytes: Option<Window>,
    /// The cursor: a position, `0..=events`.
    pub cursor: u32,
    /// What is selected.
    pub selection: Selection,
    /// What colours stand for.
    pub color_by: ColorBy,
    /// Search terms that filter: the chips.
    pub filter: Vec<String>,
    /// The search term that highlights: what it doesn't match is painted faint.
    pub highlight: Option<String>,
    /// How the segment map is laid out.
    pub segment_layout: SegmentLayout,
    /// Magnification of the segment map; 1 fits.
    pub segment_zoom: f32,
    /// Whether the flame graph grows from the innermost frame.
    pub flame_bottom_up: bool,
    /// Whether the flame graph leaves out frames of the interpreter and the dispatcher.
    pub hide_internal: bool,
    /// The boxes that the flame graph is zoomed into, from the root on.
    pub flame_zoom: Vec<u32>,
    /// The actions that the event list is narrowed to; none for all.
    pub event_actions: Vec<String>,
    /// An axis that was asked for and waits for the window's ends on it.
    pub wanted_axis: Option<Axis>,
    /// Whether the window is to follow the cursor as soon as it is known where on the axis that is.
    pub follows_cursor: bool,
}

impl Default for View {
    fn default() -> Self {
        Self {
            device: 0,
            tab: Tab::Timeline,
            axis: Axis::default(),
            window: Window::default(),
            bytes: None,
            cursor: 0,
            selection: Selection::None,
            color_by: ColorBy::Site,
            filter: Vec::new(),
            highlight: None,
            segment_layout: SegmentLayout::ToScale,
            segment_zoom: 1.0,
            flame_bottom_up: false,
            hide_internal: true,
            flame_zoom: Vec::new(),
            event_actions: Vec::new(),
            wanted_axis: None,
            follows_cursor: false,
        }
    }
}

/// The whole trace of a device on an axis.
pub fn extent(device: &DeviceSummary, axis: Axis) -> Window {
    match axis {
        Axis::Time => device.time,
        Axis::Event => device.event,
    }
}

/// A window as near to `wanted` as the trace allows: inside it, and no shorter than can be told apart.
pub fn clamp(wanted: Window, extent: Window) -> Window {
    /// Four events, or four microseconds, fill the width at the utmost.
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
    /// The view that a file opens with: the device where memory ran out, else the one that requested most, all of it,
    /// with the cursor where memory ran out or was highest.
    pub fn first(summary: &Summary) -> Self {
        let telling = summary.devices.iter().enumerate().max_by_key(|(i, device)| {
            // Of devices that are equal the first is wanted, and `max_by_key` keeps the last.
            (!device.ooms.is_empty(), device.peak.requested, device.events, device.end.reserved, std::cmp::Reverse(*i))
        });
        let mut view = Self { device: telling.map_or(0, |(i, _)| i as u32), ..Self::default() };
        view.reset_to_device(summary);
        if summary.devices.is_empty() {
            // Nothing to draw: what the file does hold is told there.
            view.tab = Tab::Findings;
        }
        view
    }

    /// Everything that belongs to a device goes back to how the device opens; what is a matter of taste stays.
    pub fn reset_to_device(&mut self, summary: &Summary) {
        self.bytes = None;
        self.selection = Selection::None;
        self.flame_zoom.clear();
        self.wanted_axis = None;
        self.follows_cursor = false;
        let Some(device) = summary.devices.get(self.device as usize) else { return };
        if !device.has_times {
            self.axis = Axis::Event;
        }
        if device.events == 0 && !device.has_times && self.tab == Tab::Timeline {
            self.tab = Tab::Segments;
        }
        self.window = extent(device, self.axis);
        self.cursor = device.ooms.last().map_or(device.peak_position, |(position, _)| *position);
    }

    /// The view that a link describes, over a file that has been read. What the file doesn't have is left out.
    pub fn restore(link: &Link, summary: &Summary) -> Self {
        let mut view = Self::first(summary);
        if (link.device as usize) < summary.devices.len() && view.device != link.device {
            view.device = link.device;
            view.reset_to_device(summary);
        }
        let Some(device) = summary.devices.get(view.device as usize) else { return view };
        view.tab = link.tab;
        if device.has_times || link.axis == Axis::Event {
            view.axis = link.axis;
        }
        let whole = extent(device, view.axis);
        view.window = link.window.filter(|_| view.axis == link.axis).map_or(whole, |window| clamp(window, whole));
        view.bytes = link.bytes;
        view.cursor = link.cursor.map_or(view.cursor, |cursor| cursor.min(device.events));
        view.selection = match link.selection {
            Selection::Allocation(id) if id >= device.allocations => Selection::None,
            Selection::Site(stack) if stack >= device.stacks => Selection::None,
            other => other,
        };
        view.filter.clone_from(&link.filter);
        view.highlight.clone_from(&link.highlight);
        view.color_by = link.color_by;
        view.segment_layout = link.segment_layout;
        view.flame_bottom_up = link.bottom_up;
        view.hide_internal = !link.show_internal;
        view.event_actions.clone_from(&link.actions);
        view
    }

    /// The link to this view of a file.
    pub fn link(&self, file: &str, device: Option<&DeviceSummary>) -> Link {
        let whole = device.map(|device| extent(device, self.axis));
        Link {
            file: Some(file.to_owned()),
            session: None,
            device: self.device,
            tab: self.tab,
            axis: self.axis,
            window: Some(self.window).filter(|window| Some(*window) != whole && window.length() > 0.0),
            bytes: self.bytes,
            cursor: Some(self.cursor),
            selection: self.selection,
            filter: self.filter.clone(),
            highlight: self.highlight.clone(),
            color_by: self.color_by,
            segment_layout: self.segment_layout,
            bottom_up: self.flame_bottom_up,
            show_internal: !self.hide_internal,
            actions: self.event_actions.clone(),
        }
    }
}
