//! Links: the state of the view as a versioned URL fragment.
//!
//! ```text
//! #v=1&file=job.pickle&dev=0&tab=timeline&x=time&w=0,1500.5&cur=48113&sel=a123&f=%3E100MiB&q=attention&color=site
//! #v=1&file=job.pickle&cur=48113&r=20000,48113&list=growth&sel=l7
//! #session=abcdefghijklmnopqrstuvwxyz
//! ```
//! A link has the name of a file, not the file itself: the recipient needs the same file. Parsing is lenient, since a
//! link must never hide the data: unknown and invalid parts are skipped, and of a link of a later version only the
//! file's name is used. Instead of a file, a link can name a session of the page's server, which is opened at once.
//! Credentials are never part of a link.

use std::fmt::{self, Write as _};

use crate::decimal::Decimal;
use crate::limits::{LINK_BYTES, LINK_TERMS};
use crate::query::{Axis, ColorBy, HeatmapPart, Measure, SegmentLayout, Window};
use crate::units::Address;
use crate::wire::is_session;

/// The version that [`Link`]'s `Display` writes.
pub const VERSION: u32 = 1;

/// The view that fills the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// The stacked allocations over time.
    #[default]
    Timeline,
    /// The segments and their blocks at the cursor.
    Segments,
    /// The active allocations at the cursor, by stack.
    Flame,
    /// The list of events.
    Events,
    /// The findings.
    Findings,
    /// The fragmentation over time.
    Heatmap,
}

impl Tab {
    /// The tabs in the order of the page.
    pub const ALL: [Self; 6] =
        [Self::Timeline, Self::Segments, Self::Flame, Self::Events, Self::Findings, Self::Heatmap];

    /// Returns the tab's name in links and test ids.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Segments => "segments",
            Self::Flame => "flame",
            Self::Events => "events",
            Self::Findings => "findings",
            Self::Heatmap => "heatmap",
        }
    }
}

/// The selection, which all views share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selection {
    /// Nothing.
    #[default]
    None,
    /// An allocation, by its number.
    Allocation(u32),
    /// A call site, by its stack's number.
    Site(u32),
    /// A line of call sites with all of its stacks, by the number of the first one.
    Line(u32),
    /// The segment that holds an address, at the cursor.
    Segment(Address),
    /// A class of the timeline, by its index in stacking order.
    Class(u32),
}

/// The moment whose memory is listed by line or class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Listing {
    /// The cursor.
    #[default]
    AtCursor,
    /// The peak of the trace.
    AtPeak,
    /// The growth over the selected range; without one, from the start to the cursor.
    Growth,
}

/// The state of the view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// The file's name, without a folder.
    pub file: Option<String>,
    /// The session of the server, instead of a file.
    pub session: Option<String>,
    /// The index of the device in the file.
    pub device: u32,
    /// The view.
    pub tab: Tab,
    /// The x axis.
    pub axis: Axis,
    /// The visible part of the axis; `None` for all of it.
    pub window: Option<Window>,
    /// The visible part of the timeline's height, in bytes; `None` to fit.
    pub bytes: Option<Window>,
    /// The cursor, as a position.
    pub cursor: Option<u32>,
    /// The selection.
    pub selection: Selection,
    /// The selected range of positions.
    pub range: Option<(u32, u32)>,
    /// Two steps that are compared, the earlier one first, by their places in the list of steps.
    pub compared: Option<(u32, u32)>,
    /// The moment whose memory is listed.
    pub listing: Listing,
    /// The terms of the filter.
    pub filter: Vec<String>,
    /// The highlighted term.
    pub highlight: Option<String>,
    /// What colours represent.
    pub color_by: ColorBy,
    /// The curves below the timeline.
    pub curves: Vec<Measure>,
    /// The layout of the segment map.
    pub segment_layout: SegmentLayout,
    /// Whether the flame graph begins with the innermost frame.
    pub bottom_up: bool,
    /// Whether the first level of the flame graph are categories.
    pub by_category: bool,
    /// Whether frames of the interpreter are shown in the flame graph.
    pub show_internal: bool,
    /// The actions that the event list shows.
    pub actions: Vec<String>,
    /// Whether the heatmap shows request sizes, not addresses.
    pub heatmap_sizes: bool,
    /// The part of the memory that the heatmap shows.
    pub heatmap_part: HeatmapPart,
    /// The visible part of the heatmap's addresses, as offsets in bytes; `None` for all of them.
    pub heatmap_offsets: Option<Window>,
}

/// The result of parsing a fragment.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// No link: an empty fragment, or one of another kind.
    Nothing,
    /// A link of a known version, with its valid parts.
    Link(Box<Link>),
    /// A link of a later version.
    Newer {
        /// The name of its file.
        file: Option<String>,
    },
}

const AXES: [(Axis, &str); 2] = [(Axis::Time, "time"), (Axis::Event, "event")];
const LAYOUTS: [(SegmentLayout, &str); 2] = [(SegmentLayout::ToScale, "scale"), (SegmentLayout::Packed, "packed")];
const LISTINGS: [(Listing, &str); 3] =
    [(Listing::AtCursor, "cursor"), (Listing::AtPeak, "peak"), (Listing::Growth, "growth")];
const COLORS: [(ColorBy, &str); 6] = [
    (ColorBy::Site, "site"),
    (ColorBy::Size, "size"),
    (ColorBy::Stream, "stream"),
    (ColorBy::Pool, "pool"),
    (ColorBy::Lifetime, "lifetime"),
    (ColorBy::Category, "category"),
];

const MEASURES: [(Measure, &str); 15] = [
    (Measure::Requested, "requested"),
    (Measure::Allocated, "allocated"),
    (Measure::Active, "active"),
    (Measure::Reserved, "reserved"),
    (Measure::Unallocated, "unallocated"),
    (Measure::Cached, "cached"),
    (Measure::InactiveSplit, "inactive_split"),
    (Measure::CachedWhole, "cached_whole"),
    (Measure::Rounding, "rounding"),
    (Measure::LargestGap, "largest_gap"),
    (Measure::LargestServableSmall, "largest_servable_small"),
    (Measure::LargestServableLarge, "largest_servable_large"),
    (Measure::Gaps, "gaps"),
    (Measure::UnusableShare, "unusable_share"),
    (Measure::FragmentationIndex, "fragmentation_index"),
];

/// Returns a measure's name in links and test ids, which is that of its column in `vramscope curves`.
pub fn measure_name(measure: Measure) -> &'static str {
    name_of(&MEASURES, &measure)
}

fn name_of<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(v, _)| v == value).map_or("", |(_, name)| name)
}

fn by_name<T: Copy>(names: &[(T, &'static str)], name: &str) -> Option<T> {
    names.iter().find(|(_, n)| *n == name).map(|(v, _)| *v)
}

impl fmt::Display for Link {
    /// Formats the fragment without its `#`. Defaults are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = Self::default();
        write!(f, "v={VERSION}")?;
        if let Some(file) = &self.file {
            write!(f, "&file={}", Encoded(file))?;
        }
        if let Some(session) = &self.session {
            write!(f, "&session={}", Encoded(session))?;
        }
        write!(f, "&dev={}&tab={}&x={}", self.device, self.tab.name(), name_of(&AXES, &self.axis))?;
        if let Some(w) = self.window {
            write!(f, "&w={},{}", place(w.start), place(w.end))?;
        }
        if let Some(y) = self.bytes {
            write!(f, "&y={},{}", place(y.start), place(y.end))?;
        }
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
        if let Some((from, to)) = self.range {
            write!(f, "&r={from},{to}")?;
        }
        if let Some((earlier, later)) = self.compared {
            write!(f, "&steps={earlier},{later}")?;
        }
        if self.listing != start.listing {
            write!(f, "&list={}", name_of(&LISTINGS, &self.listing))?;
        }
        for term in &self.filter {
            write!(f, "&f={}", Encoded(term))?;
        }
        if let Some(term) = &self.highlight {
            write!(f, "&q={}", Encoded(term))?;
        }
        if self.color_by != start.color_by {
            write!(f, "&color={}", name_of(&COLORS, &self.color_by))?;
        }
        for measure in &self.curves {
            write!(f, "&curve={}", measure_name(*measure))?;
        }
        if self.segment_layout != start.segment_layout {
            write!(f, "&seg={}", name_of(&LAYOUTS, &self.segment_layout))?;
        }
        if self.bottom_up {
            f.write_str("&flame=up")?;
        }
        if self.by_category {
            f.write_str("&group=category")?;
        }
        if self.show_internal {
            f.write_str("&internal=1")?;
        }
        for action in &self.actions {
            write!(f, "&act={}", Encoded(action))?;
        }
        if self.heatmap_sizes {
            f.write_str("&heat=sizes")?;
        }
        if self.heatmap_part != start.heatmap_part {
            write!(f, "&part={}", Encoded(&self.heatmap_part.name()))?;
        }
        if let Some(rows) = self.heatmap_offsets {
            write!(f, "&rows={},{}", place(rows.start), place(rows.end))?;
        }
        Ok(())
    }
}

impl Link {
    /// Parses a fragment, with or without its `#`.
    pub fn parse(fragment: &str) -> Parsed {
        let fragment = fragment.strip_prefix('#').unwrap_or(fragment);
        if fragment.is_empty() || fragment.len() > LINK_BYTES {
            return Parsed::Nothing;
        }
        let mut version = None;
        let mut link = Self::default();
        for part in fragment.split('&') {
            let Some((key, value)) = part.split_once('=') else { continue };
            let Some(value) = decode(value) else { continue };
            if key == "v" {
                version = value.parse::<u32>().ok();
            } else {
                link.take(key, value);
            }
        }
        match version {
            // Short enough to be typed, and equal in all versions.
            None if link.session.is_some() => Parsed::Link(Box::new(Self { session: link.session, ..Self::default() })),
            None | Some(0) => Parsed::Nothing,
            Some(VERSION) => Parsed::Link(Box::new(link)),
            Some(_) => Parsed::Newer { file: link.file },
        }
    }

    /// Sets one part; an invalid one changes nothing.
    fn take(&mut self, key: &str, value: String) {
        match key {
            "file" => self.file = Some(value),
            "session" => self.session = Some(value).filter(|session| is_session(session)),
            "dev" => set(&mut self.device, value.parse().ok()),
            "tab" => set(&mut self.tab, Tab::ALL.into_iter().find(|tab| tab.name() == value)),
            "x" => set(&mut self.axis, by_name(&AXES, &value)),
            "w" => self.window = window(&value),
            "y" => self.bytes = window(&value),
            "cur" => self.cursor = value.parse().ok(),
            "sel" => set(&mut self.selection, selection(&value)),
            "r" => self.range = range(&value),
            "steps" => self.compared = range(&value).filter(|(earlier, later)| earlier < later),
            "list" => set(&mut self.listing, by_name(&LISTINGS, &value)),
            "f" => push(&mut self.filter, value),
            "q" => self.highlight = Some(value).filter(|term| !term.is_empty()),
            "color" => set(&mut self.color_by, by_name(&COLORS, &value)),
            "curve" => {
                let new = by_name(&MEASURES, &value).filter(|measure| !self.curves.contains(measure));
                self.curves.extend(new);
            }
            "seg" => set(&mut self.segment_layout, by_name(&LAYOUTS, &value)),
            "flame" => self.bottom_up = value == "up",
            "group" => self.by_category = value == "category",
            "internal" => self.show_internal = value == "1",
            "act" => push(&mut self.actions, value),
            "heat" => self.heatmap_sizes = value == "sizes",
            "part" => set(&mut self.heatmap_part, HeatmapPart::by_name(&value)),
            "rows" => self.heatmap_offsets = window(&value),
            _ => {}
        }
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn push(terms: &mut Vec<String>, term: String) {
    if terms.len() < LINK_TERMS && !term.is_empty() && !terms.contains(&term) {
        terms.push(term);
    }
}

/// A coordinate to a thousandth of an event, of a microsecond or of a byte: far less than a pixel.
fn place(at: f64) -> Decimal {
    Decimal::of(at, 3).shortest()
}

fn window(text: &str) -> Option<Window> {
    let (start, end) = text.split_once(',')?;
    let (start, end) = (start.parse::<f64>().ok()?, end.parse::<f64>().ok()?);
    (start.is_finite() && end.is_finite() && start < end).then_some(Window { start, end })
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (from, to) = text.split_once(',')?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from <= to).then_some((from, to))
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

/// Percent-encodes the characters that a fragment cannot contain, and those that separate its parts.
struct Encoded<'a>(&'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b':' | b'*' => {
                    f.write_char(byte.into())?;
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

/// Decodes percent-encoded text; `None` if it is not UTF-8 or an escape is invalid.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let (high, low) = (rest.next()?, rest.next()?);
            let digit = |c: u8| char::from(c).to_digit(16);
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()?
        } else {
            byte
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::{PoolId, Stream};

    #[test]
    fn reads_as_written_down() {
        let Parsed::Link(link) = Link::parse(
            "#v=1&file=job%20a.pickle&dev=1&tab=segments&x=event&w=10,20.5&cur=48113&sel=a123&f=%3E100MiB&q=attn&color=size",
        ) else {
            panic!("no link")
        };
        assert_eq!(link.file.as_deref(), Some("job a.pickle"));
        assert_eq!((link.device, link.tab, link.axis), (1, Tab::Segments, Axis::Event));
        assert_eq!(link.window, Some(Window { start: 10.0, end: 20.5 }));
        assert_eq!((link.cursor, link.selection), (Some(48113), Selection::Allocation(123)));
        assert_eq!((link.filter, link.highlight), (vec![">100MiB".to_owned()], Some("attn".to_owned())));
        assert_eq!(link.color_by, ColorBy::Size);
    }

    #[test]
    fn drops_what_makes_no_sense_and_keeps_the_rest() {
        for broken in [
            "w=20,10",
            "w=NaN,1",
            "cur=-1",
            "sel=x9",
            "sel=",
            "sel=é",
            "f=%zz",
            "tab=nope",
            "new=thing",
            "%",
            "=",
            "r=9,3",
            "r=1",
            "list=no",
        ] {
            let Parsed::Link(link) = Link::parse(&format!("v=1&{broken}&dev=3")) else { panic!("{broken}") };
            assert_eq!(*link, Link { device: 3, ..Link::default() }, "{broken}");
        }
    }

    #[test]
    fn a_later_version_yields_its_file_only() {
        assert_eq!(Link::parse("v=2&file=a&w=1,2"), Parsed::Newer { file: Some("a".to_owned()) });
        for nothing in ["", "#", "#section", "file=a", "v=x&file=a", "v=0"] {
            assert_eq!(Link::parse(nothing), Parsed::Nothing, "{nothing}");
        }
    }

    #[test]
    fn a_session_needs_nothing_else() {
        let name = "abcdefghijklmnopqrstuvwxy7";
        let want = Link { session: Some(name.to_owned()), ..Link::default() };
        assert_eq!(Link::parse(&format!("#session={name}")), Parsed::Link(Box::new(want)));
        for nothing in ["session=../etc/passwd", "session=", "session=ABCDEFGHIJKLMNOPQRSTUVWXYZ"] {
            assert_eq!(Link::parse(nothing), Parsed::Nothing, "{nothing}");
        }
        assert_eq!(Link::parse("v=1&session=%2e%2e"), Parsed::Link(Box::default()));
    }

    /// Windows with edges in thousandths, which links preserve.
    fn windows() -> impl Strategy<Value = Option<Window>> {
        let place = || (-1_i64 << 48..1_i64 << 48).prop_map(|n| n as f64 / 1e3);
        (place(), place()).prop_map(|(a, b)| window(&format!("{a},{b}")))
    }

    fn links() -> impl Strategy<Value = Link> {
        let selection = prop_oneof![
            Just(Selection::None),
            any::<u32>().prop_map(Selection::Allocation),
            any::<u32>().prop_map(Selection::Site),
            any::<u32>().prop_map(Selection::Line),
            any::<u32>().prop_map(Selection::Class),
            any::<u64>().prop_map(|a| Selection::Segment(Address(a))),
        ];
        let terms = || prop::collection::hash_set("\\PC{1,12}", 0..4).prop_map(|set| set.into_iter().collect());
        let range = || any::<(u32, u32)>().prop_map(|(a, b)| (a.min(b), a.max(b)));
        let steps = range().prop_filter("two steps", |(a, b)| a < b);
        let listed = (prop::option::of(range()), prop::sample::select(&LISTINGS), prop::option::of(steps));
        let what = (prop::option::of(".{0,20}"), any::<u32>(), prop::sample::select(&Tab::ALL), windows(), windows());
        let curves = prop::sample::subsequence(&Measure::ALL, 0..5);
        let how = (prop::sample::select(&AXES), prop::sample::select(&COLORS), prop::sample::select(&LAYOUTS), curves);
        let rest = (prop::option::of(any::<u32>()), selection, terms(), prop::option::of("\\PC{1,12}"), terms());
        let part = prop_oneof![
            Just(HeatmapPart::All),
            any::<(u64, u64)>().prop_map(|(a, b)| HeatmapPart::Pool(PoolId(a, b))),
            any::<i64>().prop_map(|stream| HeatmapPart::Stream(Stream(stream))),
            any::<u64>().prop_map(|at| HeatmapPart::Segment(Address(at))),
        ];
        let flags = any::<(bool, bool, bool, bool)>();
        (what, how, rest, listed, (flags, part, windows()), prop::option::of("[a-z2-7]{26}")).prop_map(
            |(
                (file, device, tab, window, bytes),
                how,
                (cursor, selection, filter, highlight, actions),
                (range, (listing, _), steps),
                (flags, heatmap_part, heatmap_offsets),
                session,
            )| Link {
                file,
                session,
                device,
                tab,
                axis: how.0.0,
                window,
                bytes,
                cursor,
                selection,
                range,
                listing,
                filter,
                highlight,
                color_by: how.1.0,
                curves: how.3,
                segment_layout: how.2.0,
                compared: steps,
                bottom_up: flags.0,
                by_category: flags.3,
                show_internal: flags.1,
                actions,
                heatmap_sizes: flags.2,
                heatmap_part,
                heatmap_offsets,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(link in links()) {
            let text = link.to_string();
            prop_assert!(text.is_ascii() && !text.contains(['#', ' ', '<', '"']), "{}", text);
            prop_assert_eq!(Link::parse(&text), Parsed::Link(Box::new(link)));
        }

        #[test]
        fn any_fragment_is_survived(text in ".{0,80}") {
            Link::parse(&text);
            Link::parse(&format!("v=1&{text}"));
        }
    }
}
