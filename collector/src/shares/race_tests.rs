//! Tests of what happens to links, traces and uploads at the same time, and of a place to keep them that fails or is slow.

use std::sync::Condvar;
use std::sync::MutexGuard;
use std::thread;

use super::tests::{OWNER, PART, limits, offer, open_with, read, recording, send, share};
use super::*;
use crate::access::Denied;
use crate::store::files::MemoryFiles;
use crate::store::{FolderBlobs, StoreResult};

/// An operation on blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Put,
    Take,
    Remove,
}

/// Blobs whose next operation of a kind waits, or does what it should and then fails.
#[derive(Debug)]
struct Gate {
    blobs: FolderBlobs,
    state: Mutex<Gated>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Gated {
    holds: Option<Call>,
    /// Whether an operation waits.
    is_reached: bool,
    fails: Option<Call>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Gated> {
        self.state.lock().unwrap()
    }

    /// Lets the next operation of a kind wait.
    fn close(&self, call: Call) {
        *self.lock() = Gated { holds: Some(call), ..Gated::default() };
    }

    /// Waits until an operation waits.
    fn reached(&self) {
        drop(self.changed.wait_while(self.lock(), |gated| !gated.is_reached).unwrap());
    }

    /// Lets the operation that waits go on.
    fn open(&self) {
        self.lock().is_reached = false;
        self.changed.notify_all();
    }

    /// Lets the next operation of a kind be done, and its answer be lost.
    fn lose(&self, call: Call) {
        self.lock().fails = Some(call);
    }

    fn pass(&self, call: Call, run: impl FnOnce() -> StoreResult) -> StoreResult {
        let mut gated = self.lock();
        if gated.holds == Some(call) {
            (gated.holds, gated.is_reached) = (None, true);
            self.changed.notify_all();
            gated = self.changed.wait_while(gated, |gated| gated.is_reached).unwrap();
        }
        let is_lost = gated.fails == Some(call);
        gated.fails = gated.fails.filter(|_| !is_lost);
        drop(gated);
        run()?;
        if is_lost { Err(StoreError::Io(std::io::ErrorKind::TimedOut.into())) } else { Ok(()) }
    }
}

impl Blobs for Gate {
    fn list(&self, folder: &str) -> StoreResult<Vec<(String, u64)>> {
        self.blobs.list(folder)
    }

    fn list_below(
        &self,
        folder: &str,
        wants: &dyn Fn(&str) -> bool,
        visit: &mut dyn FnMut(&str, &str, u64),
    ) -> StoreResult {
        self.blobs.list_below(folder, wants, visit)
    }

    fn read(&self, path: &str, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        self.blobs.read(path, from, most)
    }

    fn get(&self, path: &str) -> StoreResult<Vec<u8>> {
        self.blobs.get(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> StoreResult {
        self.pass(Call::Put, || self.blobs.put(path, bytes))
    }

    fn take(&self, local: &str, bytes: u64, path: &str) -> StoreResult {
        self.pass(Call::Take, || self.blobs.take(local, bytes, path))
    }

    fn give_back(&self, path: &str, bytes: u64, local: &str) -> StoreResult {
        self.blobs.give_back(path, bytes, local)
    }

    fn remove(&self, paths: &[String]) -> StoreResult {
        self.pass(Call::Remove, || self.blobs.remove(paths))
    }

    fn remove_folder(&self, folder: &str) -> StoreResult {
        self.blobs.remove_folder(folder)
    }
}

/// Opens shares behind a gate.
fn gated(files: &MemoryFiles) -> (Shares, Arc<Gate>) {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    let blobs = FolderBlobs::new(Arc::clone(&files));
    let gate = Arc::new(Gate { blobs, state: Mutex::default(), changed: Condvar::new() });
    let shares = Shares::open((files, Arc::clone(&gate) as Arc<dyn Blobs>), limits(), Terms::default());
    shares.load().unwrap();
    (shares, gate)
}

/// Uploads a recording, all but the end.
fn upload(shares: &Shares, recording: &[u8]) -> Begun {
    let begun = shares.begin(&offer(recording), OWNER).unwrap();
    send(shares, &begun.id, recording).unwrap();
    begun
}

fn count(files: &MemoryFiles, part: &str) -> usize {
    files.paths().iter().filter(|path| path.contains(part)).count()
}

#[test]
fn while_one_trace_is_stored_or_deleted_others_are_finished_and_deleted() {
    for (slow, what) in [(Call::Take, "stored"), (Call::Remove, "deleted")] {
        let (shares, gate) = gated(&MemoryFiles::default());
        let [one, other, third] = [1, 2, 3].map(recording);
        let (kept, third_kept) =
            (share(&shares, &one, &offer(&one)).unwrap(), share(&shares, &third, &offer(&third)).unwrap());
        let next = upload(&shares, &other);
        thread::scope(|scope| {
            gate.close(slow);
            let slow = scope.spawn(|| match slow {
                Call::Remove => shares.delete(&kept.token, None),
                _ => shares.finish(&next.id, OWNER).map(drop),
            });
            gate.reached();
            // All of this would wait for ever.
            let same = share(&shares, &third, &offer(&third)).unwrap();
            shares.delete(&same.token, None).unwrap();
            shares.delete(&third_kept.token, None).unwrap();
            share(&shares, &third, &offer(&third)).unwrap();
            shares.sweep(now_us());
            gate.open();
            slow.join().unwrap().unwrap_or_else(|error| panic!("{what}: {error}"));
        });
    }
}

#[test]
fn who_shares_a_trace_while_it_is_deleted_gets_a_link_that_opens() {
    let files = MemoryFiles::default();
    let (shares, gate) = gated(&files);
    let recording = recording(1);
    let first = share(&shares, &recording, &offer(&recording)).unwrap();
    let second = upload(&shares, &recording);
    thread::scope(|scope| {
        gate.close(Call::Remove);
        let delete = scope.spawn(|| shares.delete(&first.token, None));
        gate.reached();
        let finish = scope.spawn(|| shares.finish(&second.id, OWNER));
        gate.open();
        delete.join().unwrap().unwrap();
        finish.join().unwrap().unwrap();
    });
    assert!(read(&shares, &second.token).unwrap() == recording && count(&files, "traces/") == 1);
}

#[test]
fn an_upload_that_is_given_up_while_it_is_finished_becomes_no_link() {
    type Deed = fn(&Shares, &str) -> ShareResult;
    let cancel: Deed = |shares, id| shares.cancel(id, OWNER.name);
    for slow in [Call::Take, Call::Put] {
        let files = MemoryFiles::default();
        let (shares, gate) = gated(&files);
        let recording = recording(1);
        let begun = upload(&shares, &recording);
        thread::scope(|scope| {
            gate.close(slow);
            let finish = scope.spawn(|| shares.finish(&begun.id, OWNER));
            gate.reached();
            let cancelled = cancel(&shares, &begun.id);
            gate.open();
            let finished = finish.join().unwrap();
            match slow {
                // The link is being made, so it is too late.
                Call::Put => {
                    assert!(matches!(cancelled, Err(ShareError::Taken)) && finished.is_ok());
                    assert!(matches!(cancel(&shares, &begun.id), Err(ShareError::NoUpload)));
                }
                _ => {
                    assert!(cancelled.is_ok() && matches!(finished, Err(ShareError::NoUpload)));
                    assert!(matches!(shares.find(&begun.token), Err(ShareError::Unknown)));
                    assert_eq!(files.paths(), [""; 0], "nothing half is left");
                }
            }
        });
    }
}

#[test]
fn a_part_of_an_upload_that_is_given_up_meanwhile_leaves_nothing() {
    let files = MemoryFiles::default();
    let shares = open_with(&files, limits(), Terms::default());
    let recording = recording(1);
    for is_written in [false, true] {
        let begun = shares.begin(&offer(&recording), OWNER).unwrap();
        let mut part = shares.part(&begun.id, OWNER, 0).unwrap();
        if is_written {
            part.write(&recording[..PART as usize]).unwrap();
        }
        shares.cancel(&begun.id, OWNER.name).unwrap();
        assert!(matches!(shares.part(&begun.id, OWNER, 0), Err(ShareError::NoUpload)));
        assert!(matches!(part.commit(), Err(ShareError::NoUpload)));
        assert_eq!(files.paths(), [""; 0]);
    }
    // A part without a byte, too.
    let begun = shares.begin(&offer(&recording), OWNER).unwrap();
    shares.part(&begun.id, OWNER, 0).unwrap().commit().unwrap();
    assert_eq!(files.paths().len(), 1, "{:?}", files.paths());
}

#[test]
fn an_upload_of_which_a_part_arrives_is_not_swept() {
    let shares = open_with(
        &MemoryFiles::default(),
        ShareLimits { empty_seconds: 0, idle_seconds: 0, ..limits() },
        Terms::default(),
    );
    let recording = recording(1);
    let begun = shares.begin(&offer(&recording), OWNER).unwrap();
    let mut part = shares.part(&begun.id, OWNER, 0).unwrap();
    part.write(&recording[..PART as usize]).unwrap();
    shares.sweep(now_us());
    assert_eq!(part.commit().unwrap().received, PART);
    shares.sweep(now_us());
    assert!(matches!(shares.progress(&begun.id, OWNER.name), Err(ShareError::NoUpload)));
}

#[test]
fn a_token_that_is_revoked_while_its_upload_is_stored_gets_no_link() {
    let files = MemoryFiles::default();
    let (shares, _gate) = gated(&files);
    let recording = recording(1);
    let begun = upload(&shares, &recording);
    let Ending::Checked(checked) = shares.check_upload(&begun.id, OWNER.name).unwrap() else { panic!("it is new") };
    let refused = shares.publish(*checked, OWNER, || Err(Denied::Revoked)).unwrap_err();
    assert!(matches!(refused, ShareError::Denied(Denied::Revoked)), "{refused}");
    assert!(matches!(shares.find(&begun.token), Err(ShareError::Unknown)));
    assert_eq!(count(&files, "traces/") + count(&files, "links/"), 0, "{:?}", files.paths());
}

#[test]
fn a_link_that_is_deleted_while_its_expiry_is_changed_stays_deleted() {
    let (shares, gate) = gated(&MemoryFiles::default());
    let recording = recording(1);
    let Begun { token, delete_token, .. } = share(&shares, &recording, &offer(&recording)).unwrap();
    thread::scope(|scope| {
        gate.close(Call::Put);
        let extend = scope.spawn(|| shares.set_expiry(&token, &delete_token, Some(500)));
        gate.reached();
        let delete = scope.spawn(|| shares.delete(&token, None));
        gate.open();
        extend.join().unwrap().unwrap();
        delete.join().unwrap().unwrap();
    });
    assert!(matches!(shares.find(&token), Err(ShareError::Gone(_))));
    assert!(matches!(shares.set_expiry(&token, &delete_token, Some(500)), Err(ShareError::Gone(_))));
}

#[test]
fn whichever_answer_of_the_store_is_lost_no_link_leads_to_nothing() {
    for lost in [Call::Take, Call::Put, Call::Remove] {
        let files = MemoryFiles::default();
        let (shares, gate) = gated(&files);
        let recording = recording(1);
        let first = share(&shares, &recording, &offer(&recording)).unwrap();
        if lost != Call::Put {
            // The trace is deleted, though the answer may be lost.
            gate.lose(lost);
            let deleted = shares.delete(&first.token, None);
            assert_eq!(deleted.is_err(), lost == Call::Remove, "{lost:?}");
        }
        let second = upload(&shares, &recording);
        let finished = shares.finish(&second.id, OWNER);
        if lost == Call::Take {
            let error = finished.unwrap_err();
            assert!(matches!(error, ShareError::Away(_)) && error.to_string().contains("try again"), "{error}");
            shares.finish(&second.id, OWNER).unwrap();
        } else {
            finished.unwrap();
        }
        assert!(read(&shares, &second.token).unwrap() == recording, "{lost:?}");
        // A link whose answer is lost is found by itself, and keeps its trace.
        let third = upload(&shares, &recording);
        gate.lose(Call::Put);
        assert!(shares.finish(&third.id, OWNER).is_err());
        shares.delete(&second.token, None).unwrap();
        shares.sweep(now_us());
        shares.sweep(now_us() + 10 * limits().orphan_seconds as i64);
        assert!(read(&shares, &third.token).unwrap() == recording, "{lost:?}");
    }
}

#[test]
fn a_disk_that_is_full_once_leaves_nothing_half_and_the_next_attempt_goes_on() {
    let recording = recording(1);
    let mut failures = 0;
    for calls in 0..80 {
        let files = MemoryFiles::default();
        let shares = open_with(&files, limits(), Terms::default());
        files.fail_once_after(calls, std::io::ErrorKind::StorageFull);
        let run = || {
            let begun = shares.begin(&offer(&recording), OWNER)?;
            send(&shares, &begun.id, &recording)?;
            shares.finish(&begun.id, OWNER).map(|_| begun)
        };
        match run() {
            Ok(_) => {}
            Err(error) => {
                failures += 1;
                assert!(matches!(error, ShareError::Full), "{calls}: {error}");
                // What is checked while it arrives stays until all has arrived.
                let is_arriving = shares.state().uploads.values().any(|upload| {
                    let Progress { received, bytes, .. } = upload.progress();
                    received < bytes
                });
                let is_half = |path: &String| path.ends_with(".new") || !is_arriving && path.ends_with("whole");
                let left: Vec<_> = files.paths().into_iter().filter(is_half).collect();
                assert_eq!(left, [""; 0], "{calls}");
            }
        }
        files.heal();
        let begun = run().unwrap_or_else(|error| panic!("{calls}: {error}"));
        assert!(read(&shares, &begun.token).unwrap() == recording, "{calls}");
    }
    assert!(failures > 10, "{failures}");
}
