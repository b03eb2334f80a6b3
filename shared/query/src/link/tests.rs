//! Tests of links as a whole: the golden file, round trips, and fragments that are broken.

use proptest::prelude::*;

use super::names::AXES;
use super::parse::{UNKNOWN, window};
use super::*;
use crate::{EventColumn, EventOrder, HeatmapPart, Measure, Transform};
use trace::limits::{FLAME_TRANSFORMS, LINK_BYTES, LINK_PINS, LINK_TERMS, LINK_ZOOMS};
use trace::units::{PoolId, Stream};

/// Links of every version so far. Each begins with `#`; the next line has the parts that it is read as, and a line with
/// `?` has what is not understood.
const GOLDEN: &str = include_str!("../../../../tests/fixtures/links.txt");

fn read(fragment: &str) -> Read {
    match Link::parse(fragment) {
        Parsed::Link(read) => *read,
        Parsed::Nothing => panic!("no link: {fragment}"),
    }
}

#[test]
fn links_of_every_version_are_read() {
    let mut versions = [0; VERSION as usize + 1];
    let blocks = GOLDEN.split("\n\n").filter(|block| block.starts_with('#'));
    for block in blocks {
        let mut lines = block.lines();
        let fragment = lines.next().unwrap();
        let want = lines.next().unwrap_or_else(|| panic!("{fragment} has no result"));
        let unread = lines.next().map_or("", |line| line.strip_prefix("? ").unwrap());
        let read = read(fragment);
        let version = fragment.split_once("v=").map(|(_, rest)| rest.split('&').next().unwrap().parse::<usize>());
        if let Some(Ok(version)) = version {
            *versions.get_mut(version).unwrap_or(&mut 0) += 1;
            assert_eq!(read.is_newer, version > VERSION as usize, "{fragment}");
        }
        assert_eq!(read.link.to_string(), format!("v={VERSION}&{}", want.trim_start()), "{fragment}");
        assert_eq!(read.unread.join(", "), unread, "{fragment}");
    }
    assert!(versions.iter().skip(1).all(|links| *links > 5), "too few links of a version: {versions:?}");
}

#[test]
fn a_link_is_read_field_by_field() {
    let link = read(
        "#v=1&file=job%20a.pickle&dev=1&tab=segments&x=event&w=10,20.5&cur=48113&sel=a123&f=%3E100MiB&q=attn&color=size",
    )
    .link;
    assert_eq!(link.file.as_deref(), Some("job a.pickle"));
    assert_eq!((link.device, link.tab, link.axis), (1, Tab::Segments, Axis::Event));
    assert_eq!(link.window, Some(Window { start: 10.0, end: 20.5 }));
    assert_eq!((link.cursor, link.selection), (Some(48113), Selection::Allocation(123)));
    assert_eq!((link.filter, link.highlight), (vec![">100MiB".to_owned()], Some("attn".to_owned())));
    assert_eq!(link.settings.color_by, crate::ColorBy::Size);
}

#[test]
fn what_makes_no_sense_is_named_and_the_rest_is_kept() {
    for (broken, word) in [
        ("w=20,10", "the visible part"),
        ("w=NaN,1", "the visible part"),
        ("cur=-1", "the cursor"),
        ("sel=x9", "the selection"),
        ("sel=", "the selection"),
        ("sel=é", "the selection"),
        ("f=%zz", "a filter"),
        ("f=", "a filter"),
        ("tab=nope", "the tab"),
        ("new=thing", UNKNOWN),
        ("%", UNKNOWN),
        ("=", UNKNOWN),
        ("r=9,3", "the range"),
        ("r=1", "the range"),
        ("r", "the range"),
        ("list=no", "the moment of the lists"),
        ("hash=0123", "the file's identity"),
        ("session=%2e%2e", "the session"),
        ("segzoom=inf", "the zoom of the segments"),
        ("zoom=1,,2", "the zoom of the flame graph"),
        ("fit=all", "the height"),
        ("steps=3", "the compared steps"),
        ("base=0,nothing,a.pickle", "the run that it is compared with"),
        ("base=x,,a.pickle", "the run that it is compared with"),
        ("at=noon", "the moment of the comparison"),
        ("pin=3,7,x", "a pin"),
        ("split=flame,right", "the second view"),
        ("sort=--size", "the order of the event list"),
        ("hide=size,weight", "the columns of the event list"),
        ("flameops=m1.2", "a transform of the flame graph"),
        ("sandwich=7", "the callers and callees"),
        ("segsort=colour", "the order of the segments"),
        ("seggroup=1", "the groups of the segments"),
    ] {
        let read = read(&format!("v=1&{broken}&dev=3"));
        assert_eq!(read.link, Link { device: 3, ..Link::default() }, "{broken}");
        assert_eq!(read.unread, [word], "{broken}");
    }
    let twice = read("v=1&cur=x&cur=y&cur=7&tab=nope&&");
    assert_eq!((twice.cursor, twice.unread.as_slice()), (Some(7), ["the cursor", "the tab"].as_slice()));
}

#[test]
fn of_a_later_version_everything_is_used_that_is_understood() {
    let later = read(&format!("v={}&file=a&tab=hologram&w=1,2&fog=1&cur=3", VERSION + 1));
    assert!(later.is_newer);
    let window = Some(Window { start: 1.0, end: 2.0 });
    assert_eq!(later.link, Link { file: Some("a".to_owned()), window, cursor: Some(3), ..Link::default() });
    assert_eq!(later.unread, ["the tab", UNKNOWN]);
}

#[test]
fn a_version_that_cannot_be_read_is_named() {
    for version in ["x", "", "0", "-1", "99999999999", "%zz&v="] {
        let read = read(&format!("v={version}&file=a&cur=3"));
        assert_eq!(
            (read.cursor, read.unread.last(), read.is_newer),
            (Some(3), Some(&"the version"), false),
            "{version}"
        );
    }
    for nothing in ["", "#", "#section", "#&&", "file=a", "v=x", "v=0&tab=flame"] {
        assert_eq!(Link::parse(nothing), Parsed::Nothing, "{nothing}");
    }
}

#[test]
fn a_session_needs_nothing_else() {
    let name = "abcdefghijklmnopqrstuvwxy7";
    let want = Link { session: Some(name.to_owned()), ..Link::default() };
    assert_eq!(read(&format!("#session={name}")), want.into());
    for nothing in ["session=../etc/passwd", "session=", "session=ABCDEFGHIJKLMNOPQRSTUVWXYZ"] {
        assert_eq!(Link::parse(nothing), Parsed::Nothing, "{nothing}");
    }
}

#[test]
fn of_a_link_that_is_too_long_the_beginning_is_used() {
    let long = format!("v=1&cur=7&q={}&dev=3", "x".repeat(LINK_BYTES));
    let read = read(&long);
    assert_eq!(read.link, Link { cursor: Some(7), ..Link::default() });
    assert_eq!(read.unread, ["the end of the link, which is too long"]);
    assert_eq!(Link::parse(&"é".repeat(LINK_BYTES)), Parsed::Nothing);
}

#[test]
fn a_window_too_short_to_be_written_is_left_out() {
    let link = read("v=1&w=0.00001,0.00002&y=1,2").link;
    assert!(link.window.is_some() && !link.to_string().contains("w="), "{link}");
    assert!(link.to_string().contains("&y=1,2"));
}

#[test]
fn lists_are_bounded() {
    let filters: String = (0..=LINK_TERMS).map(|i| format!("&f=a{i}")).collect();
    let zoom = |boxes: usize| vec!["7"; boxes].join(",");
    let full = read(&format!("v=1{filters}&zoom={}", zoom(LINK_ZOOMS)));
    assert_eq!((full.filter.len(), full.zooms.flame.len()), (LINK_TERMS, LINK_ZOOMS));
    assert_eq!(full.unread, ["a filter"]);
    let pins: String = (0..=LINK_PINS).map(|i| format!("&pin={i},,p")).collect();
    let pinned = read(&format!("v=1{pins}"));
    assert_eq!((pinned.pins.len(), pinned.unread.as_slice()), (LINK_PINS, ["a pin"].as_slice()));
    let deep = read(&format!("v=1&zoom={}", zoom(LINK_ZOOMS + 1)));
    let many = read(&format!("v=1{}", "&flameops=m7".repeat(FLAME_TRANSFORMS + 1)));
    assert_eq!((many.settings.flame_transforms.len(), many.unread.len()), (FLAME_TRANSFORMS, 1));
    assert_eq!((deep.zooms.flame.len(), deep.unread.as_slice()), (0, ["the zoom of the flame graph"].as_slice()));
}

/// Windows with edges in thousandths, which links preserve.
fn windows() -> impl Strategy<Value = Option<Window>> {
    let place = || (-1_i64 << 48..1_i64 << 48).prop_map(|n| n as f64 / 1e3);
    (place(), place()).prop_map(|(a, b)| window(&format!("{a},{b}")))
}

fn selections() -> impl Strategy<Value = Selection> {
    prop_oneof![
        Just(Selection::None),
        any::<u32>().prop_map(Selection::Allocation),
        any::<u32>().prop_map(Selection::Site),
        any::<u32>().prop_map(Selection::Line),
        any::<u32>().prop_map(Selection::Class),
        any::<u64>().prop_map(|a| Selection::Segment(Address(a))),
    ]
}

fn parts() -> impl Strategy<Value = HeatmapPart> {
    prop_oneof![
        Just(HeatmapPart::All),
        any::<(u64, u64)>().prop_map(|(a, b)| HeatmapPart::Pool(PoolId(a, b))),
        any::<i64>().prop_map(|stream| HeatmapPart::Stream(Stream(stream))),
        any::<u64>().prop_map(|at| HeatmapPart::Segment(Address(at))),
    ]
}

/// Pins at different places.
fn pins() -> impl Strategy<Value = Vec<Pin>> {
    let pin = any::<(u32, Option<u32>)>();
    let places = prop::collection::hash_set(pin, 0..=LINK_PINS);
    (places, "\\PC{0,9}")
        .prop_map(|(places, name)| places.into_iter().map(|(at, id)| Pin::new(at, id, &name)).collect())
}

/// Any link whose lists have no duplicates and no more than is read.
fn links() -> impl Strategy<Value = Link> {
    let terms = || prop::collection::hash_set("\\PC{1,12}", 0..4).prop_map(|set| set.into_iter().collect());
    let range = || any::<(u32, u32)>().prop_map(|(a, b)| (a.min(b), a.max(b)));
    let hash = any::<[u8; 32]>().prop_map(|digest| FileHash::of_digest(&digest));
    let whose = (prop::option::of(".{0,20}"), prop::option::of(hash), prop::option::of("[a-z2-7]{26}"));
    let place = (any::<u32>(), prop::sample::select(&Tab::ALL), prop::sample::select(&AXES), windows(), windows());
    let base = (any::<u32>(), prop::option::of(any::<[u8; 32]>()), "\\PC{0,20}").prop_map(|(device, digest, name)| {
        let id = digest.map_or(RunId::Name, |digest| RunId::File(FileHash::of_digest(&digest)));
        BaseRun { device, id, name }
    });
    let compared = (prop::option::of(any::<(u32, u32)>()), prop::option::of((base, prop::option::of(any::<u32>()))));
    let marked = (prop::option::of(any::<u32>()), selections(), prop::option::of(range()), compared);
    let set = prop::sample::subsequence(Setting::all(), 0..Setting::all().len());
    let curves = prop::sample::subsequence(&Measure::ALL, 0..5);
    let typed = (terms(), prop::option::of("\\PC{1,12}"), terms());
    let segment_zoom = (1_000_u32..=4_096_000).prop_map(|zoom| zoom as f32 / 1e3);
    let zooms = (segment_zoom, prop::collection::vec(any::<u32>(), 0..6), parts(), windows(), pins());
    let split = (prop::sample::select(&Tab::ALL), prop::sample::select(&Side::ALL), Split::LEAST..=Split::MOST)
        .prop_map(|(tab, side, percent)| Split { tab, side, percent });
    let order = (prop::sample::select(&EventColumn::ALL), any::<bool>())
        .prop_map(|(by, is_falling)| EventOrder { by, is_falling });
    let hidden = prop::sample::subsequence(&EventColumn::ALL, 0..EventColumn::ALL.len());
    let zooms = (zooms, prop::option::of(split), order, hidden);
    let transform = (0..8_usize, prop::collection::vec(any::<u32>(), 1..4))
        .prop_map(|(kind, path)| Transform::of(kind, &path).expect("a transform"));
    let flame = (prop::collection::vec(transform, 0..4), prop::option::of(any::<(u32, bool)>()));
    let all = (whose, place, marked, set, curves, typed, zooms, flame);
    all.prop_map(|(whose, place, marked, set, curves, typed, zooms, flame)| {
        let (zooms, split, event_order, hidden_columns) = zooms;
        let mut settings = Settings::default();
        set.into_iter().for_each(|setting| settings.set(setting));
        (settings.curves, settings.event_actions) = (curves, typed.2);
        (settings.event_order, settings.hidden_columns) = (event_order, hidden_columns);
        (settings.flame_transforms, settings.flame_sandwich) = flame;
        let zooms = (
            Zooms {
                bytes: place.4,
                segments: zooms.0,
                flame: zooms.1,
                heatmap_part: zooms.2,
                heatmap_offsets: zooms.3,
            },
            zooms.4,
        );
        Link {
            file: whose.0,
            hash: whose.1,
            session: whose.2,
            device: place.0,
            tab: place.1,
            axis: place.2.0,
            window: place.3,
            cursor: marked.0,
            selection: marked.1,
            settings,
            zooms: zooms.0,
            range: marked.2,
            compared: marked.3.0,
            base: marked.3.1.clone().map(|(base, _)| base),
            base_cursor: marked.3.1.and_then(|(_, cursor)| cursor),
            filter: typed.0,
            highlight: typed.1,
            pins: zooms.1,
            split,
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(link in links()) {
        let text = link.to_string();
        prop_assert!(text.is_ascii() && !text.contains(['#', ' ', '<', '"']), "{}", text);
        prop_assert_eq!(Link::parse(&text), Parsed::Link(Box::new(link.into())));
    }

    #[test]
    fn what_any_fragment_is_read_as_can_be_written(text in ".{0,80}", version in 0_u32..3) {
        Link::parse(&text);
        if let Parsed::Link(read) = Link::parse(&format!("v={version}&{text}")) {
            let written = read.link.to_string();
            let Parsed::Link(again) = Link::parse(&written) else { panic!("{written}") };
            prop_assert_eq!((again.link.to_string(), again.unread), (written, Vec::new()));
        }
    }
}
