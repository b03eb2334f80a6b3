//! Durability: an ack, and the number in a welcome, are sent only after the sync.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::peer::Peer;
use tests::stream::Stream;
use vramscope::ingest::Retention;
use vramscope::store::SegmentStore;
use vramscope::store::files::{Entry, Files, MemoryFiles, OpenFile};
use wire::{Code, Message};

use crate::check_same;
use crate::inside::{Inside, small};

/// What was written to a disk but not synced.
#[derive(Debug, Default)]
struct Disk {
    unsynced: AtomicUsize,
    /// While set, appends wait.
    is_slow: AtomicBool,
    /// The number of waiting appends.
    waiting: AtomicUsize,
}

/// Files in memory that know what a power failure would lose.
#[derive(Debug, Default)]
struct WatchedFiles {
    files: MemoryFiles,
    disk: Arc<Disk>,
}

#[derive(Debug)]
struct WatchedFile {
    file: Box<dyn OpenFile>,
    disk: Arc<Disk>,
}

impl OpenFile for WatchedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk.waiting.fetch_add(1, Ordering::SeqCst);
        while self.disk.is_slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.disk.waiting.fetch_sub(1, Ordering::SeqCst);
        self.disk.unsynced.fetch_add(bytes.len(), Ordering::SeqCst);
        self.file.append(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.unsynced.store(0, Ordering::SeqCst);
        self.file.sync()
    }
}

impl Files for WatchedFiles {
    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.files.list(folder)
    }

    fn read(&self, path: &str, from: u64, most: usize) -> io::Result<Vec<u8>> {
        self.files.read(path, from, most)
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(WatchedFile { file: self.files.create(path)?, disk: Arc::clone(&self.disk) }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.remove(path)
    }

    fn remove_folder(&self, folder: &str) -> io::Result<()> {
        self.files.remove_folder(folder)
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        self.files.sync_folder(folder)
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what} never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_new_connection_is_welcomed_only_after_a_sync() -> Result<()> {
    let disk = Arc::new(Disk::default());
    let files = WatchedFiles { disk: Arc::clone(&disk), ..WatchedFiles::default() };
    let store = SegmentStore::in_folder(Arc::new(files), 1 << 30);
    let server = Inside::with(Arc::new(store), small(), Retention::default())?;
    let stream = Stream::new(90, 4, 100);
    let (mut old, _) = Peer::hello(server.address, &stream.hello)?;
    old.batch(1, stream.batch(1))?;
    old.acked(1)?;
    assert_eq!(disk.unsynced.load(Ordering::SeqCst), 0, "acknowledged before it was synced");

    // Another connection takes over while the second batch is being written: the first may not sync any more.
    disk.is_slow.store(true, Ordering::SeqCst);
    old.batch(2, stream.batch(2))?;
    until("the batch", || disk.waiting.load(Ordering::SeqCst) == 1);
    let (address, hello) = (server.address, stream.hello.clone());
    let seen = Arc::new(Mutex::new(None));
    let (note, watched) = (Arc::clone(&seen), Arc::clone(&disk));
    let newer = std::thread::spawn(move || {
        let joined = Peer::hello(address, &hello);
        *note.lock().unwrap() = Some(watched.unsynced.load(Ordering::SeqCst));
        joined
    });
    assert_eq!(old.refused()?, (Code::Busy, true));
    disk.is_slow.store(false, Ordering::SeqCst);
    let (mut new, next) = newer.join().expect("the newer one")?;
    assert_eq!((next, *seen.lock().unwrap()), (3, Some(0)), "a power cut would take what is not wanted again");
    for seq in 3..=4 {
        new.batch(seq, stream.batch(seq))?;
    }
    new.end(4)?;
    assert_eq!(disk.unsynced.load(Ordering::SeqCst), 0);
    Ok(())
}

#[test]
fn a_store_that_fills_up_loses_nothing_for_viewers() -> Result<()> {
    let stream = Stream::new(91, 60, 4_000);
    let room = stream.file.len() as u64 / 2;
    let limits =
        trace::limits::ServerLimits { history_bytes: 1 << 30, behind_bytes: 1 << 30, viewer_bytes: 1, ..small() };
    // A single log segment, so that none can be deleted for another.
    let limits = trace::limits::ServerLimits { segment_bytes: 1 << 30, ..limits };
    let server = Inside::with(Arc::new(SegmentStore::in_memory(room)), limits, Retention::default())?;
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    // It reads nothing while the store fills up, so it has to catch up with everything from the store.
    let mut viewer = Peer::viewer(server.address, stream.session(), 0)?;
    for seq in 2..=stream.last() {
        let _ = peer.batch(seq, stream.batch(seq));
    }
    assert_eq!(peer.refused()?, (Code::Full, true));
    let (_, next) = Peer::hello(server.address, &stream.hello)?;
    ensure!((10..stream.last()).contains(&next), "{next}");
    let (batches, gaps) = viewer.batches(next - 1)?;
    let got: Vec<u8> = batches.into_iter().flat_map(|(_, chunks)| chunks).collect();
    let want: Vec<u8> = (1..next).flat_map(|seq| stream.batch(seq).to_vec()).collect();
    assert!(gaps.is_empty(), "{gaps:?}");
    check_same("what the viewer got", &got, &want);
    // And nothing of the batch that did not fit; it is still served.
    let last = viewer.status(|_| true)?.last;
    assert_eq!(last, next - 1);
    Ok(())
}

#[test]
fn a_session_that_ends_without_batches_is_valid() -> Result<()> {
    let server = Inside::start(small(), Retention::default())?;
    let stream = Stream::new(92, 2, 100);
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.goodbye(0)?;
    match peer.frame()? {
        Message::Ack(ack) => assert_eq!(ack.seq, 0),
        other => panic!("{other:?}"),
    }
    let path = format!("/api/v1/sessions/{}", stream.session());
    let get = |path: &str| tests::http::get(server.address, path, &[]).map(|response| response.status);
    assert_eq!((get(&path)?, get(&format!("{path}/stats"))?, get(&format!("{path}/trace"))?), (200, 200, 404));
    let (mut late, next) = Peer::hello(server.address, &stream.hello)?;
    assert_eq!(next, 1);
    late.batch(1, stream.batch(1))?;
    assert_eq!(late.refused()?, (Code::Ended, false));
    Ok(())
}
