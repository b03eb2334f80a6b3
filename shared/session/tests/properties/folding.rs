//! A person's own rules change the lines, colours and folded boxes of a session.

use query::folding::{Overrides, fold, run_text};
use query::{AllocationQuery, Answer, FlameQuery, Query, SiteQuery};
use session::Session;
use trace::event::Action;
use trace::frames::{Frame, FrameId, Symbols};
use trace::units::Address;
use trace::{DeviceTrace, Event, Snapshot, Tag};

/// Innermost first.
const STACK: [(&str, &str); 5] = [
    ("dot", "/v/lib/python3.11/site-packages/torch/nn/functional.py"),
    ("attend", "/v/lib/python3.11/site-packages/mylib/attention.py"),
    ("_call_impl", "/v/lib/python3.11/site-packages/torch/nn/modules/module.py"),
    ("forward", "/home/me/model.py"),
    ("run", "/usr/lib/python3.11/threading.py"),
];

/// A session with one allocation that has [`STACK`], and one without a stack.
fn session() -> Session {
    let (mut snapshot, mut symbols) = (Snapshot::default(), Symbols::default());
    let frames: Vec<FrameId> = STACK
        .iter()
        .zip(1..)
        .map(|((name, file), line)| {
            let (name, filename) = (symbols.intern(name.as_bytes()), symbols.intern(file.as_bytes()));
            symbols.intern_frame(Frame { name, filename, line })
        })
        .collect();
    let stack = symbols.intern_stack(&frames);
    let tag = snapshot.tags.intern(Tag::default());
    let mut trace = DeviceTrace::default();
    let event =
        |action, address, size, stack| Event { action, address: Address(address), size, time_us: 0, tag, stack };
    trace.events.push(event(Action::SegmentAlloc, 0x100_0000, 20 << 20, stack));
    trace.events.push(event(Action::Alloc, 0x100_0000, 2 << 20, stack));
    trace.events.push(event(Action::Alloc, 0x120_0000, 1 << 20, Default::default()));
    snapshot.devices.push(trace);
    snapshot.symbols = symbols;
    Session::new(snapshot, "pickle".to_owned(), Vec::new(), &mut |_| {})
}

/// Returns the rows of the folded stack of an allocation.
fn rows(session: &mut Session, id: u32) -> Vec<String> {
    use query::folding::Part;
    let Answer::Allocation(detail) = session.answer(0, &Query::Allocation(AllocationQuery { id })) else {
        panic!("no allocation")
    };
    let frames = &detail.alloc_stack;
    let row = |part| match part {
        Part::Frame(i) => frames[i].name.clone(),
        Part::Folded(run) => run_text(&frames[run]),
    };
    fold(frames).into_iter().map(row).collect()
}

/// Returns the names of the boxes of the folded flame graph.
fn boxes(session: &mut Session, bottom_up: bool) -> Vec<String> {
    let (zoom, filter, highlight) = (Vec::new(), Vec::new(), None);
    let query = FlameQuery {
        position: 3,
        since: None,
        bottom_up,
        folds: true,
        by_category: false,
        zoom,
        width: 100.0,
        filter,
        highlight,
        ..FlameQuery::default()
    };
    let Answer::Flame(flame) = session.answer(0, &Query::Flame(query)) else { panic!("no flame graph") };
    flame.boxes.iter().map(|b| [&*b.name, &*b.location].join("|")).collect()
}

fn line(session: &mut Session) -> String {
    let Answer::Site(site) = session.answer(0, &Query::Site(SiteQuery { stack: 1, position: 3 })) else {
        panic!("no call site")
    };
    site.label
}

#[test]
fn a_persons_own_rules_change_every_answer() {
    let mut session = session();
    let state = |session: &mut Session| (line(session), rows(session, 0), boxes(session, true));
    let none = "no stack recorded|probably the backward pass: no Python frame on its thread";
    let table = state(&mut session);
    assert_eq!(table.0, "forward  me/model.py:4");
    assert_eq!(table.1, ["3 frames of torch and mylib", "forward", "1 frame of Python"]);
    assert_eq!(table.2, ["all live memory|", "forward|me/model.py:4", none]);

    let own: Overrides = "mine: site-packages/mylib".parse().expect("a rule");
    session.set_overrides(&own);
    let mine = state(&mut session);
    assert_eq!(mine.0, "attend  mylib/attention.py:2");
    assert_eq!(mine.1, ["1 frame of torch", "attend", "1 frame of torch", "forward", "1 frame of Python"]);
    let want = ["all live memory|", "attend|mylib/attention.py:2", none, "1 frame of torch|", "forward|me/model.py:4"];
    assert_eq!(mine.2, want);

    session.set_overrides(&"library: model.py".parse().expect("a rule"));
    // Without a line of the user's own, the innermost package represents the stack.
    let others = state(&mut session);
    assert_eq!(others.0, "attend  mylib/attention.py:2");
    assert_eq!(others.1, ["1 frame of torch", "attend", "3 frames of Python, model and 1 more"]);

    session.set_overrides(&Overrides::default());
    assert_eq!(state(&mut session), table);
}

#[test]
fn a_missing_stack_has_a_reason_and_a_remedy() {
    let mut session = session();
    let Answer::Allocation(detail) = session.answer(0, &Query::Allocation(AllocationQuery { id: 1 })) else {
        panic!("no allocation")
    };
    let missing = detail.missing.expect("a reason");
    assert!(missing.reason.contains("no Python code") && missing.remedy.contains("stacks=\"all\""), "{missing:?}");
    let Answer::Allocation(detail) = session.answer(0, &Query::Allocation(AllocationQuery { id: 0 })) else {
        panic!("no allocation")
    };
    assert_eq!(detail.missing, None);
}
