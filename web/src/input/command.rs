//! Commands: a name, keys, a condition and an action.

use crate::hooks::ModelHandle;
use crate::model::Model;

/// A key, and how it is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The physical key (`KeyboardEvent.code`), whatever character it types.
    Code(&'static str),
    /// The character that the key types (`KeyboardEvent.key`). Punctuation is in different places on each layout.
    Char(&'static str),
}

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chord {
    /// The key.
    pub key: Key,
    /// Whether Ctrl (or Command) is held.
    pub with_control: bool,
    /// Whether Shift is held; `None` if it is optional and makes the command faster.
    pub with_shift: Option<bool>,
}

/// The parts of a key press that select a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// `KeyboardEvent.code`.
    pub code: String,
    /// `KeyboardEvent.key`.
    pub key: String,
    /// Ctrl, or Command.
    pub has_control: bool,
    /// Shift.
    pub has_shift: bool,
    /// Alt.
    pub has_alt: bool,
}

impl Chord {
    /// Creates a chord of a physical key alone.
    pub const fn code(code: &'static str) -> Self {
        Self { key: Key::Code(code), with_control: false, with_shift: Some(false) }
    }

    /// Creates a chord of a physical key that is faster with Shift.
    pub const fn faster(code: &'static str) -> Self {
        Self { key: Key::Code(code), with_control: false, with_shift: None }
    }

    /// Creates a chord of a character, however it is typed.
    pub const fn char(char: &'static str) -> Self {
        Self { key: Key::Char(char), with_control: false, with_shift: None }
    }

    /// Creates a chord of a physical key with Ctrl.
    pub const fn control(code: &'static str) -> Self {
        Self { key: Key::Code(code), with_control: true, with_shift: Some(false) }
    }

    /// Creates a chord of Ctrl and the key that types a letter. For shortcuts that people know by their letter, such as
    /// Ctrl+Z: they follow the keyboard layout.
    pub const fn letter(letter: &'static str, with_shift: bool) -> Self {
        Self { key: Key::Char(letter), with_control: true, with_shift: Some(with_shift) }
    }

    /// Creates a chord of a physical key with Shift.
    pub const fn shift(code: &'static str) -> Self {
        Self { key: Key::Code(code), with_control: false, with_shift: Some(true) }
    }

    /// Returns whether a key press matches this chord.
    pub fn matches(self, press: &Press) -> bool {
        let is_key = match self.key {
            Key::Code(code) => press.code == code,
            Key::Char(char) if self.with_control => press.key.eq_ignore_ascii_case(char),
            Key::Char(char) => press.key == char,
        };
        // Some layouts type characters with AltGr, which browsers report as Ctrl and Alt together, and on a Mac with Option,
        // which they report as Alt.
        let is_plain = match self.key {
            Key::Code(_) => !press.has_alt && press.has_control == self.with_control,
            Key::Char(_) if self.with_control => press.has_control && !press.has_alt,
            Key::Char(_) => press.has_alt || !press.has_control,
        };
        is_key && is_plain && self.with_shift.is_none_or(|shift| shift == press.has_shift)
    }

    /// Returns whether one key press could match both chords.
    #[cfg(test)]
    pub fn collides(self, other: Self) -> bool {
        let shift = match (self.with_shift, other.with_shift) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        self.key == other.key && self.with_control == other.with_control && shift
    }

    /// Returns the key caps, as the help dialog shows them.
    pub fn caps(self) -> Vec<&'static str> {
        let mut caps = Vec::new();
        if self.with_control {
            caps.push("Ctrl");
        }
        if self.with_shift == Some(true) {
            caps.push("Shift");
        }
        caps.push(match self.key {
            Key::Char("z") => "Z",
            Key::Char("y") => "Y",
            Key::Char(char) => char,
            Key::Code(code) => match code {
                "ArrowLeft" => "←",
                "ArrowRight" => "→",
                "ArrowUp" => "↑",
                "ArrowDown" => "↓",
                "Escape" => "Esc",
                "Backslash" => "\\",
                _ => code.strip_prefix("Key").or_else(|| code.strip_prefix("Digit")).unwrap_or(code),
            },
        });
        caps
    }
}

/// Groups of commands: the headings of the help dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Moving the window.
    Window,
    /// Moving the cursor.
    Cursor,
    /// Finding things.
    Search,
    /// Changing what is shown.
    View,
    /// Files and the page itself.
    Page,
}

impl Group {
    /// All groups, in the order of the help dialog.
    pub const ALL: [Self; 5] = [Self::Window, Self::Cursor, Self::Search, Self::View, Self::Page];

    /// Returns the heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Window => "Move and zoom",
            Self::Cursor => "Cursor",
            Self::Search => "Search",
            Self::View => "View",
            Self::Page => "Page",
        }
    }
}

/// A command that can be run by key or by name.
pub struct Command {
    /// A stable identifier, for tests.
    pub id: &'static str,
    /// The title in the command palette and the help dialog.
    pub title: &'static str,
    /// The group.
    pub group: Group,
    /// The keys; empty if it is only in the command palette.
    pub chords: &'static [Chord],
    /// Returns whether the command is available.
    pub is_live: fn(&Model) -> bool,
    /// Runs the command; faster if Shift was held.
    pub run: fn(&ModelHandle, is_faster: bool),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: &str, key: &str, held: &str) -> Press {
        Press {
            code: code.to_owned(),
            key: key.to_owned(),
            has_control: held.contains('c'),
            has_shift: held.contains('s'),
            has_alt: held.contains('a'),
        }
    }

    #[test]
    fn letters_are_places_and_punctuation_is_what_it_types() {
        let a = Chord::faster("KeyA");
        assert!(a.matches(&press("KeyA", "q", "")), "a French keyboard types q there");
        assert!(a.matches(&press("KeyA", "A", "s")));
        assert!(!a.matches(&press("KeyA", "a", "c")), "Ctrl+A selects all");
        let slash = Chord::char("/");
        assert!(slash.matches(&press("Slash", "/", "")));
        assert!(slash.matches(&press("Digit7", "/", "s")), "a German keyboard has it above the 7");
        assert!(Chord::char("[").matches(&press("Digit8", "[", "ca")), "AltGr is Ctrl and Alt");
        assert!(Chord::char("[").matches(&press("Digit5", "[", "a")), "Option types it on a German Mac");
        assert!(!Chord::code("Digit5").matches(&press("Digit5", "[", "a")), "which is no 5");
        assert!(!Chord::char("[").matches(&press("BracketLeft", "[", "c")), "Command is the browser's");
        assert!(!Chord::char("?").matches(&press("Slash", "/", "")));
        assert!(!Chord::code("KeyF").matches(&press("KeyF", "F", "s")));
        assert!(Chord::shift("KeyF").matches(&press("KeyF", "F", "s")));
        assert!(Chord::control("KeyK").matches(&press("KeyK", "k", "c")));
        assert!(!Chord::code("KeyK").matches(&press("KeyK", "k", "c")));
        let undo = Chord::letter("z", false);
        assert!(undo.matches(&press("KeyY", "z", "c")), "a German keyboard has it there");
        assert!(!undo.matches(&press("KeyZ", "z", "")) && !undo.matches(&press("KeyZ", "z", "ca")));
        assert!(
            !undo.matches(&press("KeyZ", "Z", "cs")) && Chord::letter("z", true).matches(&press("KeyZ", "Z", "cs"))
        );
    }

    #[test]
    fn caps_read_as_the_keys_do() {
        assert_eq!(Chord::control("KeyK").caps(), ["Ctrl", "K"]);
        assert_eq!(Chord::code("Digit3").caps(), ["3"]);
        assert_eq!(Chord::letter("z", true).caps(), ["Ctrl", "Shift", "Z"]);
        assert_eq!(Chord::faster("ArrowLeft").caps(), ["←"]);
    }
}
