//! Tests that every store must pass, wherever it keeps its segments.

use std::sync::Arc;

use tests::s3;
use vramscope::store::files::{DiskFiles, Files, MemoryFiles};
use vramscope::store::{
    Catalogue, Found, Hash, Marks, Purpose, Record, SegmentInfo, SegmentStore, StoreError, Uploads,
};

const SESSION: &str = "abcdefghijklmnopqrstuvwxyz";
const OTHER: &str = "zyxwvutsrqponmlkjihgfedcba";
/// A first segment as it is found while it grows.
const GROWING: Found = Found { number: 1, bytes: 11, hash: None };

/// Checks where a store keeps shared traces.
fn shared_traces(store: &SegmentStore) {
    let (files, blobs) = store.shared();
    assert!(blobs.list("shares/links").unwrap().is_empty());
    assert!(matches!(blobs.read("shares/links/a.json", 0, 9), Err(StoreError::Missing)));
    blobs.put("shares/links/a.json", b"one").unwrap();
    blobs.put("shares/links/a.json", b"another").unwrap();
    blobs.put("shares/links/b.json", b"b").unwrap();
    let mut found = blobs.list("shares/links").unwrap();
    found.sort();
    assert_eq!(found, [("a.json".to_owned(), 7), ("b.json".to_owned(), 1)]);
    assert_eq!(blobs.read("shares/links/a.json", 0, 99).unwrap(), b"another");
    // A file moves there from the local folder.
    let big: Vec<u8> = (0..10_000_000_u32).map(|n| (n / 7) as u8).collect();
    for _ in 0..2 {
        let mut file = files.create("shares/uploads/x/whole").unwrap();
        file.append(&big).unwrap();
        file.sync().unwrap();
        blobs.take("shares/uploads/x/whole", big.len() as u64, "shares/traces/t.vramscope").unwrap();
        assert!(files.list("shares/uploads/x").unwrap().is_empty());
    }
    assert_eq!(blobs.list("shares/traces").unwrap(), [("t.vramscope".to_owned(), big.len() as u64)]);
    for (from, most) in [(0, 10), (9_999_990, 10), (9_999_990, 99), (1_234_567, 300_000)] {
        let to = (from + most).min(big.len());
        assert!(blobs.read("shares/traces/t.vramscope", from as u64, most).unwrap() == big[from..to], "{from} {most}");
    }
    for path in ["shares/traces/t.vramscope", "shares/links/a.json", "shares/links/a.json"] {
        blobs.remove(&[path.to_owned()]).unwrap();
    }
    assert_eq!((blobs.list("shares/traces").unwrap().len(), blobs.list("shares/links").unwrap().len()), (0, 1));
    assert!(store.list().unwrap().is_empty(), "shared traces are no sessions");
}

/// Checks an implementation; `open` creates an empty store with a quota in bytes.
fn check(open: &dyn Fn(u64) -> SegmentStore) {
    names(&open(1 << 20));
    segments(&open(1 << 20));
    sealed_segments_are_found_by_looking(&open(1 << 20));
    unpublished_segments_leave_nothing(&open(1 << 20));
    a_sealed_segment_is_never_missing(&open(1 << 20));
    damage_is_set_aside(&open(1 << 20));
    quota(&open(100));
    marks(&open(1 << 20));
    cached_files(&open(1 << 20));
}

/// Writes a segment and seals it.
fn sealed(store: &SegmentStore, session: &str, number: u32, bytes: &[u8]) -> Hash {
    let mut writer = store.begin(session, number, Purpose::Grow).unwrap();
    writer.append(bytes).unwrap();
    writer.seal().unwrap()
}

fn names(store: &SegmentStore) {
    for name in ["", "..", ".", "/etc", "../abcdefghijklmnopqrstuvwx", &"A".repeat(26), &"a".repeat(27)] {
        assert!(matches!(store.segments(name), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.begin(name, 1, Purpose::Grow), Err(StoreError::Missing)), "{name}");
        for found in [GROWING, Found { hash: Some(Hash::of(b"")), ..GROWING }] {
            assert!(matches!(store.read(name, found, 0, 1), Err(StoreError::Missing)), "{name}");
            assert!(matches!(store.remove_segment(name, found), Err(StoreError::Missing)), "{name}");
        }
        assert!(matches!(store.remove(name), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.marks(name), Err(StoreError::Missing)), "{name}");
        assert!(matches!(store.set_marks(name, &Marks::default()), Err(StoreError::Missing)), "{name}");
    }
    assert!(store.list().unwrap().is_empty());
    store.probe(4_096).unwrap();
}

fn segments(store: &SegmentStore) {
    assert!(store.segments(SESSION).unwrap().is_empty());
    let mut first = store.begin(SESSION, 1, Purpose::Grow).unwrap();
    first.append(b"hello ").unwrap();
    assert!(store.segments(SESSION).unwrap().is_empty(), "nobody sees it yet");
    first.publish().unwrap();
    first.append(b"world").unwrap();
    first.sync().unwrap();
    assert_eq!((first.length(), first.is_usable()), (11, true));
    assert_eq!((store.segments(SESSION).unwrap(), store.usage()), (vec![GROWING], 11));
    assert_eq!(store.local_segments(SESSION).unwrap(), [GROWING]);
    for (from, most, want) in [(0, 5, "hello"), (6, 99, "world"), (11, 9, ""), (50, 9, "")] {
        assert_eq!(store.read(SESSION, GROWING, from, most).unwrap(), want.as_bytes());
    }
    let hash = first.seal().unwrap();
    assert_eq!(hash, Hash::of(b"hello world"));
    let sealed = Found { hash: Some(hash), ..GROWING };
    assert_eq!(store.segments(SESSION).unwrap(), [sealed]);
    assert!(matches!(store.read_open(SESSION, 1, 0, 9), Err(StoreError::Missing)));
    assert_eq!(store.read(SESSION, sealed, 6, 99).unwrap(), b"world");
    assert_eq!(store.read(SESSION, GROWING, 6, 99).unwrap(), b"world", "it was sealed since it was found");
    store.remove_open(SESSION, 1).unwrap();
    store.remove_segment(SESSION, GROWING).unwrap();
    assert_eq!(store.read(SESSION, sealed, 6, 99).unwrap(), b"world", "a sealed segment is another one");
    store.remove_segment(SESSION, sealed).unwrap();
    store.remove_segment(SESSION, sealed).unwrap();
    assert_eq!((store.segments(SESSION).unwrap(), store.usage()), (vec![], 0));
    for found in [GROWING, sealed] {
        assert!(matches!(store.read(SESSION, found, 0, 9), Err(StoreError::Missing)));
    }
}

fn sealed_segments_are_found_by_looking(store: &SegmentStore) {
    let hashes = [sealed(store, SESSION, 1, b"one"), sealed(store, SESSION, 3, b"three")];
    sealed(store, OTHER, 1, b"other");
    let mut growing = store.begin(SESSION, 10, Purpose::Grow).unwrap();
    growing.append(b"ten").unwrap();
    growing.publish().unwrap();
    let all = store.list().unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), [SESSION, OTHER]);
    let found: Vec<_> = all[SESSION].iter().map(|found| (found.number, found.bytes, found.hash)).collect();
    assert_eq!(found, [(1, 3, Some(hashes[0])), (3, 5, Some(hashes[1])), (10, 3, None)]);
    assert_eq!((store.segments(SESSION).unwrap(), store.usage()), (all[SESSION].clone(), 16));
    store.remove(SESSION).unwrap();
    assert_eq!(store.list().unwrap().keys().collect::<Vec<_>>(), [OTHER]);
    assert_eq!(store.usage(), 5);
    store.remove(SESSION).unwrap();
}

fn unpublished_segments_leave_nothing(store: &SegmentStore) {
    let mut writer = store.begin(SESSION, 1, Purpose::Grow).unwrap();
    writer.append(b"lost").unwrap();
    assert_eq!(store.usage(), 4);
    drop(writer);
    assert_eq!((store.usage(), store.list().unwrap().len()), (0, 0));
    // A copy takes the place of a growing segment, and both are there until the old one is removed.
    let mut growing = store.begin(SESSION, 1, Purpose::Grow).unwrap();
    growing.append(b"old, and its tail").unwrap();
    growing.publish().unwrap();
    drop(growing);
    let hash = sealed(store, SESSION, 1, b"old");
    let hashes = |store: &SegmentStore| -> Vec<_> {
        store.segments(SESSION).unwrap().into_iter().map(|found| (found.number, found.hash)).collect()
    };
    assert_eq!(hashes(store), [(1, Some(hash)), (1, None)]);
    store.remove_open(SESSION, 1).unwrap();
    assert_eq!((hashes(store), store.usage()), (vec![(1, Some(hash))], 3));
}

fn a_sealed_segment_is_never_missing(store: &SegmentStore) {
    let mut want = Vec::new();
    for number in 1..=50 {
        want.push((number, Some(sealed(store, SESSION, number, &[1; 100]))));
        let first = Found { number: 1, bytes: 100, hash: want[0].1 };
        // It may be on its way to where sealed segments are kept.
        let listed = match number % 3 {
            0 => store.segments(SESSION).unwrap(),
            1 => store.list().unwrap().remove(SESSION).unwrap(),
            _ => {
                assert_eq!(store.read(SESSION, first, 99, 9).unwrap(), [1]);
                store.segments(SESSION).unwrap()
            }
        };
        assert_eq!(listed.iter().map(|found| (found.number, found.hash)).collect::<Vec<_>>(), want);
    }
}

fn damage_is_set_aside(store: &SegmentStore) {
    let hash = sealed(store, SESSION, 1, b"sealed");
    let mut growing = store.begin(SESSION, 2, Purpose::Grow).unwrap();
    growing.append(b"growing").unwrap();
    growing.publish().unwrap();
    drop(growing);
    store.set_aside(SESSION, Found { number: 2, bytes: 7, hash: None }).unwrap();
    store.set_aside(SESSION, Found { number: 1, bytes: 6, hash: Some(hash) }).unwrap();
    assert_eq!((store.segments(SESSION).unwrap(), store.usage()), (vec![], 0));
}

fn quota(store: &SegmentStore) {
    let mut segment = store.begin(SESSION, 1, Purpose::Grow).unwrap();
    segment.publish().unwrap();
    segment.append(&[1; 90]).unwrap();
    assert!(matches!(segment.append(&[2; 11]), Err(StoreError::Full)));
    assert!(segment.is_usable());
    assert_eq!((segment.length(), store.usage(), store.read(SESSION, GROWING, 0, 999).unwrap().len()), (90, 90, 90));
    segment.append(&[2; 10]).unwrap();
    assert!(matches!(store.probe(1), Err(StoreError::Full)));
    // A copy may exceed it: what it replaces is removed.
    let mut copy = store.begin(OTHER, 1, Purpose::Copy).unwrap();
    copy.append(&[3; 50]).unwrap();
    drop((copy, segment));
    store.remove(SESSION).unwrap();
    assert_eq!(store.usage(), 0);
    store.probe(100).unwrap();
}

fn marks(store: &SegmentStore) {
    assert_eq!(store.marks(SESSION).unwrap(), Marks::default());
    sealed(store, SESSION, 1, b"x");
    let marks = Marks { is_pinned: true, announced_us: Some(5), first_segment: 2 };
    store.set_marks(SESSION, &marks).unwrap();
    assert_eq!(store.marks(SESSION).unwrap(), marks);
    assert_eq!(store.list().unwrap()[SESSION].len(), 1, "marks are no segment");
    store.remove(SESSION).unwrap();
    assert_eq!(store.marks(SESSION).unwrap(), Marks::default());
    assert!(store.list().unwrap().is_empty());
}

fn cached_files(store: &SegmentStore) {
    assert_eq!((store.catalogue(), store.retention_us()), (Catalogue::default(), None));
    let mut catalogue = Catalogue::default();
    catalogue.records.insert(SESSION.to_owned(), Record { id: SESSION.to_owned(), ..Record::default() });
    store.save_catalogue(&catalogue).unwrap();
    store.set_retention_us(-7).unwrap();
    store.set_retention_us(7).unwrap();
    assert_eq!((store.catalogue(), store.retention_us()), (catalogue, Some(7)));
}

#[test]
fn memory_is_a_store() {
    check(&|quota| SegmentStore::in_memory(quota));
    shared_traces(&SegmentStore::in_memory(1 << 20));
}

#[test]
fn a_folder_is_a_store() {
    let folders = tempfile::tempdir().unwrap();
    let next = std::cell::Cell::new(0);
    check(&|quota| {
        next.set(next.get() + 1);
        SegmentStore::open(&folders.path().join(next.get().to_string()), quota).unwrap()
    });
    shared_traces(&SegmentStore::open(&folders.path().join("shared"), 1 << 20).unwrap());
}

#[test]
fn a_start_removes_only_what_nobody_saw() {
    let files = MemoryFiles::default();
    for path in ["wal/abcdefghijklmnopqrstuvwxyz.00000001.vramscope.new", "wal/other", "segments/x.new", "else.new"] {
        drop(files.create(path).unwrap());
    }
    SegmentStore::in_folder(Arc::new(files.clone()), 1 << 20);
    assert_eq!(files.paths(), ["else.new", "wal/other"]);
}

#[cfg(unix)]
#[test]
fn a_linked_folder_at_the_top_is_a_store() {
    let folders = tempfile::tempdir().unwrap();
    let next = std::cell::Cell::new(0);
    let open = |quota| {
        next.set(next.get() + 1);
        let (folder, disk) =
            (folders.path().join(next.get().to_string()), folders.path().join(format!("{}disk", next.get())));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["wal", "segments", "quarantine", "shares"] {
            std::fs::create_dir_all(disk.join(name)).unwrap();
            std::os::unix::fs::symlink(disk.join(name), folder.join(name)).unwrap();
        }
        SegmentStore::open(&folder, quota).unwrap()
    };
    check(&open);
    shared_traces(&open(1 << 20));
}

/// What is written through a link must be found again, so a link either is read as it is written, or refused.
#[cfg(unix)]
#[test]
fn a_link_is_followed_by_every_operation_or_by_none() {
    let folders = tempfile::tempdir().unwrap();
    let (store, disk) = (folders.path().join("store"), folders.path().join("disk"));
    for folder in [&store, &disk] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let link = |target: &std::path::Path, name: &str| std::os::unix::fs::symlink(target, store.join(name)).unwrap();
    // One that leads nowhere: the disk is not mounted.
    link(&folders.path().join("none"), "segments");
    let refused = DiskFiles::open(&store).unwrap_err();
    assert!(refused.contains("segments is a symbolic link") && refused.contains("Mount the disk"), "{refused}");
    std::fs::remove_file(store.join("segments")).unwrap();

    link(&disk, "wal");
    let files = DiskFiles::open(&store).unwrap();
    files.create("wal/a").unwrap().append(b"a").unwrap();
    assert_eq!((files.list("wal").unwrap().len(), files.read("wal/a", 0, 9).unwrap()), (1, b"a".to_vec()));
    assert!(disk.join("a").exists());
    files.rename("wal/a", "segments/s/a").unwrap();
    assert_eq!((files.list("wal").unwrap().len(), files.read("segments/s/a", 0, 9).unwrap()), (0, b"a".to_vec()));
    // Another store with the same disk.
    let second = folders.path().join("second");
    std::fs::create_dir_all(&second).unwrap();
    std::os::unix::fs::symlink(&disk, second.join("wal")).unwrap();
    let refused = DiskFiles::open(&second).unwrap_err();
    assert!(refused.starts_with("Another server uses the folder") && refused.contains("second/wal leads"), "{refused}");
    // Further down, no operation follows a link.
    std::fs::create_dir_all(disk.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(disk.join("elsewhere"), store.join("segments/linked")).unwrap();
    assert!(files.list("segments/linked").unwrap().is_empty());
    assert!(files.create("segments/linked/a").unwrap_err().to_string().contains("symbolic link"));
    assert!(files.rename("segments/s/a", "segments/linked/a").is_err());
    assert_eq!(files.list("segments").unwrap().len(), 1);
    assert_eq!(files.unfollowed(), [store.join("segments/linked").display().to_string()]);
    assert!(std::fs::read_dir(disk.join("elsewhere")).unwrap().next().is_none());
}

#[cfg(unix)]
#[test]
fn a_deleted_lock_file_lets_no_second_server_in() {
    let folder = tempfile::tempdir().unwrap();
    let files = DiskFiles::open(folder.path()).unwrap();
    std::fs::remove_file(folder.path().join("lock")).unwrap();
    assert!(DiskFiles::open(folder.path()).unwrap_err().starts_with("Another server uses the folder"));
    drop(files);
    DiskFiles::open(folder.path()).unwrap();
}

#[cfg(unix)]
#[test]
fn links_and_special_files_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, b"secret").unwrap();
    let store = folder.path().join("store");
    let link = |path: &std::path::Path| std::os::unix::fs::symlink(&secret, path).unwrap();
    std::fs::create_dir_all(store.join("wal")).unwrap();
    link(&store.join("wal").join(format!("{SESSION}.00000001.vramscope")));
    let files = DiskFiles::open(&store).unwrap();
    assert!(files.read(&format!("wal/{SESSION}.00000001.vramscope"), 0, 9).is_err());
    assert!(files.list("wal").unwrap().is_empty());
    drop(files);
    std::fs::remove_file(store.join("lock")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("victim"), store.join("lock")).unwrap();
    assert!(DiskFiles::open(&store).is_err());
    assert!(!folder.path().join("victim").exists(), "a link was followed");
}

#[test]
fn an_s3_server_is_a_store() {
    let folders = tempfile::tempdir().unwrap();
    let variables = s3::serve(&folders.path().join("s3")).unwrap();
    let next = std::cell::Cell::new(0);
    check(&|quota| {
        next.set(next.get() + 1);
        let (folder, url) = (folders.path().join(next.get().to_string()), format!("s3://traces/team/{}", next.get()));
        SegmentStore::open_with_objects(&folder, &url, variables.clone().into_iter(), quota).unwrap()
    });
    // What is sealed arrives there, and the local file goes.
    let folder = folders.path().join("arrives");
    let open = || SegmentStore::open_with_objects(&folder, "s3://traces/a", variables.clone().into_iter(), 1 << 30);
    let store = open().unwrap();
    shared_traces(&store);
    let big: Vec<u8> = (0..20_000_000_u32).map(|n| (n / 7) as u8).collect();
    let hash = sealed(&store, SESSION, 1, &big);
    let object = folders.path().join(format!("s3/traces/a/segments/{SESSION}/00000001.{hash}.vramscope"));
    let begun = std::time::Instant::now();
    let uploaded = Found { number: 1, bytes: 20_000_000, hash: Some(hash) };
    while store.uploads() != (Uploads { copies: 1, ..Uploads::default() }) {
        assert!(begun.elapsed().as_secs() < 60, "it was not uploaded: {:?}", store.uploads());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(object.exists());
    // Before, nothing on this machine would tell that the session exists if the object were lost.
    assert_eq!(store.local_segments(SESSION).unwrap(), [uploaded]);
    let segment = SegmentInfo { number: 1, bytes: 20_000_000, hash: hash.to_string(), ..SegmentInfo::default() };
    let record = Record { id: SESSION.to_owned(), segments: vec![segment], ..Record::default() };
    store.save_catalogue(&Catalogue { records: [(SESSION.to_owned(), record)].into_iter().collect() }).unwrap();
    assert_eq!((store.local_segments(SESSION).unwrap(), store.uploads()), (vec![], Uploads::default()));
    assert_eq!(store.read(SESSION, uploaded, 19_999_990, 99).unwrap(), big[19_999_990..]);
    // A second server on the same prefix would take these sessions for its own.
    let second = SegmentStore::open_with_objects(
        &folders.path().join("second"),
        "s3://traces/a",
        variables.clone().into_iter(),
        1 << 30,
    );
    assert!(second.unwrap_err().starts_with("Another server, on "));
    drop(store);
    let again = open().unwrap();
    assert_eq!(again.list().unwrap()[SESSION], [uploaded]);
    let wrong = variables.iter().map(|(name, value)| (name.clone(), value.replace("secret", "guess")));
    let refused = SegmentStore::open_with_objects(&folders.path().join("x"), "s3://traces/a", wrong, 1).unwrap_err();
    assert!(refused.contains("s3://traces/a") && refused.contains("credentials"), "{refused}");
}
