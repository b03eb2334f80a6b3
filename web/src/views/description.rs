//! What a screen reader hears of a view.

use query::{Answer, Axis, Query, Window};
use trace::totals::Totals;
use trace::units::{Count, Micros};

use crate::hooks::ModelHandle;
use crate::model::Model;

/// Maximum number of rows of a table in a description.
pub const ROWS: usize = 12;

/// The description of a view. It is made anew when the view has come to rest.
#[derive(Clone, Copy)]
pub struct Description {
    /// Returns the question whose answer it needs; `None` if the totals at the cursor are enough.
    pub question: fn(&Model, Moment) -> Option<Query>,
    /// Returns the sentences; empty until what they need is known.
    pub text: fn(&ModelHandle, Known<'_>) -> String,
}

impl Description {
    /// The description of a view that describes itself.
    pub const NONE: Self = Self { question: |_, _| None, text: |_, _| String::new() };
}

/// The moment that a description is of.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The x axis.
    pub axis: Axis,
    /// The visible part of the axis.
    pub window: Window,
    /// The cursor.
    pub position: u32,
}

/// What is known for a description.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The answer to its question.
    pub answer: Option<&'a Answer>,
    /// The totals at the cursor.
    pub totals: Option<&'a Totals>,
}

/// Describes a window.
pub fn window_text(axis: Axis, window: Window) -> String {
    match axis {
        Axis::Time => {
            let at = |us: f64| Micros(us.round() as i64).to_string();
            format!("{} to {}", at(window.start), at(window.end))
        }
        Axis::Event => {
            // An event is drawn from its own number on; before the first there is only the start of the trace.
            let at = |event: f64| Count(event.max(0.0) as u64).to_string();
            format!("events {} to {}", at(window.start.max(1.0)), at(window.end.ceil() - 1.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_words() {
        assert_eq!(window_text(Axis::Time, Window { start: 0.0, end: 12_482_000.0 }), "0 µs to 12.482 s");
        assert_eq!(window_text(Axis::Event, Window { start: 0.0, end: 1_004_222.0 }), "events 1 to 1,004,221");
    }
}
