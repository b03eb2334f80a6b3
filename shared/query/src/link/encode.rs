//! Formats a link.

use std::fmt;

use super::names::{AXES, column_name, measure_name, name_of};
use super::percent::Encoded;
use super::{Link, Selection, VERSION};
use crate::Window;
use trace::decimal::Decimal;

/// A coordinate to a thousandth of an event, of a microsecond or of a byte: far less than a pixel.
fn place(at: f64) -> Decimal {
    Decimal::of(at, 3).shortest()
}

/// Writes a part for two coordinates, if they are there and still differ when they are rounded.
fn span(f: &mut fmt::Formatter<'_>, key: &str, window: Option<Window>) -> fmt::Result {
    match window.map(|window| (place(window.start), place(window.end))) {
        Some((start, end)) if start != end => write!(f, "&{key}={start},{end}"),
        _ => Ok(()),
    }
}

/// Writes a part for two numbers, if they are there.
fn pair(f: &mut fmt::Formatter<'_>, key: &str, numbers: Option<(u32, u32)>) -> fmt::Result {
    numbers.map_or(Ok(()), |(first, second)| write!(f, "&{key}={first},{second}"))
}

impl fmt::Display for Link {
    /// Formats the fragment without its `#`. Defaults are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = Self::default();
        write!(f, "v={VERSION}")?;
        if let Some(file) = &self.file {
            write!(f, "&file={}", Encoded(file))?;
        }
        if let Some(hash) = &self.hash {
            write!(f, "&hash={hash}")?;
        }
        if let Some(session) = &self.session {
            write!(f, "&session={}", Encoded(session))?;
        }
        write!(f, "&dev={}&tab={}&x={}", self.device, self.tab.name(), name_of(&AXES, &self.axis))?;
        span(f, "w", self.window)?;
        span(f, "y", self.zooms.bytes)?;
        if let Some(cursor) = self.cursor {
            write!(f, "&cur={cursor}")?;
        }
        match self.selection {
            Selection::None => {}
            Selection::Allocation(id) => write!(f, "&sel=a{id}")?,
            Selection::Site(stack) => write!(f, "&sel=s{stack}")?,
            Selection::Line(stack) => write!(f, "&sel=l{stack}")?,
            Selection::Segment(address) => write!(f, "&sel=g{address}")?,
            Selection::Class(index) => write!(f, "&sel=c{index}")?,
        }
        pair(f, "r", self.range)?;
        pair(f, "steps", self.compared)?;
        if let Some(base) = &self.base {
            write!(f, "&base={base}")?;
        }
        if let Some(cursor) = self.base_cursor {
            write!(f, "&basecur={cursor}")?;
        }
        for term in &self.filter {
            write!(f, "&f={}", Encoded(term))?;
        }
        if let Some(term) = &self.highlight {
            write!(f, "&q={}", Encoded(term))?;
        }
        for measure in &self.settings.curves {
            write!(f, "&curve={}", measure_name(*measure))?;
        }
        for action in &self.settings.event_actions {
            write!(f, "&act={}", Encoded(action))?;
        }
        let [segments, fits] = [&self.zooms, &start.zooms].map(|zooms| place(zooms.segments.into()));
        if segments != fits {
            write!(f, "&segzoom={segments}")?;
        }
        for (i, number) in self.zooms.flame.iter().enumerate() {
            write!(f, "{}{number}", if i == 0 { "&zoom=" } else { "," })?;
        }
        for transform in &self.settings.flame_transforms {
            write!(f, "&flameops={}", transform.name())?;
        }
        if let Some((frame, is_line)) = self.settings.flame_sandwich {
            write!(f, "&sandwich={}{frame}", if is_line { "l" } else { "f" })?;
        }
        for (key, value) in self.settings.parts() {
            write!(f, "&{key}={value}")?;
        }
        if self.zooms.heatmap_part != start.zooms.heatmap_part {
            write!(f, "&part={}", Encoded(&self.zooms.heatmap_part.name()))?;
        }
        span(f, "rows", self.zooms.heatmap_offsets)?;
        self.pins.iter().try_for_each(|pin| write!(f, "&pin={pin}"))?;
        if let Some(split) = &self.split {
            write!(f, "&split={split}")?;
        }
        let order = self.settings.event_order;
        if order != start.settings.event_order {
            let sign = if order.is_falling { "-" } else { "" };
            write!(f, "&sort={sign}{}", column_name(order.by))?;
        }
        for (i, column) in self.settings.hidden_columns.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "&hide=" } else { "," }, column_name(*column))?;
        }
        Ok(())
    }
}
