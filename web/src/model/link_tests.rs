//! Tests of links that wait for a file.

use query::link::{FileHash, Link, Parsed, Read, Setting};
use query::{Axis, Window};

use crate::model::testing::{added, after, read, watched};
use crate::model::{Action, FileKey, Model, Selection, SharedLink, Tab, update};

const KEY: FileKey = FileKey(0);

fn hash(first: u8) -> FileHash {
    FileHash::of_digest(&[first; 32])
}

fn hashed(key: u32, first: u8) -> Action {
    Action::FileHashed { key: FileKey(key), hash: hash(first) }
}

/// A link with a cursor, for a file of this name and content.
fn link(file: Option<&str>, content: Option<u8>) -> Action {
    let (file, hash) = (file.map(str::to_owned), content.map(hash));
    Action::LinkRead(Box::new(Link { file, hash, tab: Tab::Events, cursor: Some(12), ..Link::default() }.into()))
}

/// A link as it stands in the address bar.
fn typed(fragment: &str) -> Action {
    match Link::parse(fragment) {
        Parsed::Link(link) => Action::LinkRead(link),
        Parsed::Nothing => panic!("no link: {fragment}"),
    }
}

/// Returns the notice, empty if there is none.
fn notice(model: &Model) -> &str {
    model.notice.as_ref().map_or("", |notice| notice.text.as_str())
}

/// Checks whether a link was applied, whether it still waits, and what is said.
fn check(what: &str, actions: Vec<Action>, is_applied: bool, waits: bool, said: &str) -> Model {
    let model = after(actions);
    assert_eq!(model.view.tab == Tab::Events && model.view.cursor == 12, is_applied, "{what}");
    assert_eq!(model.link.is_some(), waits, "{what}");
    let found = notice(&model);
    assert!(if said.is_empty() { found.is_empty() } else { found.contains(said) }, "{what}: {found}");
    model
}

const DIFFERS: &str = "but its content differs. The link's view was not applied.";
const OTHER: &str = "The link is for “a”. This is a different file";
const BY_NAME: &str = "The link names only the file, so Vramscope can't tell whether it is the same one.";

#[test]
fn a_link_with_a_hash_is_for_the_content_not_the_name() {
    let wanted = || link(Some("a"), Some(1));
    let of = |name: &str, content: u8| vec![wanted(), added(0, name), hashed(0, content), read(0, &[1000])];
    check("the same file", of("a", 1), true, false, "");
    check("renamed", of("renamed", 1), true, false, "");
    check("another of that name", of("a", 2), false, false, DIFFERS);
    check("another file", of("b", 2), false, false, OTHER);
    check("without a name", vec![link(None, Some(1)), added(0, "a"), hashed(0, 1), read(0, &[1000])], true, false, "");
    let nameless = vec![link(None, Some(1)), added(0, "a"), hashed(0, 2), read(0, &[1000])];
    check("another content, without a name", nameless, false, false, "The link is for a different file");
    let waits = [vec![wanted(), added(0, "b"), read(0, &[1000])], vec![wanted(), added(0, "b")]];
    check("not hashed yet", waits[0].clone(), false, true, "");
    check("not read yet", [waits[1].clone(), vec![hashed(0, 1)]].concat(), false, true, "");
    check("hashed later", [waits[0].clone(), vec![hashed(0, 1)]].concat(), true, false, "");
    check("another, hashed later", [waits[0].clone(), vec![hashed(0, 2)]].concat(), false, true, "");
}

#[test]
fn a_link_without_a_hash_is_for_the_name_and_says_so() {
    let of = |name: &str| vec![link(Some("a"), None), added(0, name), read(0, &[1000])];
    check("its name", of("a"), true, false, BY_NAME);
    check("another name", of("b"), false, false, OTHER);
    check("a content known since", [of("a"), vec![hashed(0, 3)]].concat(), true, false, BY_NAME);
}

#[test]
fn a_long_name_is_shortened() {
    let long = "é".repeat(5_000);
    let model = after([link(Some(&long), None), added(0, "b"), read(0, &[1000])]);
    assert_eq!(notice(&model).chars().filter(|c| *c == 'é').count(), 80);
}

#[test]
fn among_files_dropped_together_the_link_finds_its_own() {
    let two = |contents: [u8; 2]| {
        let first =
            vec![link(Some("a"), Some(1)), added(0, "b"), added(1, "c"), hashed(0, contents[0]), read(0, &[1000])];
        [first, vec![hashed(1, contents[1]), read(1, &[1000])]].concat()
    };
    assert_eq!(check("the second", two([2, 1]), true, false, "").current, Some(FileKey(1)));
    assert_eq!(check("the first", two([1, 2]), true, false, "").current, Some(KEY));
}

#[test]
fn a_link_to_an_open_file_is_followed_at_once() {
    let open = || vec![added(0, "a"), read(0, &[1000]), hashed(0, 1), added(1, "b"), read(1, &[1000]), hashed(1, 2)];
    let then = |action: Action| [open(), vec![Action::FirstPicture, action]].concat();
    let same = check("its content", then(link(Some("x"), Some(1))), true, false, "");
    assert_eq!(same.current, Some(KEY));
    check("its name, another content", then(link(Some("a"), Some(9))), false, true, DIFFERS);
    check("neither", then(link(Some("x"), Some(9))), false, true, "");
    check("its name, no content", then(link(Some("b"), None)), true, false, BY_NAME);
}

#[test]
fn what_was_withheld_can_be_applied() {
    let differs = vec![link(Some("a"), Some(1)), added(0, "a"), hashed(0, 2), read(0, &[1000])];
    let applied = check("anyway", [differs.clone(), vec![Action::ApplyWithheld]].concat(), true, false, "");
    assert_eq!(applied.notice, None);
    let closed = [differs.clone(), vec![Action::FileClosed(KEY), Action::ApplyWithheld]].concat();
    check("a file that was closed", closed, false, false, "");
    check("dismissed", [differs, vec![Action::DismissNotice, Action::ApplyWithheld]].concat(), false, false, "");
}

#[test]
fn a_link_that_names_nothing_is_for_what_is_opened_first() {
    let opened = || Action::SharedAdded { key: KEY, link: SharedLink::default() };
    check("a file", vec![link(None, None), added(0, "b"), read(0, &[1000])], true, false, "");
    let shared = |wanted: Action| vec![wanted, opened(), read(0, &[1000])];
    check("a shared trace", shared(link(None, None)), true, false, "");
    check("whatever else its link says", shared(link(Some("a"), Some(7))), true, false, "");
    check("the current file", vec![added(0, "b"), read(0, &[1000]), link(None, None)], true, false, "");
    let watching = watched(0, 100).into_iter().chain([link(None, None)]).collect();
    check("a session", watching, true, false, "");
}

#[test]
fn what_was_not_restored_is_said() {
    let of = |fragment: &str| vec![typed(fragment), added(0, "a"), hashed(0, 1), read(0, &[1000])];
    let hash = hash(1);
    for (fragment, said) in [
        ("color=mud&cur=12", "Part of this link could not be read: the colours."),
        ("sel=a99999&cur=12", "This file doesn't have all that the link shows. Not restored: the selection."),
        ("dev=9&cur=12", "Not restored: the device."),
        ("w=5000,6000&x=event&r=1,5000", "Not restored: the visible part, the range."),
        ("cur=2000&cur=x", "Part of this link could not be read: the cursor."),
        (
            "a=1&color=x&sel=x&tab=x&f=&q=&w=x",
            "a part that this version doesn't know, the colours, the selection, the tab, a filter and 2 more.",
        ),
    ] {
        let model = after(of(&format!("v=1&hash={hash}&{fragment}")));
        assert!(notice(&model).contains(said), "{fragment}: {}", notice(&model));
        assert_eq!(model.link, None, "{fragment}");
    }
    let newer = after(of(&format!("v=9&hash={hash}&cur=12&fog=1")));
    let said = "This link is from a newer version of Vramscope. Not restored: a part that this version doesn't know.";
    assert_eq!((notice(&newer), newer.view.cursor), (said, 12));
    let whole = after(of(&format!("v=9&hash={hash}&cur=12")));
    assert_eq!(notice(&whole), "This link is from a newer version of Vramscope. Its view was restored.");
}

#[test]
fn what_was_not_understood_of_a_session_s_link_is_said() {
    let model = watched(0, 100).into_iter().chain([typed("v=1&session=abcdefghijklmnopqrstuvwxyz&cur=12&color=mud")]);
    let model = after(model);
    assert_eq!((model.view.cursor, notice(&model)), (12, "Part of this link could not be read: the colours."));
}

#[test]
fn zooms_and_choices_of_a_view_survive_its_link() {
    use query::RangeOrder;
    let model = after([
        added(0, "a"),
        read(0, &[1000]),
        Action::SetAxis(Axis::Event),
        Action::SetSegmentZoom(2.5),
        Action::Set(Setting::SegmentsByClass(true)),
        Action::Set(Setting::FlameAsTable(true)),
        Action::SetFlameZoom(vec![4, 17]),
        Action::Set(Setting::FitsRequested(true)),
        Action::SetBytes(Some(Window { start: 1.0, end: 9.0 })),
        Action::SetRange(Some((5, 9))),
        Action::Set(Setting::RangeOrder(RangeOrder::Churn)),
        Action::Select(Selection::Site(3)),
    ]);
    let Parsed::Link(link) = Link::parse(&model.view_link().unwrap().to_string()) else { panic!("no link") };
    assert_eq!(*link, Read::from(model.view_link().unwrap()));
    let other = after([Action::LinkRead(link), added(0, "b"), read(0, &[1000])]);
    assert_eq!(other.view, model.view);
    let refitted = update(&model, Action::Set(Setting::FitsRequested(false)));
    assert_eq!((refitted.view.zooms.bytes, refitted.view.settings.fits_requested), (None, false));
}

#[test]
fn transforms_and_orders_survive_their_link() {
    use query::{SegmentGroup, SegmentOrder, Transform};
    let model = after([
        added(0, "a"),
        read(0, &[1000]),
        Action::AddTransform(Transform::Merge(7)),
        Action::AddTransform(Transform::FocusSubtree(vec![3, 4, 12])),
        Action::SetSandwich(Some((9, true))),
        Action::Set(Setting::FlameDiffers(true)),
        Action::Set(Setting::SegmentOrder(SegmentOrder::Free)),
        Action::Set(Setting::SegmentGroup(SegmentGroup::PoolAndStream)),
    ]);
    let Parsed::Link(link) = Link::parse(&model.view_link().unwrap().to_string()) else { panic!("no link") };
    let other = after([Action::LinkRead(link), added(0, "b"), read(0, &[1000])]);
    assert_eq!(other.view, model.view);
}
