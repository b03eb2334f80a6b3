//! Parses a link of any version.

use std::ops::Deref;

use super::names::{AXES, COLUMNS, MEASURES, by_name, word};
use super::percent::decode;
use super::upgrade::{Parts, STEPS, upgrade};
use super::{BaseRun, FileHash, Link, Pin, Selection, Split, Tab, VERSION};
use crate::{EventColumn, EventOrder, HeatmapPart, Transform, Window};
use trace::decimal;
use trace::limits::{FLAME_TRANSFORMS, LINK_BYTES, LINK_PINS, LINK_TERMS, LINK_ZOOMS};
use trace::units::Address;
use wire::is_session;

/// The result of parsing a fragment.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// No link: an empty fragment, or one of another kind.
    Nothing,
    /// A link with its valid parts.
    Link(Box<Read>),
}

/// A link that was read, and what of it was not understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// The link.
    pub link: Link,
    /// Whether it is of a later version than [`VERSION`].
    pub is_newer: bool,
    /// What was not understood, in words for people ("the cursor"), each once.
    pub unread: Vec<&'static str>,
}

impl Deref for Read {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl From<Link> for Read {
    fn from(link: Link) -> Self {
        Self { link, ..Self::default() }
    }
}

/// What a part is called that no version up to this one knows.
pub(super) const UNKNOWN: &str = "a part that this version doesn't know";

impl Read {
    /// Notes what was not understood.
    pub(super) fn miss(&mut self, word: &'static str) {
        if !self.unread.contains(&word) {
            self.unread.push(word);
        }
    }
}

impl Link {
    /// Parses a fragment, with or without its `#`.
    pub fn parse(fragment: &str) -> Parsed {
        let (fragment, is_cut) = bounded(fragment.strip_prefix('#').unwrap_or(fragment));
        let mut read = Read::default();
        let (mut parts, mut version) = (Parts::default(), None);
        for part in fragment.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match decode(value) {
                Some(value) if key == "v" => version = Some(value.parse::<u32>().ok().filter(|version| *version > 0)),
                Some(value) => parts.push((key.to_owned(), value)),
                None => read.miss(word(key).unwrap_or(UNKNOWN)),
            }
        }
        match version {
            // Short enough to be typed, and equal in all versions.
            None => {
                let session = parts.into_iter().find(|(key, value)| key == "session" && is_session(value));
                return session.map_or(Parsed::Nothing, |(_, name)| {
                    Parsed::Link(Box::new(Self { session: Some(name), ..Self::default() }.into()))
                });
            }
            // Without a version that can be read, everything that this version understands is used.
            Some(None) => read.miss("the version"),
            Some(Some(version)) => {
                read.is_newer = version > VERSION;
                upgrade(&mut parts, &mut read, version, &STEPS);
            }
        }
        for (key, value) in parts {
            match word(&key) {
                Some(word) if read.link.take(&key, &value).is_none() => read.miss(word),
                Some(_) => {}
                None => read.miss(UNKNOWN),
            }
        }
        if is_cut {
            read.miss("the end of the link, which is too long");
        }
        if version == Some(None) && !read.is_bound() {
            return Parsed::Nothing;
        }
        Parsed::Link(Box::new(read))
    }

    /// Sets one part. Returns `None` and changes nothing if the value is invalid.
    fn take(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "file" => self.file = Some(value.to_owned()),
            "hash" => self.hash = Some(FileHash::parse(value)?),
            "session" => self.session = Some(is_session(value).then(|| value.to_owned())?),
            // These name the file or the sessions to open. They do not change the view.
            "open" | "job" => {}
            "dev" => self.device = value.parse().ok()?,
            "tab" => self.tab = Tab::ALL.into_iter().find(|tab| tab.name() == value)?,
            "x" => self.axis = by_name(&AXES, value)?,
            "w" => self.window = Some(window(value)?),
            "y" => self.zooms.bytes = Some(window(value)?),
            "cur" => self.cursor = Some(value.parse().ok()?),
            "sel" => self.selection = selection(value)?,
            "r" => self.range = Some(range(value)?),
            // Older links say here whether steps are compared at their peaks. Now `at` does.
            "peaks" => {}
            "steps" => self.compared = Some(pair(value)?),
            "basecur" => self.base_cursor = Some(value.parse().ok()?),
            "base" => self.base = Some(BaseRun::parse(value)?),
            "f" => push(&mut self.filter, value)?,
            "q" => self.highlight = Some((!value.is_empty()).then(|| value.to_owned())?),
            "curve" => {
                let measure = by_name(&MEASURES, value)?;
                if !self.settings.curves.contains(&measure) {
                    self.settings.curves.push(measure);
                }
            }
            "segzoom" => {
                #[expect(clippy::cast_possible_truncation, reason = "of a number that is too large, infinity is left")]
                let zoom = decimal::parse(value).map(|zoom| zoom as f32);
                self.zooms.segments = zoom.filter(|zoom| zoom.is_finite())?;
            }
            "zoom" => self.zooms.flame = numbers(value)?,
            "act" => push(&mut self.settings.event_actions, value)?,
            "part" => self.zooms.heatmap_part = HeatmapPart::by_name(value)?,
            "rows" => self.zooms.heatmap_offsets = Some(window(value)?),
            "pin" => {
                let pin = Pin::parse(value).filter(|_| self.pins.len() < LINK_PINS)?;
                if !self.pins.iter().any(|known| known.is_at(&pin)) {
                    self.pins.push(pin);
                }
            }
            "split" => self.split = Some(Split::parse(value)?),
            "sort" => {
                let (is_falling, name) = value.strip_prefix('-').map_or((false, value), |name| (true, name));
                self.settings.event_order = EventOrder { by: by_name(&COLUMNS, name)?, is_falling };
            }
            "hide" => {
                let hidden: Option<Vec<EventColumn>> =
                    value.split(',').take(COLUMNS.len()).map(|name| by_name(&COLUMNS, name)).collect();
                let hidden = hidden?;
                let hidden: Vec<_> = EventColumn::ALL.into_iter().filter(|column| hidden.contains(column)).collect();
                // At least one column stays visible.
                if hidden.len() < COLUMNS.len() {
                    self.settings.hidden_columns = hidden;
                }
            }
            "flameops" => {
                let transform = Transform::by_name(value, LINK_ZOOMS)?;
                let transforms = &mut self.settings.flame_transforms;
                (transforms.len() < FLAME_TRANSFORMS).then(|| transforms.push(transform))?;
            }
            "sandwich" => self.settings.flame_sandwich = Some(sandwich(value)?),
            _ => return self.settings.take(key, value),
        }
        Some(())
    }
}

/// Returns the part of a fragment that is read, which ends with a whole part, and whether something was cut off.
fn bounded(fragment: &str) -> (&str, bool) {
    if fragment.len() <= LINK_BYTES {
        return (fragment, false);
    }
    let start = fragment.as_bytes().get(..LINK_BYTES).unwrap_or_default();
    let end = start.iter().rposition(|byte| *byte == b'&').unwrap_or(0);
    (fragment.get(..end).unwrap_or_default(), true)
}

/// Adds a term unless it is there already. Returns `None` for one that is empty or one too many.
fn push(terms: &mut Vec<String>, term: &str) -> Option<()> {
    if terms.iter().any(|known| known == term) {
        return Some(());
    }
    (terms.len() < LINK_TERMS && !term.is_empty()).then(|| terms.push(term.to_owned()))
}

fn sandwich(text: &str) -> Option<(u32, bool)> {
    let (is_line, frame) = match text.strip_prefix('l') {
        Some(frame) => (true, frame),
        None => (false, text.strip_prefix('f')?),
    };
    Some((frame.parse().ok()?, is_line))
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> = text.split(',').take(LINK_ZOOMS + 1).map(|number| number.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() <= LINK_ZOOMS)
}

pub(super) fn window(text: &str) -> Option<Window> {
    let (start, end) = text.split_once(',')?;
    let (start, end) = (decimal::parse(start)?, decimal::parse(end)?);
    (start.is_finite() && end.is_finite() && start < end).then_some(Window { start, end })
}

fn pair(text: &str) -> Option<(u32, u32)> {
    let (one, other) = text.split_once(',')?;
    Some((one.parse().ok()?, other.parse().ok()?))
}

fn range(text: &str) -> Option<(u32, u32)> {
    pair(text).filter(|(from, to)| from <= to)
}

fn selection(text: &str) -> Option<Selection> {
    let kind = text.chars().next()?;
    let rest = text.get(kind.len_utf8()..)?;
    match kind {
        'a' => rest.parse().ok().map(Selection::Allocation),
        's' => rest.parse().ok().map(Selection::Site),
        'l' => rest.parse().ok().map(Selection::Line),
        'c' => rest.parse().ok().map(Selection::Class),
        'g' => u64::from_str_radix(rest.strip_prefix("0x")?, 16).ok().map(|a| Selection::Segment(Address(a))),
        _ => None,
    }
}
