//! Tests of how the model handles a growing session.

use query::link::Link;
use query::{Axis, DeviceSummary, Summary, Window};
use trace::totals::Totals;
use wire::SessionState;

use super::*;
use crate::model::testing::{added, after, device, read, summary};
use crate::model::{Action, Dialog, Selection, Tab, update};
use crate::worker::message::{Connection, Failed, LiveStatus, MovedSelection, Trim, Update};

const SESSION: &str = "abcdefghijklmnopqrstuvwxyz";
const KEY: FileKey = FileKey(0);

fn window(start: f64, end: f64) -> Window {
    Window { start, end }
}

/// A device with one event per millisecond.
fn grown_device(events: u32) -> DeviceSummary {
    DeviceSummary { time: window(0.0, f64::from(events) * 1e3), span_us: i64::from(events) * 1000, ..device(events) }
}

fn holds(events: &[u32]) -> Summary {
    Summary { devices: events.iter().map(|events| grown_device(*events)).collect(), ..(*summary(&[])).clone() }
}

/// The session has grown to a number of events.
fn grows(events: u32) -> Action {
    grows_by(Update { summary: holds(&[events]), trims: Vec::new(), kept: None, oom: None })
}

fn grows_by(grown: Update) -> Action {
    Action::SessionUpdated { key: KEY, grown: Box::new(grown) }
}

fn told(state: SessionState, is_caught_up: bool) -> Action {
    let connection = if state == SessionState::Ended { Connection::Done } else { Connection::Open };
    let status = LiveStatus { state, connection, is_caught_up, ..LiveStatus::default() };
    Action::SessionStatus { key: KEY, status: Box::new(status) }
}

fn opened() -> Action {
    Action::SessionAdded { key: KEY, session: SESSION.to_owned() }
}

/// A session of one minute that is followed on the time axis, then some actions.
fn watched(actions: impl IntoIterator<Item = Action>) -> Model {
    let first = [
        opened(),
        told(SessionState::Live, false),
        grows(60_000),
        told(SessionState::Live, true),
        Action::SetAxis(Axis::Time),
    ];
    after(first.into_iter().chain(actions))
}

/// Whether the session is followed, the window, and the cursor.
fn place(model: &Model) -> (bool, Window, u32) {
    (model.live().unwrap().is_following, model.view.window, model.view.cursor)
}

const SEC: f64 = 1e6;

#[test]
fn a_session_waits_for_its_first_event_and_then_follows() {
    let none = DeviceSummary { has_times: false, ..grown_device(0) };
    let summary = Summary { devices: vec![none], ..holds(&[]) };
    let nothing = grows_by(Update { summary, trims: Vec::new(), kept: None, oom: None });
    let model = after([opened(), told(SessionState::Live, true), nothing]);
    assert!(matches!(model.file().unwrap().phase, Phase::Loading { stage: Stage::Waiting, .. }));
    let model = update(&model, grows(10));
    assert_eq!((model.view.tab, model.view.cursor), (Tab::Timeline, 10));
    assert!(model.live().unwrap().is_following);
}

#[test]
fn a_session_opens_with_statistics_and_then_shows_the_first_event() {
    let none = DeviceSummary { has_times: false, ..grown_device(0) };
    let by_state = DeviceSummary { end: Totals { reserved: 1, ..Totals::default() }, ..none.clone() };
    let by_statistics = DeviceSummary { has_times: true, ..none.clone() };
    for (device, opens_at) in [(none, None), (by_state, Some(Tab::Segments)), (by_statistics, Some(Tab::Timeline))] {
        let summary = Summary { devices: vec![device], ..holds(&[]) };
        let first = grows_by(Update { summary, trims: Vec::new(), kept: None, oom: None });
        let model = after([opened(), told(SessionState::Live, true), first]);
        let is_open = matches!(model.file().unwrap().phase, Phase::Ready { .. });
        assert_eq!(is_open.then_some(model.view.tab), opens_at);
        let model = update(&model, grows(10));
        assert_eq!((model.view.tab, model.view.axis, model.view.cursor), (Tab::Timeline, Axis::Time, 10));
        assert!(model.live().unwrap().is_following);
    }
}

#[test]
fn a_short_session_is_shown_whole_and_a_long_one_by_its_last_half_minute() {
    for (events, want) in
        [(1_000, window(0.0, SEC)), (30_000, window(0.0, 30.0 * SEC)), (90_000, window(60.0 * SEC, 90.0 * SEC))]
    {
        assert_eq!(place(&watched([grows(events)])), (true, want, events));
    }
    let on_events = watched([Action::SetAxis(Axis::Event), grows(300_000)]);
    assert_eq!(place(&on_events), (true, window(200_001.0, 300_001.0), 300_000));
}

#[test]
fn the_newest_event_stands_at_the_edge_however_long_the_session() {
    // As the worker sends it: a hundredth of the whole session after its last event.
    let mut summary = holds(&[1_000_000]);
    summary.devices[0].time = window(0.0, 1_010.0 * SEC);
    let model = watched([grows_by(Update { summary, trims: Vec::new(), kept: None, oom: None })]);
    assert_eq!(place(&model), (true, window(970.3 * SEC, 1_000.3 * SEC), 1_000_000));
    let zoomed = update(&model, Action::Zoom { factor: 0.1, at: None });
    assert_eq!(place(&zoomed), (true, window(997.03 * SEC, 1_000.03 * SEC), 1_000_000));
    assert!(!update(&zoomed, Action::SetWindow(window(996.0 * SEC, 999.0 * SEC))).live().unwrap().is_following);
}

#[test]
fn changes_of_the_view_keep_or_stop_the_following() {
    let at_30 = window(30.0 * SEC, 60.0 * SEC);
    let cases: [(&str, Action, bool, Window); 12] = [
        (
            "zooming in keeps now",
            Action::Zoom { factor: 0.5, at: Some(31.0 * SEC) },
            true,
            window(46.0 * SEC, 61.0 * SEC),
        ),
        ("zooming out keeps now", Action::Zoom { factor: 1.5, at: None }, true, window(16.0 * SEC, 61.0 * SEC)),
        ("a pan into the past", Action::Pan(-0.1), false, window(27.0 * SEC, 57.0 * SEC)),
        ("a pan where there is nothing", Action::Pan(0.5), true, window(31.0 * SEC, 61.0 * SEC)),
        ("a window in the past", Action::SetWindow(window(1.0, 100.0)), false, window(1.0, 100.0)),
        ("a window up to now", Action::SetWindow(window(59.0 * SEC, 60.0 * SEC)), true, window(60.0 * SEC, 61.0 * SEC)),
        ("all of it", Action::FitAll, true, window(0.0, 61.0 * SEC)),
        ("a click", Action::SetCursor(40_000), false, at_30),
        ("a step back", Action::MoveCursor(-1), false, at_30),
        ("a step at the end", Action::SetCursor(u32::MAX), true, window(31.0 * SEC, 61.0 * SEC)),
        ("another view", Action::SetTab(Tab::Segments), true, window(31.0 * SEC, 61.0 * SEC)),
        ("a selection", Action::Select(Selection::Site(1)), true, window(31.0 * SEC, 61.0 * SEC)),
    ];
    for (name, action, is_following, want) in cases {
        let model = watched([action, grows(61_000)]);
        let found = place(&model);
        assert_eq!((found.0, found.1), (is_following, want), "{name}");
        assert_eq!(found.2 == 61_000, is_following, "{name}: the cursor is at the end where it is followed");
    }
}

#[test]
fn a_view_of_the_past_stays_in_place() {
    let model =
        watched([Action::SetWindow(window(SEC, 2.0 * SEC)), Action::SetCursor(1_500), grows(70_000), grows(80_000)]);
    assert_eq!(place(&model), (false, window(SEC, 2.0 * SEC), 1_500));
    let back = update(&model, Action::JumpToNow);
    assert_eq!(place(&back), (true, window(50.0 * SEC, 80.0 * SEC), 80_000));
}

#[test]
fn a_paused_picture_stays_in_place_and_loses_nothing() {
    // The worker holds the session. Only a state that was sent before still arrives.
    let paused = watched([Action::TogglePause, grows(60_100)]);
    let live = paused.live().unwrap();
    assert!(live.is_paused && !live.is_following);
    assert_eq!(place(&paused), (false, window(30.0 * SEC, 60.0 * SEC), 60_000));
    assert_eq!(paused.device().unwrap().events, 60_100, "the page has what the worker answers from");
    let moved = update(&paused, Action::Pan(-0.5));
    assert_eq!(moved.view.window, window(15.0 * SEC, 45.0 * SEC));
    let resumed = update(&moved, Action::TogglePause);
    assert!(!resumed.live().unwrap().is_paused);
    assert_eq!(place(&update(&resumed, grows(75_000))), (true, window(45.0 * SEC, 75.0 * SEC), 75_000));
}

#[test]
fn resuming_keeps_the_zoom() {
    let resumed = |actions: Vec<Action>| {
        let first = [Action::TogglePause].into_iter().chain(actions).chain([Action::TogglePause, grows(75_000)]);
        place(&watched(first))
    };
    let zoomed = Action::SetWindow(window(18.0 * SEC, 25.5 * SEC));
    let select = || Action::Select(Selection::Site(1));
    let at_7 = (true, window(67.5 * SEC, 75.0 * SEC), 75_000);
    let is_near = |got: (bool, Window, u32), want: (bool, Window, u32)| {
        let near = |a: f64, b: f64| (a - b).abs() < 0.1 * SEC;
        assert_eq!((got.0, got.2), (want.0, want.2));
        assert!(near(got.1.start, want.1.start) && near(got.1.end, want.1.end), "{got:?}");
    };
    is_near(resumed(vec![zoomed.clone(), select()]), at_7);
    is_near(resumed(vec![select()]), (true, window(45.0 * SEC, 75.0 * SEC), 75_000));
    is_near(resumed(vec![Action::FitAll]), (true, window(0.0, 75.0 * SEC), 75_000));
    // Zoomed first, and paused then.
    let scrolled = watched([zoomed, Action::TogglePause, Action::TogglePause, grows(75_000)]);
    is_near(place(&scrolled), at_7);
}

fn let_go(events: u32, by: u32, kept: Option<MovedSelection>) -> Action {
    let trim = Trim { events: by, us: f64::from(by) * 1e3 };
    grows_by(Update { summary: holds(&[events]), trims: vec![trim], kept, oom: None })
}

#[test]
fn the_view_stays_in_place_when_older_events_are_dropped() {
    let scrolled = [Action::SetWindow(window(40.0 * SEC, 50.0 * SEC)), Action::SetCursor(45_000)];
    let model = watched(scrolled.into_iter().chain([let_go(35_000, 30_000, None)]));
    assert_eq!(place(&model), (false, window(10.0 * SEC, 20.0 * SEC), 15_000));
    assert_eq!(model.live().unwrap().epoch, 1);
    let gone = update(&model, let_go(30_000, 20_000, None));
    assert_eq!(place(&gone), (false, window(0.0, 10.0 * SEC), 0), "what went is not in view any more");
    let on_events = watched([
        Action::SetAxis(Axis::Event),
        Action::SetWindow(window(40_000.0, 50_000.0)),
        let_go(35_000, 30_000, None),
    ]);
    assert_eq!(on_events.view.window, window(10_000.0, 20_000.0));
    let following = watched([let_go(35_000, 30_000, None)]);
    assert_eq!(place(&following), (true, window(5.0 * SEC, 35.0 * SEC), 35_000));
}

#[test]
fn a_paused_picture_is_rebased_when_older_events_are_dropped() {
    let paused = watched([Action::TogglePause, grows(70_000), let_go(50_000, 30_000, None)]);
    assert_eq!(place(&paused), (false, window(0.0, 30.0 * SEC), 30_000));
    assert!(paused.live().unwrap().is_paused);
}

#[test]
fn the_selection_is_kept_by_its_new_number() {
    let select = || Action::Select(Selection::Allocation(500));
    let kept = |is| Some(MovedSelection { device: 0, was: 500, is });
    for (kept, want) in [
        (kept(Some(20)), Selection::Allocation(20)),
        (kept(None), Selection::None),
        (None, Selection::None),
        (Some(MovedSelection { device: 0, was: 499, is: Some(19) }), Selection::None),
        (Some(MovedSelection { device: 1, was: 500, is: Some(20) }), Selection::None),
    ] {
        assert_eq!(watched([select(), let_go(35_000, 30_000, kept)]).view.selection, want, "{kept:?}");
    }
    assert_eq!(watched([select(), grows(70_000)]).view.selection, Selection::Allocation(500));
    let site = watched([Action::Select(Selection::Site(4)), let_go(35_000, 30_000, None)]);
    assert_eq!(site.view.selection, Selection::Site(4));
}

fn failed(position: u32) -> Failed {
    Failed { device: 0, position, why: "The device was full.".to_owned() }
}

fn runs_out(events: u32, position: u32) -> Action {
    let mut summary = holds(&[events]);
    summary.devices[0].ooms = vec![(position, 1 << 31)];
    summary.devices[0].decisive_oom = Some(position);
    grows_by(Update { summary, trims: Vec::new(), kept: None, oom: Some(failed(position)) })
}

#[test]
fn running_out_of_memory_stops_the_following_at_that_moment() {
    let model = watched([runs_out(61_000, 60_900)]);
    let live = model.live().unwrap();
    assert_eq!(live.oom, Some(failed(60_900)));
    assert_eq!(place(&model), (false, window(31.0 * SEC, 61.0 * SEC), 60_900));
    assert!(model.view.follows_cursor, "its moment is looked up");
    let later = update(&model, let_go(31_000, 40_000, None));
    assert_eq!(later.live().unwrap().oom, Some(failed(20_900)));
    assert_eq!(update(&later, Action::DismissOom).live().unwrap().oom, None);
    let back = update(&later, Action::JumpToNow);
    assert_eq!((&back.live().unwrap().oom, back.live().unwrap().is_following), (&None, true));
}

#[test]
fn running_out_of_memory_does_not_move_a_view_of_the_past() {
    let scrolled = watched([Action::SetCursor(5), runs_out(61_000, 60_900)]);
    assert_eq!((scrolled.view.cursor, &scrolled.live().unwrap().oom), (5, &None));
    let late = after([opened(), told(SessionState::Live, false), grows(100), runs_out(61_000, 60_900)]);
    assert!(late.live().unwrap().is_following, "it happened before it was opened");
}

#[test]
fn an_ended_session_opens_whole() {
    let open = |loaded: Vec<Action>| {
        after(
            [opened(), told(SessionState::Ended, false)]
                .into_iter()
                .chain(loaded)
                .chain([told(SessionState::Ended, true)]),
        )
    };
    let model = open(vec![grows(100), grows(1_000)]);
    assert_eq!(place(&model), (false, window(0.0, SEC), 1_000));
    assert_eq!((model.view.axis, model.live().unwrap().can_jump()), (Axis::Time, false));
    let trimmed = open(vec![grows(100), grows(60_000), let_go(35_000, 30_000, None), grows(40_000)]);
    assert_eq!(place(&trimmed), (false, window(0.0, 40.0 * SEC), 40_000));
    assert_eq!(open(vec![grows(100), runs_out(1_000, 900)]).view.cursor, 900, "where memory ran out");
    let bare = Link { session: Some(SESSION.to_owned()), ..Link::default() };
    let linked = after([
        Action::LinkRead(Box::new(bare.into())),
        opened(),
        told(SessionState::Ended, false),
        grows(100),
        grows(1_000),
        told(SessionState::Ended, true),
    ]);
    assert_eq!((place(&linked), linked.link), ((false, window(0.0, SEC), 1_000), None));
}

#[test]
fn when_the_job_ends_the_picture_stays() {
    let model = watched([grows(61_000), told(SessionState::Ended, true)]);
    assert_eq!(place(&model), (false, window(31.0 * SEC, 61.0 * SEC), 61_000));
    let last = watched([told(SessionState::Ended, true), grows(61_000)]);
    assert_eq!(place(&last), (false, window(31.0 * SEC, 61.0 * SEC), 61_000), "what came last is shown, too");
    let touched = watched([told(SessionState::Ended, true), Action::SetCursor(7), grows(61_000)]);
    assert_eq!(touched.view.cursor, 7);
    let paused = watched([Action::TogglePause, grows(61_000), told(SessionState::Ended, true)]);
    assert!(paused.live().unwrap().is_paused && paused.live().unwrap().can_jump());
    let resumed = update(&paused, Action::TogglePause);
    assert_eq!(place(&resumed), (false, window(31.0 * SEC, 61.0 * SEC), 61_000));
    assert!(!resumed.live().unwrap().is_paused);
    assert_eq!(update(&resumed, Action::TogglePause), resumed, "there is nothing to pause");
}

#[test]
fn a_refused_session_fails_or_keeps_its_events() {
    let refused = |message: &str| {
        let connection = Connection::Refused { message: message.to_owned(), wants_token: true };
        let status = LiveStatus { connection, ..LiveStatus::default() };
        Action::SessionStatus { key: KEY, status: Box::new(status) }
    };
    let model = after([opened(), refused("No.")]);
    assert_eq!(model.file().unwrap().phase, Phase::Failed { message: "No.".to_owned() });
    let model = watched([refused("The disk is full.")]);
    assert!(model.shared_summary().is_some() && !model.live().unwrap().is_open(), "what came stays");
}

#[test]
fn a_session_grows_in_the_background() {
    let model = watched([added(1, "b"), Action::SelectFile(FileKey(1)), grows(70_000), let_go(50_000, 30_000, None)]);
    assert_eq!(model.current, Some(FileKey(1)));
    let back = update(&model, Action::SelectFile(KEY));
    assert_eq!(place(&back), (true, window(20.0 * SEC, 50.0 * SEC), 50_000));
    let start = update(&back, Action::ShowStart);
    assert_eq!((start.current, start.files.len(), start.dialog), (None, 2, None));
    assert_eq!(place(&update(&start, Action::SelectFile(KEY))), place(&back));
    assert_eq!(update(&watched([Action::OpenDialog(Dialog::Help)]), Action::ShowStart).dialog, None);
}

#[test]
fn a_session_shows_its_name() {
    let named = |name: &str| Action::SessionNamed { key: KEY, name: name.to_owned(), mode: "every event".to_owned() };
    assert_eq!(watched([]).file().unwrap().name, "session abcdefgh");
    let model = watched([named("pretrain")]);
    assert_eq!((model.file().unwrap().name.as_str(), model.live().unwrap().mode.as_str()), ("pretrain", "every event"));
    assert_eq!(watched([named("")]).file().unwrap().name, "session abcdefgh");
    let origin = Some(query::Origin { name: "told".to_owned(), ..Default::default() });
    let grown = Update { summary: Summary { origin, ..holds(&[5]) }, trims: Vec::new(), kept: None, oom: None };
    assert_eq!(after([opened(), grows_by(grown)]).file().unwrap().name, "told");
}

#[test]
fn a_link_to_a_session_is_restored_once_it_is_loaded() {
    let link = |link: Link| Action::LinkRead(Box::new(Link { session: Some(SESSION.to_owned()), ..link }.into()));
    let open = |wanted: Link| {
        after([
            link(wanted),
            opened(),
            told(SessionState::Live, false),
            grows(100),
            grows(60_000),
            told(SessionState::Live, true),
            grows(60_100),
        ])
    };
    let plain = open(Link { tab: Tab::Flame, ..Link::default() });
    assert_eq!((plain.view.tab, plain.view.cursor, plain.live().unwrap().is_following), (Tab::Flame, 60_100, true));
    let placed = open(Link {
        cursor: Some(40_000),
        axis: Axis::Event,
        window: Some(window(39_000.0, 41_000.0)),
        ..Link::default()
    });
    assert_eq!(place(&placed), (false, window(39_000.0, 41_000.0), 40_000));
    assert_eq!(placed.link, None);
    let other = after([link(Link::default()), added(1, "a"), read(1, &[50])]);
    assert_eq!(other.link, None);
}

#[test]
fn a_link_to_an_open_session_is_followed_at_once() {
    let link = |link: Link| Action::LinkRead(Box::new(link.into()));
    let session = || Link { session: Some(SESSION.to_owned()), ..Link::default() };
    let cut = Link { cursor: Some(40_000), axis: Axis::Event, window: Some(window(39_000.0, 41_000.0)), ..session() };
    let placed = watched([link(cut)]);
    assert_eq!(place(&placed), (false, window(39_000.0, 41_000.0), 40_000));
    assert_eq!(placed.link, None);
    let followed = update(&placed, link(Link { tab: Tab::Flame, ..session() }));
    assert_eq!((followed.view.tab, followed.live().unwrap().is_following), (Tab::Flame, true));
    assert_eq!(followed.view.cursor, 60_000);
    let left = update(&update(&placed, Action::ShowStart), link(session()));
    assert_eq!(left.current, Some(KEY));
    let file = after([added(1, "a.pickle"), read(1, &[50])]);
    let there = update(&file, link(Link { file: Some("a.pickle".to_owned()), cursor: Some(7), ..Link::default() }));
    assert_eq!((there.view.cursor, there.link), (7, None));
    let elsewhere = update(&file, link(Link { file: Some("b.pickle".to_owned()), cursor: Some(7), ..Link::default() }));
    assert_eq!(elsewhere.view, file.view);
    assert!(elsewhere.link.is_some(), "it waits for its file");
}

#[test]
fn another_device_is_followed_too() {
    let both = |a, b| grows_by(Update { summary: holds(&[a, b]), trims: Vec::new(), kept: None, oom: None });
    let model = watched([both(60_000, 50_000), Action::SetDevice(1), both(60_000, 51_000)]);
    assert_eq!(place(&model), (true, window(21.0 * SEC, 51.0 * SEC), 51_000));
}

#[test]
fn the_page_of_another_file_shows_of_a_session_what_menus_say() {
    let [running, ended] = [SessionState::Live, SessionState::Ended].map(|state| told(state, true));
    let quiet = LiveStatus { quiet_us: 5, is_caught_up: true, connection: Connection::Open, ..LiveStatus::default() };
    let quiet = Action::SessionStatus { key: KEY, status: Box::new(quiet) };
    let hidden = watched([running, added(1, "a"), read(1, &[10])]);
    let waiting = after([opened(), added(1, "a"), read(1, &[10]), Action::SelectFile(FileKey(1))]);
    assert_eq!(hidden.current, Some(FileKey(1)));
    for (before, action, is_noticed) in [
        (&hidden, grows(70_000), false),
        (&hidden, quiet.clone(), false),
        (&hidden, ended, true),
        (&waiting, grows(10), true),
        (&update(&hidden, Action::SelectFile(KEY)), grows(70_000), true),
        (&update(&hidden, Action::SelectFile(KEY)), quiet, true),
    ] {
        assert_eq!(crate::model::is_noticed(before, &update(before, action.clone()), KEY), is_noticed, "{action:?}");
    }
}
