use crate::Session;
use query::{
    Answer, EventColumn, EventFilter, EventOrder, EventTextQuery, EventsQuery, FindQuery, Found, ListStart,
    NextHitQuery, PartnerQuery, Query, SearchQuery, SearchResult,
};

/// A trace with two streams and two lines of call sites, which ends with a request that failed.
const STORY: &str = "segment_alloc 0x10000000 209715200
    alloc 0x10000000 60000000 forward@/m/model.py:5 step@/m/train.py:1
    alloc 0x14000000 50000000 forward@/m/model.py:5 evaluate@/m/train.py:9
    alloc 0x18000000 30000000 remember@/m/cache.py:7 step@/m/train.py:1
    free 0x10000000
    free 0x14000000
    segment_alloc 0x40000000 20971520 stream=7
    alloc 0x40000000 620756992 stream=7 remember@/m/cache.py:7 step@/m/train.py:1
    oom 0x0 99000000";

fn open() -> Session {
    Session::new(trace::testing::snapshot(STORY), "pickle".to_owned(), Vec::new(), &mut |_| {})
}

fn search(session: &mut Session, term: &str) -> SearchResult {
    let Answer::Search(found) = session.answer(0, &Query::Search(SearchQuery { term: term.to_owned() })) else {
        panic!("no result")
    };
    found
}

fn find(session: &mut Session, term: &str, first: u32, rows: u32) -> Found {
    let query = FindQuery { term: term.to_owned(), position: u32::MAX, start: ListStart::At(first), rows };
    let Answer::Find(found) = session.answer(0, &Query::Find(query)) else { panic!("no list") };
    *found
}

#[test]
fn what_nothing_matches_is_said_with_what_there_is() {
    let mut session = open();
    let cases = [
        ("size>1GB", "No allocation is larger than 1 GiB (size>1GB). The largest is 592 MiB."),
        ("<1KiB", "No allocation is smaller than 1 KiB (<1KiB). The smallest is 28.6 MiB."),
        ("=1", "No allocation is exactly 1 B (=1). The nearest is 28.6 MiB."),
        ("100mb", "No allocation is about 100 MiB (100mb). The nearest is 57.2 MiB."),
        ("nowhere", "No allocation has “nowhere” in its stack (nowhere)."),
        ("stream:9", "No allocation is of stream 9 (stream:9). The trace has these streams: default, 7."),
        (
            ">1GB model.py:5",
            "No allocation is larger than 1 GiB and has “model.py:5” in its stack (>1GB model.py:5). The largest is 592 MiB.",
        ),
        (
            "stream:7 evaluate",
            "No allocation is of stream 7 and has “evaluate” in its stack (stream:7 evaluate). Each of these matches \
             something, but nothing matches all of them.",
        ),
    ];
    for (term, want) in cases {
        assert_eq!(search(&mut session, term).none.as_deref(), Some(want), "{term}");
    }
    let found = search(&mut session, "57.2 MiB");
    assert_eq!((found.count, found.bytes, found.none), (1, 60_000_000, None), "a size as the page displays it");
    assert_eq!(found.understood, "requests of about 57.2 MiB");
}

#[test]
fn matches_are_listed_by_time_and_lines_by_bytes() {
    let mut session = open();
    let found = find(&mut session, "train.py:1", 0, 9);
    assert_eq!(found.allocations, (3, 710_756_992));
    let hits: Vec<_> = found.hits.iter().map(|hit| (hit.allocation, hit.bytes)).collect();
    assert_eq!(hits, [(0, 60_000_000), (2, 30_000_000), (3, 620_756_992)]);
    assert!(found.hits.is_sorted_by_key(|hit| hit.position));
    let lines: Vec<_> = found.by_line.iter().map(|line| (line.label.as_str(), line.count, line.bytes)).collect();
    assert_eq!(lines, [("remember  m/cache.py:7", 2, 650_756_992), ("forward  m/model.py:5", 1, 60_000_000)]);
    // A list is a part of the matches: the sums are those of all.
    let part = find(&mut session, "train.py:1", 1, 1);
    assert_eq!((part.hits.len(), part.hits[0].allocation, part.allocations.0, part.lines), (1, 2, 3, 2));
    assert_eq!(find(&mut session, "train.py:1", 99, 9).hits.len(), 0);
    assert!(matches!(
        session.answer(
            0,
            &Query::Find(FindQuery { term: "/(/".to_owned(), position: 0, start: ListStart::At(0), rows: 1 })
        ),
        Answer::Refused(_)
    ));
}

#[test]
fn a_list_begins_before_the_match_that_the_next_step_goes_to() {
    let mut story = "segment_alloc 0x10000000 209715200".to_owned();
    for i in 0..200 {
        story += &format!("\n    alloc 0x{:x} 512 forward@/m/model.py:5", 0x1000_0000 + i * 512);
    }
    let mut session = Session::new(trace::testing::snapshot(&story), "pickle".to_owned(), Vec::new(), &mut |_| {});
    for (from, position) in [(None, 0), (None, 150), (None, u32::MAX), (Some(7), 150), (Some(199), 0)] {
        let term = "model.py:5".to_owned();
        let next = Query::NextHit(NextHitQuery { term: term.clone(), from, position, forward: true });
        let Answer::NextHit(Some(hit)) = session.answer(0, &next) else { panic!("no match") };
        let query = FindQuery { term, position, start: ListStart::BeforeNext(from), rows: 60 };
        let Answer::Find(found) = session.answer(0, &Query::Find(query)) else { panic!("no list") };
        assert_eq!(found.next, Some(hit.number - 1), "{from:?} {position}");
        let listed: Vec<u32> = found.hits.iter().map(|hit| hit.allocation).collect();
        assert!(listed.contains(&hit.allocation), "{from:?} {position}: {listed:?}");
        assert_eq!(found.hits.first().map(|first| first.allocation), Some(found.first));
    }
    for number in 0..300 {
        let first = ListStart::before(number, 60);
        assert!(first <= number && number < first + 60, "{number}: {first}");
    }
    assert_eq!([0, 39, 40, 59].map(|number| ListStart::before(number, 60)), [0, 0, 20, 20]);
}

#[test]
fn segments_are_those_of_the_position() {
    let mut session = open();
    let found = find(&mut session, "stream:7", 0, 9);
    assert_eq!((found.segments, found.by_size[0].address.0), ((1, 20_971_520), 0x4000_0000));
    assert_eq!(find(&mut session, "size>100MiB", 0, 9).segments, (1, 209_715_200));
    assert_eq!(find(&mut session, "0x1", 0, 9).segments.0, 1);
    let query = FindQuery { term: "stream:7".to_owned(), position: 1, start: ListStart::At(0), rows: 9 };
    let Answer::Find(before) = session.answer(0, &Query::Find(query)) else { panic!("no list") };
    assert_eq!(before.segments.0, 0, "it was not reserved then");
}

#[test]
fn events_are_sorted_and_their_partners_known() {
    let mut session = open();
    let mut ask = |by, is_falling, locate| {
        let order = EventOrder { by, is_falling };
        let query = EventsQuery { filter: EventFilter::default(), order, first: 0, count: 99, locate };
        let Answer::Events(list) = session.answer(0, &Query::Events(query)) else { panic!("no list") };
        list
    };
    let sizes =
        |list: &query::EventRows| -> Vec<u64> { list.rows.iter().filter_map(|row| Some(row.event()?.size)).collect() };
    let largest = ask(EventColumn::Size, true, 1);
    assert_eq!(sizes(&largest)[..3], [620_756_992, 209_715_200, 99_000_000]);
    assert_eq!((largest.total, largest.located), (11, Some(1)));
    assert!(sizes(&ask(EventColumn::Size, false, 0)).is_sorted());
    let sites = ask(EventColumn::Site, false, 0);
    assert!(sites.rows.iter().map(|row| &row.event().unwrap().site).is_sorted());
    let last_first = ask(EventColumn::Number, true, 11);
    assert_eq!((last_first.rows[0].position(), last_first.located), (11, Some(0)));
    // The first alloc, and both events of its free.
    let plain = ask(EventColumn::Number, false, 0);
    let partners: Vec<_> = plain.rows.iter().map(|row| row.related().partner).collect();
    assert_eq!(partners[..9], [None, Some(5), Some(7), None, Some(2), Some(2), Some(3), Some(3), None]);
    assert_eq!(session.answer(0, &Query::Partner(PartnerQuery { position: 2 })), Answer::Partner(Some(5)));
    assert_eq!(session.answer(0, &Query::Partner(PartnerQuery { position: 0 })), Answer::Partner(None));
    assert_eq!((plain.rows[0].related().since_us, plain.rows[1].related().since_us), (None, Some(10.0)));
}

#[test]
fn an_event_is_copied_with_its_numbers_and_its_stack() {
    let mut session = open();
    let Answer::EventText(Some(text)) = session.answer(0, &Query::EventText(EventTextQuery { index: 1 })) else {
        panic!("no text")
    };
    let want = "event 2  10 µs  alloc  60,000,000 bytes  0x10000000  stream default  forward  m/model.py:5\n    \
        forward  /m/model.py:5\n    step  /m/train.py:1";
    assert_eq!(text, want);
    assert!(matches!(session.answer(0, &Query::EventText(EventTextQuery { index: 99 })), Answer::EventText(None)));
}

#[test]
fn several_words_narrow_down_each_other() {
    let mut session = open();
    let mut counts = |term: &str| search(&mut session, term).count;
    assert_eq!([">29MiB", "remember", "train.py:1"].map(&mut counts), [3, 2, 3]);
    assert_eq!(counts(">29MiB remember"), 1);
    assert_eq!(counts("remember >29MiB"), 1, "in any order");
    assert_eq!(counts("model.py:5 train.py:1"), 1, "of two frames of one stack");
    assert_eq!(counts("model.py:5 -train.py:1"), 1);
    assert_eq!(counts("remember -stream:7 live:end"), 1);
    assert_eq!(counts("\"remember train\""), 0);
    let found = find(&mut session, ">29MiB remember", 0, 9);
    assert_eq!((found.allocations, found.lines), ((1, 620_756_992), 1));
    assert_eq!(find(&mut session, ">29MiB stream:7", 0, 9).segments, (0, 0));
    assert_eq!(find(&mut session, ">10MiB stream:7", 0, 9).segments, (1, 20_971_520));
}
