//! The items of the context menu. Pure functions from what is known about its subject to the items that apply.

use query::FrameText;
use query::folding::best_frame;
use trace::units::{Address, Count};

use crate::model::{Action, Pin, Selection};
use crate::views::details::search_term;
use crate::widgets::stack_list::{all, place, plain_text};

/// What is known about a menu's subject. The menu leaves out items for what is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// What it is, in a few words.
    pub title: String,
    /// All frames of its stack, as text.
    pub stack: Option<String>,
    /// Its line of code: `train.py:12:forward`.
    pub line: Option<String>,
    /// Its bytes.
    pub bytes: Option<u64>,
    /// The search term for its line.
    pub term: Option<String>,
    /// The selection of its line.
    pub select: Option<Selection>,
    /// The position and the address of its segment.
    pub segment: Option<(u32, Address)>,
    /// The pin that the menu sets or removes.
    pub pin: Option<Pin>,
    /// The position to go to, if it is a moment.
    pub moment: Option<u32>,
}

impl Known {
    /// Returns what a stack determines: its text, its line, and the search term for the line.
    pub fn of_stack(frames: &[FrameText]) -> Self {
        let mut known = Self::default();
        if !frames.is_empty() {
            known.stack = Some(plain_text(frames, &all(frames)));
        }
        if let Some(frame) = best_frame(frames) {
            let place = place(&frame.filename, frame.line);
            let gap = if place.is_empty() { "" } else { ":" };
            known.line = Some([&place, gap, &frame.name].concat());
            known.term = Some(search_term(&frame.name, &frame.filename, frame.line)).filter(|term| !term.is_empty());
        }
        known
    }
}

/// What an item does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Copies a text.
    Copy(String),
    /// Sends actions.
    Send(Vec<Action>),
}

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its id, for tests.
    pub id: &'static str,
    /// Its label.
    pub label: &'static str,
    /// What it applies to, in small print.
    pub hint: String,
    /// What it does.
    pub act: Act,
}

/// Returns the items that apply, given the current filters, selection and pins.
pub fn items(known: &Known, filters: &[String], selection: Selection, pins: &[Pin]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |id, label, hint: String, act| items.push(Item { id, label, hint, act });
    if let Some(position) = known.moment {
        add("go", "Go there", String::new(), Act::Send(vec![Action::SetCursor(position)]));
        add("show-before", "Show the window before it", String::new(), Act::Send(vec![Action::ShowPosition(position)]));
    }
    if let Some(stack) = &known.stack {
        add("copy-stack", "Copy stack", String::new(), Act::Copy(stack.clone()));
    }
    if let Some(line) = &known.line {
        add("copy-line", "Copy line", String::new(), Act::Copy(line.clone()));
    }
    if let Some(bytes) = known.bytes {
        add("copy-size", "Copy size", format!("{} bytes", Count(bytes)), Act::Copy(bytes.to_string()));
    }
    if let Some(term) = &known.term {
        let hidden = ["-", term].concat();
        if !filters.contains(term) {
            add("filter", "Filter to this", term.clone(), Act::Send(vec![Action::AddFilter(term.clone())]));
        }
        if !filters.contains(&hidden) {
            add("hide", "Hide this", term.clone(), Act::Send(vec![Action::AddFilter(hidden)]));
        }
    }
    if let Some(line) = known.select.filter(|line| *line != selection) {
        add("select-line", "Select line", String::new(), Act::Send(vec![Action::Select(line)]));
    }
    if let Some((position, address)) = known.segment {
        let show = Action::ShowSegment { position, address };
        add("open-segment", "Open segment", String::new(), Act::Send(vec![show]));
    }
    if let Some(pin) = &known.pin {
        let is_pinned = pins.iter().any(|known| known.is_at(pin));
        let label = if is_pinned { "Unpin" } else { "Pin" };
        add("pin", label, String::new(), Act::Send(vec![Action::TogglePin(pin.clone())]));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack() -> Vec<FrameText> {
        let frame = |name: &str, filename: &str, line, library: &str| FrameText {
            name: name.to_owned(),
            filename: filename.to_owned(),
            line,
            library: library.to_owned(),
            is_call_site: library.is_empty(),
        };
        vec![frame("at::empty", "??", 0, "torch"), frame("forward", "/me/gpt/model.py", 54, "")]
    }

    fn ids(known: &Known, filters: &[&str]) -> Vec<&'static str> {
        let filters: Vec<String> = filters.iter().map(|term| (*term).to_owned()).collect();
        items(known, &filters, Selection::None, &[]).iter().map(|item| item.id).collect()
    }

    #[test]
    fn what_does_not_apply_is_left_out() {
        assert_eq!(ids(&Known::default(), &[]), [""; 0]);
        let known = Known { bytes: Some(7), ..Known::default() };
        assert_eq!(ids(&known, &[]), ["copy-size"]);
        let known = Known { bytes: Some(7), select: Some(Selection::Line(3)), ..Known::of_stack(&stack()) };
        assert_eq!(ids(&known, &[]), ["copy-stack", "copy-line", "copy-size", "filter", "hide", "select-line"]);
        assert!(!ids(&known, &["gpt/model.py:54"]).contains(&"filter"), "it is filtered to that already");
        assert!(!ids(&known, &["-gpt/model.py:54"]).contains(&"hide"));
        let selected = items(&known, &[], Selection::Line(3), &[]);
        assert!(!selected.iter().any(|item| item.id == "select-line"));
    }

    #[test]
    fn what_is_copied_is_exact() {
        let known = Known { bytes: Some(65_712_455_681), ..Known::of_stack(&stack()) };
        let all = items(&known, &[], Selection::None, &[]);
        let copied = |id| all.iter().find(|item| item.id == id).map(|item| item.act.clone());
        assert_eq!(copied("copy-size"), Some(Act::Copy("65712455681".to_owned())));
        assert_eq!(copied("copy-line"), Some(Act::Copy("/me/gpt/model.py:54:forward".to_owned())));
        assert_eq!(copied("copy-stack"), Some(Act::Copy("at::empty\n/me/gpt/model.py:54:forward\n".to_owned())));
        assert_eq!(copied("hide"), Some(Act::Send(vec![Action::AddFilter("-gpt/model.py:54".to_owned())])));
    }

    #[test]
    fn a_moment_is_gone_to_and_pinned() {
        let known = Known { moment: Some(7), pin: Some(Pin::new(7, None, "peak")), ..Known::default() };
        assert_eq!(ids(&known, &[]), ["go", "show-before", "pin"]);
        let go = items(&known, &[], Selection::None, &[]).swap_remove(0);
        assert_eq!(go.act, Act::Send(vec![Action::SetCursor(7)]));
    }

    #[test]
    fn a_pin_is_removed_by_the_same_item() {
        let pin = Pin::new(3, None, "peak");
        let known = Known { pin: Some(pin.clone()), ..Known::default() };
        let label = |pins: &[Pin]| items(&known, &[], Selection::None, pins)[0].label;
        assert_eq!((label(&[]), label(&[pin])), ("Pin", "Unpin"));
    }
}
