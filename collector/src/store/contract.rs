//! Tests that every store must pass.

use super::{StoreError, TraceStore};

const SESSION: &str = "abcdefghijklmnopqrstuvwxyz";
const OTHER: &str = "zyxwvutsrqponmlkjihgfedcba";

/// Checks an implementation; `open` creates an empty store with a quota in bytes.
pub(super) fn check(open: &dyn Fn(u64) -> Box<dyn TraceStore>) {
    names(&*open(1 << 20));
    records(&*open(1 << 20));
    segments(&*open(1 << 20));
    quota(&*open(100));
}

fn names(store: &dyn TraceStore) {
    for name in ["", "..", ".", "/etc", "../abcdefghijklmnopqrstuvwx", &"A".repeat(26), &"a".repeat(27)] {
        assert!(matches!(store.create(name, b"{}"), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.record(name), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.set_record(name, b""), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.begin_segment(name, 1), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.read(name, 1, 0, 1), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.remove(name), Err(StoreError::Missing)), "{name}");
    }
    assert!(store.sessions().unwrap().is_empty());
    store.probe(4_096).unwrap();
}

fn records(store: &dyn TraceStore) {
    assert!(matches!(store.record(SESSION), Err(StoreError::Missing)));
    store.create(SESSION, b"one").unwrap();
    assert!(matches!(store.create(SESSION, b"two"), Err(StoreError::Exists)));
    assert_eq!(store.record(SESSION).unwrap(), b"one");
    store.set_record(SESSION, b"three").unwrap();
    store.create(OTHER, b"four").unwrap();
    let mut sessions = store.sessions().unwrap();
    sessions.sort();
    assert_eq!(sessions, [SESSION, OTHER]);
    store.remove(SESSION).unwrap();
    assert!(matches!(store.record(SESSION), Err(StoreError::Missing)));
    assert!(matches!(store.remove(SESSION), Err(StoreError::Missing)));
    assert_eq!(store.record(OTHER).unwrap(), b"four");
}

fn segments(store: &dyn TraceStore) {
    store.create(SESSION, b"{}").unwrap();
    assert!(matches!(store.open_segment(SESSION, 1, 0), Err(StoreError::Missing)));
    let mut first = store.begin_segment(SESSION, 1).unwrap();
    first.append(b"hello ").unwrap();
    first.append(b"world").unwrap();
    first.sync().unwrap();
    assert_eq!(first.length(), 11);
    let mut second = store.begin_segment(SESSION, 2).unwrap();
    second.append(b"more").unwrap();
    assert_eq!((store.segments(SESSION).unwrap(), store.usage()), (vec![(1, 11), (2, 4)], 15));
    for (from, most, want) in [(0, 5, "hello"), (6, 99, "world"), (11, 9, ""), (50, 9, "")] {
        assert_eq!(store.read(SESSION, 1, from, most).unwrap(), want.as_bytes());
    }
    drop(first);

    let mut again = store.open_segment(SESSION, 1, 5).unwrap();
    again.append(b"!").unwrap();
    assert_eq!((store.read(SESSION, 1, 0, 99).unwrap(), store.usage()), (b"hello!".to_vec(), 10));
    assert!(matches!(store.open_segment(SESSION, 1, 7), Err(StoreError::Damaged(_))));
    // A log segment that is created again is empty.
    assert_eq!(store.begin_segment(SESSION, 2).unwrap().length(), 0);
    assert_eq!(store.segments(SESSION).unwrap(), [(1, 6), (2, 0)]);
    store.remove_segment(SESSION, 1).unwrap();
    store.remove_segment(SESSION, 1).unwrap();
    assert_eq!((store.segments(SESSION).unwrap(), store.usage()), (vec![(2, 0)], 0));
}

fn quota(store: &dyn TraceStore) {
    store.create(SESSION, b"{}").unwrap();
    let mut segment = store.begin_segment(SESSION, 1).unwrap();
    segment.append(&[1; 90]).unwrap();
    assert!(matches!(segment.append(&[2; 11]), Err(StoreError::Full)));
    assert_eq!((segment.length(), store.usage(), store.read(SESSION, 1, 0, 999).unwrap().len()), (90, 90, 90));
    segment.append(&[2; 10]).unwrap();
    assert!(matches!(store.probe(1), Err(StoreError::Full)));
    drop(segment);
    store.remove(SESSION).unwrap();
    assert_eq!(store.usage(), 0);
    store.probe(100).unwrap();
}
