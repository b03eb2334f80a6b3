use super::*;
use crate::store::contract;

const SESSION: &str = "abcdefghijklmnopqrstuvwxyz";

#[test]
fn a_folder_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    contract::check(&|quota| {
        let _ = fs::remove_dir_all(folder.path());
        Box::new(DiskStore::open(folder.path(), quota).unwrap())
    });
}

#[test]
fn a_store_outlives_its_server_and_is_used_by_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::open(folder.path(), 100).unwrap();
    store.create(SESSION, b"{}").unwrap();
    store.begin_segment(SESSION, 1).unwrap().append(&[7; 60]).unwrap();
    let second = DiskStore::open(folder.path(), 100).unwrap_err();
    assert!(second.contains("Another server uses the folder") && !second.contains('\n'), "{second}");
    drop(store);

    let store = DiskStore::open(folder.path(), 100).unwrap();
    assert_eq!((store.sessions().unwrap(), store.usage()), (vec![SESSION.to_owned()], 60));
    assert_eq!(store.read(SESSION, 1, 58, 100).unwrap(), [7, 7]);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::open(folder.path(), 100).unwrap();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join(RECORD), b"secret").unwrap();
    std::os::unix::fs::symlink(&outside, store.sessions.join(SESSION)).unwrap();
    assert!(matches!(store.record(SESSION), Err(StoreError::Missing)));
    assert!(store.sessions().unwrap().is_empty());

    let other = "b".repeat(26);
    store.create(&other, b"{}").unwrap();
    let path = store.segment(&other, 1).unwrap();
    std::os::unix::fs::symlink(outside.join(RECORD), &path).unwrap();
    assert!(matches!(store.read(&other, 1, 0, 9), Err(StoreError::Missing)));
    store.begin_segment(&other, 1).unwrap().append(b"x").unwrap();
    assert_eq!(fs::read(outside.join(RECORD)).unwrap(), b"secret");
}
