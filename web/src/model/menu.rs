//! The context menu: where it is open, and what it is about.

use query::link::Selection;
use trace::units::Address;

/// What a menu is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// An allocation, a line or a stack; never another kind of selection.
    Selection(Selection),
    /// The segment that contains an address, at a position.
    Segment(u32, Address),
    /// The event that leads to a position.
    Event(u32),
    /// A moment of a picture over time, by its position.
    Moment(u32),
    /// A box of the flame graph.
    Frame {
        /// The function, or a description.
        name: String,
        /// File and line; empty if it represents no frame.
        location: String,
        /// Requested bytes below it.
        bytes: u64,
        /// The stack, if exactly one runs through it.
        stack: Option<u32>,
        /// Its path from the root, for transforms; empty if it can't be transformed.
        path: Vec<u32>,
    },
}

impl Subject {
    /// Returns the subject for a selection; `None` if nothing or a class is selected. `cursor` is the position at which
    /// a segment is shown.
    pub fn of(selection: Selection, cursor: u32) -> Option<Self> {
        match selection {
            Selection::None | Selection::Class(_) => None,
            Selection::Segment(address) => Some(Self::Segment(cursor, address)),
            other => Some(Self::Selection(other)),
        }
    }

    /// Parses an element's `data-menu`: `a17` (an allocation), `l4` (a line), `s4` (a stack), `e48113` (the event that
    /// leads to a position) or `g0x7f00` (a segment at the cursor). Returns `None` for anything else.
    pub fn parse(text: &str, cursor: u32) -> Option<Self> {
        let number = || text.get(1..)?.parse().ok();
        match text.chars().next()? {
            'a' => number().map(|id| Self::Selection(Selection::Allocation(id))),
            'l' => number().map(|stack| Self::Selection(Selection::Line(stack))),
            's' => number().map(|stack| Self::Selection(Selection::Site(stack))),
            'e' => number().map(Self::Event),
            'g' => {
                let address = u64::from_str_radix(text.get(1..)?.strip_prefix("0x")?, 16).ok()?;
                Some(Self::Segment(cursor, Address(address)))
            }
            _ => None,
        }
    }
}

/// An open menu.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenMenu {
    /// Its corner, in CSS pixels of the page.
    pub at: (i32, i32),
    /// What it is about.
    pub subject: Subject,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_names_its_subject() {
        let check = |text, want| assert_eq!(Subject::parse(text, 9), want, "{text}");
        check("a17", Some(Subject::Selection(Selection::Allocation(17))));
        check("l4", Some(Subject::Selection(Selection::Line(4))));
        check("e48113", Some(Subject::Event(48113)));
        check("g0x7f00", Some(Subject::Segment(9, Address(0x7f00))));
        for broken in ["", "a", "x1", "g7f00", "é1", "l-1"] {
            check(broken, None);
        }
        assert_eq!(Subject::of(Selection::Class(3), 9), None);
    }
}
