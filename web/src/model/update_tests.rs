//! Tests of `update`.

use query::diagnosis::Verdict;
use query::link::{FileHash, Link, Setting};
use query::{Axis, ColorBy, DeviceSummary, EventColumn, Moments, Paint, Summary, Window};
use trace::totals::Totals;

use super::*;
use crate::model::state::DataState;
use crate::model::testing::{added, after, device, read, summary, swept};
use crate::model::{Dialog, Listing, SharedLink, Side, Split, Trouble};
use crate::worker::message::{Detail, DetailState};

/// A model with one open file of one second on the time axis, then some actions.
fn open(actions: impl IntoIterator<Item = Action>) -> Model {
    after([added(0, "a"), read(0, &[1000]), Action::SetAxis(Axis::Time)].into_iter().chain(actions))
}

fn window(start: f64, end: f64) -> Window {
    Window { start, end }
}

#[test]
fn a_file_goes_from_empty_over_loading_to_ready() {
    assert_eq!(after([]).data_state(), DataState::Empty);
    assert_eq!(after([added(0, "a")]).data_state(), DataState::Loading);
    assert_eq!(open([]).data_state(), DataState::Loading, "read, and not drawn yet");
    assert_eq!(open([Action::FirstPicture]).data_state(), DataState::Ready);
    let failed = Action::FileFailed { key: FileKey(0), message: "cut off".to_owned() };
    assert_eq!(after([added(0, "a"), failed]).data_state(), DataState::Error);
    assert_eq!(open([Action::FileClosed(FileKey(0))]).data_state(), DataState::Empty);
}

#[test]
fn a_sweep_is_ready_and_has_nothing_of_a_trace() {
    let model = open([Action::SetTab(Tab::Flame), added(1, "sweep.json"), swept(1)]);
    assert_eq!((model.current, model.data_state()), (Some(FileKey(1)), DataState::Ready));
    assert!(model.shared_summary().is_none() && model.device().is_none() && model.view_link().is_none());
    // What is done to views changes nothing that is shown, and the trace beside it keeps its own.
    let actions = [Action::FirstPicture, Action::FitAll, Action::SetDevice(3), Action::StepOut];
    let after = actions.into_iter().fold(model, |model, action| update(&model, action));
    assert_eq!(after.data_state(), DataState::Ready);
    assert_eq!(update(&after, Action::SelectFile(FileKey(0))).view.tab, Tab::Flame);
}

#[test]
fn a_file_opens_whole_on_its_busiest_device_with_the_cursor_at_the_peak() {
    let model = after([added(0, "a"), read(0, &[10, 1000, 1000])]);
    assert_eq!((model.view.device, model.view.tab, model.view.cursor), (1, Tab::Timeline, 500));
    assert_eq!((model.view.axis, model.view.window), (Axis::Event, window(0.0, 1001.0)));
    let empty = after([added(0, "a"), read(0, &[0])]);
    assert_eq!(empty.view.tab, Tab::Segments, "no events, so no timeline");
}

#[test]
fn a_file_opens_where_memory_ran_out() {
    let mut oom = device(1000);
    oom.ooms = vec![(100, 1), (900, 1)];
    oom.decisive_oom = Some(900);
    let summary = Summary { devices: vec![oom], ..(*summary(&[])).clone() };
    let model = after([added(0, "a"), Action::FileLoaded { key: FileKey(0), summary: Shared::new(summary) }]);
    assert_eq!((model.view.cursor, model.view.window), (900, window(700.0, 950.0)), "the window before it");
    let whole = after([added(0, "a"), read(0, &[1000])]);
    assert_eq!((whole.view.cursor, whole.view.window), (500, whole.extent()), "the whole trace");
}

#[test]
fn a_leak_shows_in_the_whole_trace_unless_somebody_looks_elsewhere() {
    let mut oom = device(1000);
    (oom.ooms, oom.decisive_oom) = (vec![(900, 1)], Some(900));
    let summary = Summary { devices: vec![oom], ..(*summary(&[])).clone() };
    let key = FileKey(0);
    let opened = after([added(0, "a"), Action::FileLoaded { key, summary: Shared::new(summary) }]);
    let diagnosed = |cause, model: &Model| {
        let verdict = Verdict { cause, position: Some(900), ..Verdict::default() };
        let diagnosis = Shared::new(Diagnosis { verdict, ..Diagnosis::default() });
        update(model, Action::Diagnosed { key, device: 0, diagnosis, revision: 0 }).view
    };
    let leak = diagnosed(Cause::Leak, &opened);
    assert_eq!((leak.window, leak.cursor), (opened.extent(), 900));
    assert_eq!(diagnosed(Cause::Full, &opened).window, window(700.0, 950.0));
    for looks in [Action::SetCursor(7), Action::Pan(-1.0), Action::SetTab(Tab::Events)] {
        let elsewhere = update(&opened, looks);
        assert_eq!(diagnosed(Cause::Leak, &elsewhere).window, elsewhere.view.window);
    }
    let waits = update(&opened, Action::Hint(None));
    assert_eq!(diagnosed(Cause::Leak, &waits).window, opened.extent());
}

#[test]
fn only_a_line_that_is_to_blame_is_the_culprit() {
    let culprit = |cause, is_growing, line: &str| {
        let verdict = Verdict { cause, is_growing, line: Some(line.to_owned()), ..Verdict::default() };
        let diagnosis = Shared::new(Diagnosis { verdict, ..Diagnosis::default() });
        update(&open([]), Action::Diagnosed { key: FileKey(0), device: 0, diagnosis, revision: 0 }).culprit()
    };
    let line = "keep  train.py:3";
    assert_eq!(culprit(Cause::Leak, false, line), Some(Paint::line(line)));
    assert_eq!(culprit(Cause::None, true, line), Some(Paint::line(line)));
    assert_eq!(culprit(Cause::Full, false, line), None, "it holds most");
    assert_eq!(culprit(Cause::None, false, line), None, "nothing failed");
    assert_eq!(culprit(Cause::Leak, false, query::NO_STACK), None);
}

#[test]
fn a_file_opens_on_the_device_that_ran_out_of_memory_else_on_the_fullest() {
    let first = |devices| View::first(&Summary { devices, ..(*summary(&[])).clone() }).device;
    let full = |events, requested| DeviceSummary { peak: Totals { requested, ..Totals::default() }, ..device(events) };
    assert_eq!(first(vec![full(1000, 5), full(10, 7), full(500, 7)]), 2, "the fuller, of those the busier");
    let failed = DeviceSummary { ooms: vec![(3, 1)], decisive_oom: Some(3), ..full(10, 1) };
    assert_eq!(first(vec![full(1000, 5), failed, full(10, 7)]), 1);
}

#[test]
fn showing_a_position_zooms_to_what_led_there() {
    let on_events = open([Action::SetAxis(Axis::Event), Action::SetTab(Tab::Findings), Action::ShowPosition(600)]);
    assert_eq!((on_events.view.cursor, on_events.view.tab), (600, Tab::Timeline));
    assert_eq!((on_events.view.window, on_events.view.wanted_axis), (window(400.0, 650.0), None));
    let at_end = update(&on_events, Action::ShowPosition(u32::MAX));
    assert_eq!((at_end.view.cursor, at_end.view.window), (1000, window(751.0, 1001.0)));
    let on_time = open([Action::ShowPosition(600)]);
    assert_eq!((on_time.view.window, on_time.view.wanted_axis), (window(400.0, 650.0), Some(Axis::Time)));
    let mapped = update(&on_time, Action::AxisMapped(Axis::Time, window(4e5, 6e5)));
    assert_eq!((mapped.view.axis, mapped.view.window), (Axis::Time, window(4e5, 6e5)));
}

#[test]
fn each_file_keeps_its_view() {
    let model = open([
        Action::SetCursor(7),
        Action::SetTab(Tab::Flame),
        added(1, "b"),
        read(1, &[50]),
        Action::SetCursor(9),
        Action::SetTab(Tab::Events),
        Action::SelectFile(FileKey(0)),
    ]);
    assert_eq!((model.view.cursor, model.view.tab), (7, Tab::Flame));
    let model = update(&model, Action::SelectFile(FileKey(1)));
    assert_eq!((model.view.cursor, model.view.tab), (9, Tab::Events));
    let model = update(&model, Action::FileClosed(FileKey(1)));
    assert_eq!((model.current, model.view.cursor), (Some(FileKey(0)), 7));
}

#[test]
fn of_several_files_dropped_at_once_the_first_is_shown() {
    assert_eq!(after([added(0, "a"), added(1, "b")]).current, Some(FileKey(0)));
    assert_eq!(open([Action::FirstPicture, added(1, "b")]).current, Some(FileKey(1)));
}

#[test]
fn a_file_that_fails_behind_another_one_is_named() {
    let failed = |key| Action::FileFailed { key: FileKey(key), message: "It is a picture.".to_owned() };
    let said = |actions: &[Action]| after(actions.to_vec()).notice.map(|notice| notice.text);
    let files = [added(0, "a"), added(1, "b.png"), added(2, "c.png")];
    let with = |more: &[Action]| [&files[..], more].concat();
    assert_eq!(said(&with(&[failed(0)])), None, "the shown file says it itself");
    assert_eq!(said(&with(&[failed(1)])).as_deref(), Some("b.png can't be opened. It is a picture."));
    let shown = [failed(1), Action::DismissNotice, Action::SelectFile(FileKey(2)), failed(2)];
    assert_eq!(said(&with(&shown)), None, "an earlier one is not named again");
    let both = "c.png and 1 other file can't be opened. The menu of files has them, and each says why.";
    assert_eq!(said(&with(&[failed(1), failed(2)])).as_deref(), Some(both));
}

#[test]
fn the_window_stays_in_the_trace() {
    for (wanted, got) in [
        (window(-5.0, 95.0), window(0.0, 100.0)),
        (window(999_990.0, 1_000_090.0), window(999_900.0, 1e6)),
        (window(-1e9, 1e9), window(0.0, 1e6)),
        (window(f64::NAN, 5.0), window(0.0, 1e6)),
        (window(10.0, 10.0), window(8.0, 12.0)),
        (window(0.0, 0.0), window(0.0, 4.0)),
    ] {
        assert_eq!(open([Action::SetWindow(wanted)]).view.window, got, "{wanted:?}");
    }
}

#[test]
fn zoom_keeps_the_point_under_the_pointer() {
    let zoomed = open([Action::Zoom { factor: 0.5, at: Some(250_000.0) }]).view.window;
    assert_eq!(zoomed, window(125_000.0, 625_000.0));
    let middle = open([Action::Zoom { factor: 0.5, at: Some(-3.0) }]).view.window;
    assert_eq!(middle, window(250_000.0, 750_000.0), "a point that isn't shown can't be kept");
    let panned = open([Action::SetWindow(window(0.0, 100.0)), Action::Pan(0.25)]).view.window;
    assert_eq!(panned, window(25.0, 125.0));
}

#[test]
fn the_window_follows_a_change_of_the_axis() {
    assert_eq!(open([Action::SetAxis(Axis::Event)]).view.window, window(0.0, 1001.0));
    let zoomed = open([Action::SetWindow(window(0.0, 100.0)), Action::SetAxis(Axis::Event)]);
    assert_eq!((zoomed.view.axis, zoomed.view.wanted_axis), (Axis::Time, Some(Axis::Event)));
    let mapped = update(&zoomed, Action::AxisMapped(Axis::Event, window(3.0, 40.0)));
    assert_eq!((mapped.view.axis, mapped.view.window), (Axis::Event, window(3.0, 40.0)));
    let late = update(&mapped, Action::AxisMapped(Axis::Time, window(3.0, 40.0)));
    assert_eq!(late, mapped, "an answer that nobody waits for any more");
}

#[test]
fn the_window_follows_the_cursor_only_where_it_must() {
    let zoomed = open([Action::SetWindow(window(0.0, 100.0)), Action::SetCursor(40)]);
    let inside = update(&zoomed, Action::CursorAt { position: 40, x: 50.0 });
    assert_eq!(inside.view.window, window(0.0, 100.0));
    let outside = update(&zoomed, Action::CursorAt { position: 40, x: 500.0 });
    assert_eq!(outside.view.window, window(410.0, 510.0));
    let stale = update(&zoomed, Action::CursorAt { position: 41, x: 500.0 });
    assert_eq!(stale.view.window, window(0.0, 100.0));
}

#[test]
fn the_cursor_stops_at_both_ends() {
    assert_eq!(open([Action::SetCursor(5000)]).view.cursor, 1000);
    assert_eq!(open([Action::SetCursor(3), Action::MoveCursor(-10)]).view.cursor, 0);
    assert_eq!(open([Action::MoveCursor(i64::MAX)]).view.cursor, 1000);
}

#[test]
fn filters_are_trimmed_and_unique() {
    let chips = |actions: Vec<Action>| open(actions).view.filter;
    let add = |term: &str| Action::AddFilter(term.to_owned());
    assert_eq!(chips(vec![add(" a "), add("a"), add(""), add("b")]), ["a", "b"]);
    assert_eq!(chips(vec![add("a"), add("b"), Action::RemoveFilter(0), Action::RemoveFilter(9)]), ["b"]);
    assert!(chips(vec![add("a"), Action::ClearFilters]).is_empty());
}

#[test]
fn esc_clears_from_the_inside_out() {
    let mut model = open([
        Action::SetWindow(window(0.0, 100.0)),
        Action::Select(Selection::Allocation(3)),
        Action::SetHighlight(Some("attn".to_owned())),
        Action::OpenDialog(Dialog::Help),
    ]);
    let mut step = || {
        model = update(&model, Action::StepOut);
        (model.dialog.is_some(), model.view.highlight.is_some(), model.view.selection, model.view.window.end)
    };
    assert_eq!(step(), (false, true, Selection::Allocation(3), 100.0));
    assert_eq!(step(), (false, false, Selection::Allocation(3), 100.0));
    assert_eq!(step(), (false, false, Selection::None, 100.0));
    assert_eq!(step(), (false, false, Selection::None, 100.0), "the window stays");
}

#[test]
fn a_class_is_no_longer_selected_when_colours_mean_something_else() {
    let model = open([Action::Select(Selection::Class(3)), Action::Set(Setting::ColorBy(ColorBy::Size))]);
    assert_eq!(model.view.selection, Selection::None);
}

#[test]
fn a_link_is_restored_over_a_file_of_its_name_only() {
    let link = || {
        let link = Link { file: Some("a".to_owned()), tab: Tab::Events, cursor: Some(12), ..Link::default() };
        Action::LinkRead(Box::new(link.into()))
    };
    let same = after([link(), added(0, "a"), read(0, &[1000])]);
    assert_eq!((same.view.tab, same.view.cursor, &same.link), (Tab::Events, 12, &None));
    let other = after([link(), added(0, "b"), read(0, &[1000])]);
    assert_eq!((other.view.tab, other.view.cursor, &other.link), (Tab::Timeline, 500, &None));
    let said = |model: &Model| model.notice.clone().unwrap().text;
    assert_eq!(
        [said(&same), said(&other)],
        [
            "The link names only the file, so Vramscope can't tell whether it is the same one.",
            "The link is for “a”. This is a different file, so it opens with the default view.",
        ]
    );
    let both = after([link(), added(0, "b"), added(1, "a"), read(0, &[1000]), read(1, &[1000])]);
    assert_eq!((both.current, both.view.tab), (Some(FileKey(1)), Tab::Events));
}

/// The start page asked for the file to be dropped, which nobody has: the address named where to fetch it.
#[test]
fn a_link_does_not_wait_for_a_file_of_another_server_that_was_closed() {
    let link = || {
        let link = Link { file: Some("a".to_owned()), hash: Some(FileHash::of_digest(&[7; 32])), ..Link::default() };
        Action::LinkRead(Box::new(link.into()))
    };
    let from = |url: Option<&str>| Action::FileFrom {
        key: FileKey(0),
        origin: "https://example.org".to_owned(),
        url: url.map(str::to_owned),
    };
    let failed = || Action::FileFailed { key: FileKey(0), message: "It is gone.".to_owned() };
    let waits =
        |from: Action| after([link(), added(0, "a"), from, failed(), Action::FileClosed(FileKey(0))]).link.is_some();
    assert!(!waits(from(Some("https://example.org/a"))));
    assert!(waits(from(None)), "the site may send it again");
}

#[test]
fn a_view_survives_its_link() {
    let model = open([
        Action::SetWindow(window(10.0, 90.5)),
        Action::SetCursor(48),
        Action::SetRange(Some((7, 900))),
        Action::Set(Setting::Listing(Listing::Growth)),
        Action::Select(Selection::Allocation(12)),
        Action::AddFilter(">1MiB".to_owned()),
        Action::SetHighlight(Some("attn".to_owned())),
        Action::Set(Setting::ColorBy(ColorBy::Stream)),
        Action::Set(Setting::Folds(false)),
        Action::SetTab(Tab::Flame),
    ]);
    let link = model.view_link().unwrap();
    assert_eq!((&link.file, &link.session), (&None, &None));
    let view = View::restore(&link, model.shared_summary().unwrap());
    assert_eq!(View { follows_cursor: true, ..view }, model.view);
}

#[test]
fn a_link_to_missing_things_is_clamped() {
    let link = Link {
        device: 7,
        cursor: Some(u32::MAX),
        selection: Selection::Allocation(u32::MAX),
        window: Some(window(1e9, 2e9)),
        ..Link::default()
    };
    let view = View::restore(&link, &summary(&[1000]));
    assert_eq!((view.device, view.cursor, view.selection), (0, 1000, Selection::None));
    assert_eq!(view.window, window(0.0, 1001.0));
}

#[test]
fn a_range_is_marked_at_the_cursor_and_extended_from_there() {
    let at = |cursor| Action::SetCursor(cursor);
    let extend = Action::ExtendRange;
    for (what, actions, want) in [
        ("a mark", vec![at(300), Action::MarkRange], Some((300, 300))),
        ("from a mark", vec![at(300), Action::MarkRange, at(100), Action::MarkRange], Some((100, 300))),
        (
            "the nearer end moves",
            vec![Action::SetRange(Some((900, 100))), at(200), Action::MarkRange],
            Some((200, 900)),
        ),
        ("or the other", vec![Action::SetRange(Some((100, 900))), at(800), Action::MarkRange], Some((100, 800))),
        ("within the trace", vec![Action::SetRange(Some((5, u32::MAX)))], Some((5, 1000))),
        ("extended", vec![at(300), extend(320), extend(340)], Some((300, 340))),
        ("and back over its start", vec![at(300), extend(320), extend(280)], Some((280, 300))),
        ("a new one elsewhere", vec![Action::SetRange(Some((1, 2))), at(300), extend(310)], Some((300, 310))),
        ("cleared", vec![Action::SetRange(Some((1, 2))), Action::SetRange(None)], None),
        ("of another device", vec![Action::SetRange(Some((1, 2))), Action::SetDevice(0)], None),
    ] {
        assert_eq!(open(actions).view.range, want, "{what}");
    }
    let extended = open([at(300), extend(320)]).view;
    assert_eq!((extended.cursor, extended.selection), (320, Selection::None));
}

#[test]
fn esc_clears_the_selection_before_the_range_and_keeps_the_window() {
    let zoomed = window(0.0, 100.0);
    let mut model = open([
        Action::SetWindow(zoomed),
        Action::SetRange(Some((5, 9))),
        Action::Select(Selection::Line(1)),
        Action::StepOut,
    ]);
    assert_eq!((model.view.selection, model.view.range), (Selection::None, Some((5, 9))));
    model = update(&model, Action::StepOut);
    assert_eq!((model.view.range, model.view.window), (None, zoomed));
    model = update(&model, Action::StepOut);
    assert_eq!(model.view.window, zoomed);
}

#[test]
fn lists_are_of_the_cursor_unless_something_else_was_chosen() {
    let moments = |actions: Vec<Action>| {
        let Moments { at, since } = open(actions).view.moments(500);
        (since, at)
    };
    let growth = || Action::Set(Setting::Listing(Listing::Growth));
    assert_eq!(moments(vec![]), (None, 500), "a file opens at its peak");
    assert_eq!(moments(vec![Action::SetCursor(7)]), (None, 7));
    assert_eq!(moments(vec![Action::SetCursor(7), Action::Set(Setting::Listing(Listing::AtPeak))]), (None, 500));
    assert_eq!(moments(vec![Action::SetCursor(7), growth()]), (Some(0), 7));
    assert_eq!(moments(vec![Action::SetRange(Some((20, 30))), growth()]), (Some(20), 30));
    // Behind the first finished step, set-up is no growth.
    let step = || Action::SetBaseline(Some((1, 40)));
    assert_eq!(moments(vec![Action::SetCursor(70), growth(), step()]), (Some(40), 70));
    assert_eq!(moments(vec![Action::SetCursor(7), growth(), step()]), (Some(0), 7));
    assert_eq!(moments(vec![Action::SetRange(Some((20, 30))), growth(), step()]), (Some(20), 30));
    assert_eq!(moments(vec![Action::SetCursor(7), Action::MarkRange, growth()]), (Some(0), 7), "a mark is no range");
}

#[test]
fn at_an_out_of_memory_lists_are_of_its_moment() {
    let summary = Summary {
        devices: vec![DeviceSummary { ooms: vec![(900, 1)], decisive_oom: Some(900), ..device(1000) }],
        ..(*summary(&[])).clone()
    };
    let model = after([added(0, "a"), Action::FileLoaded { key: FileKey(0), summary: Shared::new(summary) }]);
    assert_eq!(model.view.moments(500), Moments { at: 900, since: None });
}

/// A shared trace is being opened.
fn shared() -> Action {
    let link = SharedLink { token: "a".repeat(39), ..SharedLink::default() };
    Action::SharedAdded { key: FileKey(0), link }
}

fn detail(revision: u32, state: DetailState) -> Action {
    Action::FileDetail { key: FileKey(0), detail: Detail { done: 1, total: 2, revision, state } }
}

#[test]
fn a_shared_trace_is_shown_while_a_part_of_it_is_missing() {
    let named = Action::SharedNamed { key: FileKey(0), name: "run 7".to_owned(), bytes: 2 };
    let model = after([shared(), named, read(0, &[1000]), detail(1, DetailState::Loading), Action::FirstPicture]);
    let file = model.file().unwrap();
    assert_eq!((file.name.as_str(), file.size, model.data_state()), ("run 7", 2, DataState::Ready));
    assert_eq!(file.missing_detail().map(|detail| detail.revision), Some(1));
    let stopped = update(&model, detail(2, DetailState::Stopped("Cut.".to_owned())));
    assert!(stopped.file().unwrap().missing_detail().is_some());
    assert_eq!(stopped.data_state(), DataState::Ready, "what is shown stays");
    // All of it is here: the view stays where it is.
    let moved = update(&model, Action::SetCursor(7));
    let refolded = Action::FileRefolded { key: FileKey(0), summary: summary(&[1000]) };
    let whole = update(&update(&moved, refolded), detail(3, DetailState::Complete));
    assert_eq!((whole.file().unwrap().missing_detail(), whole.view.cursor), (None, 7));
}

#[test]
fn a_shared_trace_says_why_it_cannot_be_opened() {
    for (trouble, said) in [
        (Trouble::Password { tried: 0, wait_seconds: 0 }, "password"),
        (Trouble::Incomplete { characters: 3 }, "not complete"),
        (Trouble::Token, "token"),
        (Trouble::Gone("This link expired on 1 May.".to_owned()), "expired on 1 May"),
        (Trouble::Gone(String::new()), "deleted or has expired"),
        (Trouble::Unknown, "no such link"),
    ] {
        let model = after([shared(), Action::SharedRefused { key: FileKey(0), trouble: trouble.clone() }]);
        let file = model.file().unwrap();
        assert_eq!(file.shared.as_ref().unwrap().trouble.as_ref(), Some(&trouble));
        assert!(matches!(&file.phase, Phase::Failed { message } if message.contains(said)), "{trouble:?}");
        assert_eq!(model.data_state(), DataState::Error);
    }
}

#[test]
fn two_views_never_show_the_same_and_keep_their_places() {
    let right = Split { tab: Tab::Segments, side: Side::Right, percent: 40 };
    let two = |more: &[Action]| {
        let model = open([Action::SetSplit(Some(right))].into_iter().chain(more.iter().cloned()));
        (model.view.tab, model.view.split)
    };
    assert_eq!(two(&[]), (Tab::Timeline, Some(right)));
    let left = Split { tab: Tab::Timeline, side: Side::Left, percent: 40 };
    assert_eq!(two(&[Action::FocusView(Tab::Segments)]), (Tab::Segments, Some(left)));
    assert_eq!(two(&[Action::FocusView(Tab::Timeline)]), (Tab::Timeline, Some(right)));
    assert_eq!(two(&[Action::FocusView(Tab::Flame)]), (Tab::Timeline, Some(right)), "it is not shown");
    assert_eq!(two(&[Action::SetTab(Tab::Segments)]), (Tab::Segments, Some(left)), "gone to, not shown twice");
    assert_eq!(two(&[Action::SetTab(Tab::Flame)]), (Tab::Flame, Some(right)));
    let show = Action::ShowSegment { position: 3, address: trace::units::Address(1) };
    assert_eq!(two(&[show, Action::ShowPosition(5)]), (Tab::Timeline, Some(right)));
    assert_eq!(two(&[Action::SetSplit(None)]), (Tab::Timeline, None));
    let same = Split { tab: Tab::Timeline, ..right };
    assert_eq!(two(&[Action::SetSplit(Some(same))]), (Tab::Timeline, None));
    let link = Link { tab: Tab::Flame, split: Some(Split { tab: Tab::Flame, ..right }), ..Link::default() };
    assert_eq!(View::restore(&link, &summary(&[1000])).split, None, "a link that shows one twice");
}

#[test]
fn a_column_of_the_event_list_stays() {
    let all = EventColumn::ALL.map(Action::ToggleEventColumn);
    let model = open(all.clone());
    assert_eq!(model.view.settings.hidden_columns.len(), EventColumn::ALL.len() - 1);
    let model = open([EventColumn::Stream, EventColumn::Time].map(Action::ToggleEventColumn));
    assert_eq!(
        model.view.settings.hidden_columns,
        [EventColumn::Time, EventColumn::Stream],
        "in the order of the list"
    );
    assert_eq!(
        update(&model, Action::ToggleEventColumn(EventColumn::Time)).view.settings.hidden_columns,
        [EventColumn::Stream]
    );
}
