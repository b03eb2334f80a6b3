//! Tests of shares on a disk in memory, which can lose its power and fail.

use std::io;
use std::sync::Arc;

use format::recording::Transcriber;
use format::{End, EventColumns, Header, Writer};
use trace::frames::StackId;
use trace::limits::{ImportLimits, ShareLimits};
use trace::units::Address;
use trace::{Event, TagId};

use super::*;
use crate::store::FolderBlobs;
use crate::store::files::{MemoryFiles, PowerCut};

pub(super) const OWNER: Owner<'_> = Owner { name: "alice", bytes: None };
pub(super) const SECOND: i64 = 1_000_000;
/// Bytes of a part in these tests.
pub(super) const PART: u64 = 1_000;

pub(super) fn limits() -> ShareLimits {
    ShareLimits { part_bytes: PART, uploads_of_token: 3, turn_millis: 10, ..ShareLimits::default() }
}

/// Opens the shares of a disk as a server does at its start.
pub(super) fn open_with(files: &MemoryFiles, limits: ShareLimits, terms: Terms) -> Shares {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    let shares = Shares::open((Arc::clone(&files), Arc::new(FolderBlobs::new(files))), limits, terms);
    shares.load().unwrap();
    shares
}

pub(super) fn open(files: &MemoryFiles) -> Shares {
    open_with(files, limits(), Terms::default())
}

/// A recording that no other seed has, as the server writes it.
pub(super) fn recording(seed: u64) -> Vec<u8> {
    let (mut transcriber, mut out) = (Transcriber::new(ImportLimits::default()), Vec::new());
    transcriber.push(&unordered(seed), &mut out).unwrap();
    transcriber.finish(&mut out).unwrap();
    out
}

/// A recording of random addresses, which don't pack.
pub(super) fn unordered(seed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&Header { name: format!("run {seed}"), ..Header::default() }, &mut out);
    let mut columns = EventColumns::default();
    let mut random = seed;
    for number in 0..400_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        columns.push(Event {
            action: trace::event::Action::Alloc,
            address: Address(random),
            size: 512 << (number % 9),
            time_us: (number * 7) as i64,
            tag: TagId(0),
            stack: StackId(0),
        });
    }
    writer.events(0, 0, &columns, &mut out);
    writer.end(&End { events: 400, ..End::default() }, &mut out);
    out
}

pub(super) fn offer(recording: &[u8]) -> Offer {
    Offer {
        bytes: recording.len() as u64,
        hash: Some(Hash::of(recording)),
        name: "a run".to_owned(),
        expires_seconds: Some(100),
        ..Offer::default()
    }
}

/// Sends the parts of an upload that are missing.
pub(super) fn send(shares: &Shares, id: &str, recording: &[u8]) -> ShareResult {
    loop {
        let Progress { received, .. } = shares.progress(id, OWNER.name)?;
        let Some(part) = recording[received as usize..].chunks(PART as usize).next() else { return Ok(()) };
        let mut writer = shares.part(id, OWNER, received)?;
        writer.write(part)?;
        writer.commit()?;
        // Some parts are checked as they arrive, and some are left to the end.
        if received / PART % 3 < 2 {
            shares.follow(id, OWNER.name);
        }
    }
}

/// Shares a recording. Returns its tokens.
pub(super) fn share(shares: &Shares, recording: &[u8], offer: &Offer) -> ShareResult<Begun> {
    let begun = shares.begin(offer, OWNER)?;
    send(shares, &begun.id, recording)?;
    shares.finish(&begun.id, OWNER)?;
    Ok(begun)
}

/// Returns what a link leads to.
pub(super) fn read(shares: &Shares, token: &str) -> ShareResult<Vec<u8>> {
    let link = shares.find(token)?;
    let bytes = shares.read(&link, 0, usize::MAX)?;
    assert_eq!((bytes.len() as u64, Hash::of(&bytes).to_string()), (link.bytes, link.hash().to_owned()));
    Ok(bytes)
}

#[test]
fn a_link_leads_to_what_was_uploaded_until_it_is_deleted() {
    let files = MemoryFiles::default();
    let shares = open(&files);
    let recording = recording(1);
    assert!(recording.len() as u64 > 3 * PART, "{} bytes", recording.len());
    let begun = shares.begin(&offer(&recording), OWNER).unwrap();
    let Begun { id, token, delete_token } = begun;
    assert!(is_link_token(&token) && is_link_token(&delete_token) && token != delete_token);
    // Half an upload is invisible, and not finished.
    let mut part = shares.part(&id, OWNER, 0).unwrap();
    assert!(matches!(shares.part(&id, OWNER, 0), Err(ShareError::Taken)));
    part.write(&recording[..PART as usize]).unwrap();
    assert!(matches!(part.write(b"x"), Err(ShareError::PartTooLong(PART))));
    assert_eq!(part.commit().unwrap().received, PART);
    assert!(matches!(shares.find(&token), Err(ShareError::Unknown)));
    assert!(matches!(shares.finish(&id, OWNER), Err(ShareError::Incomplete(PART))));
    assert!(matches!(shares.part(&id, OWNER, 0), Err(ShareError::Offset(PART))));
    // It belongs to its owner.
    assert!(matches!(shares.progress(&id, "bob"), Err(ShareError::NoUpload)));
    assert!(matches!(shares.finish(&id, Owner { name: "bob", bytes: None }), Err(ShareError::NoUpload)));
    // A part that is given up leaves nothing behind.
    drop(shares.part(&id, OWNER, PART).unwrap());
    send(&shares, &id, &recording).unwrap();
    let finished = shares.finish(&id, OWNER).unwrap();
    assert!(finished.is_new && finished.link.name == "a run" && finished.link.events == 400);
    assert!(!shares.finish(&id, OWNER).unwrap().is_new, "the answer may have been lost");
    assert!(matches!(shares.finish(&id, Owner { name: "bob", bytes: None }), Err(ShareError::NoUpload)));
    assert!(read(&shares, &token).unwrap() == recording);
    // No file has a token's name or content, and no upload is left.
    for path in files.paths() {
        let content = Files::read(&files, &path, 0, usize::MAX).unwrap();
        let has = |text: &str| content.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(![&token, &delete_token].into_iter().any(|secret| path.contains(secret.as_str()) || has(secret)));
        assert!(!path.contains("uploads"), "{path}");
    }
    assert!(matches!(shares.delete(&token, Some("wrong")), Err(ShareError::DeleteToken)));
    shares.delete(&token, Some(&delete_token)).unwrap();
    assert!(matches!(shares.find(&token), Err(ShareError::Gone(Gone { why: Why::Deleted, .. }))));
    assert!(files.paths().iter().all(|path| !path.contains("traces/")), "the trace is gone at once");
    assert!(matches!(open(&files).find(&token), Err(ShareError::Gone(_))));
}

#[test]
fn what_is_checked_while_it_arrives_is_what_is_checked_at_the_end() {
    let (files, recording) = (MemoryFiles::default(), recording(4));
    let shares = open_with(&files, ShareLimits { checks: 1, uploads_of_token: 9, ..limits() }, Terms::default());
    let whole = |id: &str| files.paths().iter().any(|path| path.contains(id) && path.ends_with("whole"));
    let begin = || shares.begin(&offer(&recording), OWNER).unwrap();
    let part = |begun: &Begun, from: u64, bytes: &[u8]| {
        let mut part = shares.part(&begun.id, OWNER, from).unwrap();
        part.write(bytes).unwrap();
        part.commit().unwrap();
        shares.follow(&begun.id, OWNER.name);
    };
    let first = &recording[..PART as usize];
    // One place: the second upload is left to its end, until the first one is given up.
    let [one, two] = [begin(), begin()];
    part(&one, 0, first);
    part(&two, 0, first);
    assert_eq!((whole(&one.id), whole(&two.id)), (true, false));
    shares.cancel(&one.id, OWNER.name).unwrap();
    shares.follow(&one.id, OWNER.name);
    assert!(files.paths().iter().all(|path| !path.contains(&one.id)));
    shares.follow(&two.id, OWNER.name);
    assert!(whole(&two.id));
    // The server starts anew, and knows nothing of what was checked.
    let again = open(&files);
    send(&again, &two.id, &recording).unwrap();
    again.finish(&two.id, OWNER).unwrap();
    assert!(read(&again, &two.token).unwrap() == recording);
    // What is wrong is found on the way, and said at the end.
    let mut wrong = recording.clone();
    wrong[PART as usize / 2] ^= 1;
    let three = shares.begin(&Offer { hash: None, ..offer(&recording) }, OWNER).unwrap();
    send(&shares, &three.id, &wrong).unwrap();
    assert!(matches!(shares.finish(&three.id, OWNER), Err(ShareError::Refused(_))));
    let four = begin();
    send(&shares, &four.id, &wrong).unwrap();
    assert!(matches!(shares.finish(&four.id, OWNER), Err(ShareError::Refused(_) | ShareError::Hash)));
    assert!(files.paths().iter().all(|path| !path.contains("uploads")));
}

#[test]
fn the_same_trace_is_stored_once_and_deleted_with_its_last_link() {
    let files = MemoryFiles::default();
    let shares = open(&files);
    let recording = recording(2);
    let traces = || files.paths().iter().filter(|path| path.contains("traces/")).count();
    // Two uploads at once.
    let [one, two] = [(); 2].map(|()| shares.begin(&offer(&recording), OWNER).unwrap());
    send(&shares, &one.id, &recording).unwrap();
    send(&shares, &two.id, &recording).unwrap();
    std::thread::scope(|scope| {
        for begun in [&one, &two] {
            scope.spawn(|| shares.finish(&begun.id, OWNER).unwrap());
        }
    });
    assert_eq!(traces(), 1);
    shares.delete(&one.token, Some(&one.delete_token)).unwrap();
    assert!(traces() == 1 && read(&shares, &two.token).unwrap() == recording);
    // An administrator needs no delete token.
    shares.delete(&two.token, None).unwrap();
    assert_eq!(traces(), 0);
}

#[test]
fn what_is_not_allowed_is_refused() {
    type Want = fn(&ShareError) -> bool;
    let recording = recording(3);
    let of = |change: fn(&mut Offer)| {
        let mut offer = offer(&recording);
        change(&mut offer);
        offer
    };
    let terms = Terms { bytes: 12_000, most_seconds: Some(1_000), allows_public: false };
    let small = ShareLimits { upload_bytes: 5_000, ..limits() };
    let cases: [(&str, Offer, Want); 7] = [
        ("empty", of(|offer| offer.bytes = 0), |error| matches!(error, ShareError::Empty)),
        ("large", of(|offer| offer.bytes = 5_001), |error| matches!(error, ShareError::TooLarge(5_000))),
        ("public", of(|offer| offer.is_public = true), |error| matches!(error, ShareError::NotPublic)),
        ("at once", of(|offer| offer.expires_seconds = Some(0)), |error| matches!(error, ShareError::ExpiresAtOnce)),
        ("late", of(|offer| offer.expires_seconds = Some(1_001)), |error| {
            matches!(error, ShareError::ExpiresLate(1_000))
        }),
        ("never", of(|offer| offer.expires_seconds = None), |error| matches!(error, ShareError::ExpiresLate(1_000))),
        ("password", of(|offer| offer.password = Some("x".repeat(1_001))), |error| {
            matches!(error, ShareError::PasswordTooLong(1_000))
        }),
    ];
    for (name, offer, want) in cases {
        let files = MemoryFiles::default();
        let shares = open_with(&files, small, terms);
        let error = shares.begin(&offer, OWNER).unwrap_err();
        assert!(want(&error), "{name}: {error}");
        assert!(files.paths().is_empty(), "{name}: {:?}", files.paths());
    }
    // A token's quota counts its links and its uploads.
    let shares = open(&MemoryFiles::default());
    let quota = Owner { bytes: Some(recording.len() as u64 + 1), ..OWNER };
    share(&shares, &recording, &offer(&recording)).unwrap();
    assert!(matches!(shares.begin(&offer(&recording), quota), Err(ShareError::Quota(_))));
    shares.begin(&offer(&recording), Owner { name: "bob", ..quota }).unwrap();
    // So many uploads at once.
    let begun: Vec<_> = (0..3).map(|_| shares.begin(&offer(&recording), OWNER).unwrap()).collect();
    assert!(matches!(shares.begin(&offer(&recording), OWNER), Err(ShareError::Busy)));
    shares.cancel(&begun[0].id, OWNER.name).unwrap();
    shares.begin(&offer(&recording), OWNER).unwrap();
}

#[test]
fn what_is_no_recording_is_refused_and_forgotten() {
    let files = MemoryFiles::default();
    let shares = open(&files);
    let good = recording(4);
    let mut changed = good.clone();
    changed[700] ^= 1;
    let no_hash = |bytes: &[u8]| Offer { hash: None, ..offer(bytes) };
    for (name, bytes, offer) in [
        ("a pickle", b"\x80\x04}.".to_vec(), no_hash(b"\x80\x04}.")),
        ("cut off", good[..good.len() - 3].to_vec(), no_hash(&good[..good.len() - 3])),
        ("changed", changed.clone(), no_hash(&changed)),
        ("another one", good.clone(), Offer { hash: Some(Hash::of(b"another")), ..offer(&good) }),
    ] {
        let begun = shares.begin(&offer, OWNER).unwrap();
        send(&shares, &begun.id, &bytes).unwrap();
        let error = shares.finish(&begun.id, OWNER).unwrap_err();
        assert!(matches!(error, ShareError::Refused(_) | ShareError::Hash), "{name}: {error}");
        assert!(matches!(shares.find(&begun.token), Err(ShareError::Unknown)), "{name}");
        assert_eq!(files.paths(), [""; 0], "{name}");
    }
}

#[test]
fn a_password_is_asked_for_and_its_key_opens_one_link() {
    let shares = open(&MemoryFiles::default());
    let recording = recording(5);
    let password = Offer { password: Some("correct horse".to_owned()), ..offer(&recording) };
    let [locked, other] = [(); 2].map(|()| share(&shares, &recording, &password).unwrap().token);
    for key in [None, Some(""), Some("correct horse")] {
        assert!(matches!(shares.open_with_key(&locked, key), Err(ShareError::PasswordNeeded)));
    }
    assert!(matches!(shares.unlock(&locked, "battery staple"), Err(ShareError::PasswordWrong)));
    let key = shares.unlock(&locked, "correct horse").unwrap();
    shares.open_with_key(&locked, Some(&key)).unwrap();
    assert!(matches!(shares.open_with_key(&other, Some(&key)), Err(ShareError::PasswordNeeded)));
}

#[test]
fn what_is_over_is_swept_and_a_jump_of_the_clock_deletes_nothing() {
    let files = MemoryFiles::default();
    let shares = open(&files);
    let recording = recording(6);
    let Begun { token, delete_token, .. } = share(&shares, &recording, &offer(&recording)).unwrap();
    let kept = share(&shares, &recording, &Offer { expires_seconds: None, ..offer(&recording) }).unwrap().token;
    let now = now_us();
    shares.sweep(now);
    shares.set_expiry(&token, &delete_token, Some(50)).unwrap();
    assert!(matches!(shares.set_expiry(&token, &token, Some(60)), Err(ShareError::DeleteToken)));
    // The clock of retention has not come so far.
    shares.sweep(now + 40 * SECOND);
    shares.find(&token).unwrap();
    shares.sweep(now + 60 * SECOND);
    assert!(matches!(shares.find(&token), Err(ShareError::Gone(Gone { why: Why::Expired, .. }))));
    assert!(read(&shares, &kept).unwrap() == recording);
    // What is remembered of it goes later.
    let gone = limits().gone_seconds as i64 * SECOND;
    shares.sweep(now + 50 * SECOND + gone - 1);
    assert!(matches!(shares.find(&token), Err(ShareError::Gone(_))));
    shares.sweep(now + 61 * SECOND + gone);
    assert!(matches!(shares.find(&token), Err(ShareError::Unknown)));
    // An upload that stands still.
    let idle = open_with(&files, ShareLimits { empty_seconds: 0, ..limits() }, Terms::default());
    let begun = idle.begin(&offer(&recording), OWNER).unwrap();
    idle.sweep(now);
    assert!(matches!(idle.progress(&begun.id, OWNER.name), Err(ShareError::NoUpload)));
}

#[test]
fn a_trace_without_a_link_is_kept_for_a_time_of_grace() {
    let files = MemoryFiles::default();
    crate::store::files::replace(&files, &content_path(&layout::content_name(Hash::of(b"x"))), b"x").unwrap();
    let shares = open(&files);
    let now = now_us();
    let grace = limits().orphan_seconds as i64 * SECOND;
    for (after, count) in [(0, 1), (grace - 1, 1), (grace, 0)] {
        shares.sweep(now + after);
        assert_eq!(files.paths().len(), count, "after {after}");
    }
}

#[test]
fn a_damaged_link_costs_neither_the_others_nor_any_trace() {
    let files = MemoryFiles::default();
    let recordings = [recording(7), recording(8)];
    let tokens = {
        let shares = open(&files);
        recordings.each_ref().map(|recording| share(&shares, recording, &offer(recording)).unwrap().token)
    };
    files.damage(&link_path(Secret::of(&tokens[0]).as_str()), |bytes| bytes.truncate(9));
    let shares = open(&files);
    assert!(matches!(shares.find(&tokens[0]), Err(ShareError::Store(StoreError::Damaged(_)))));
    for days in 0..1_000 {
        shares.sweep(now_us() + days * 86_400 * SECOND);
    }
    assert_eq!(files.paths().iter().filter(|path| path.contains("traces/")).count(), 2);
}

#[test]
fn an_upload_whose_description_is_damaged_is_not_deleted() {
    let files = MemoryFiles::default();
    let recording = recording(11);
    let begun = open(&files).begin(&offer(&recording), OWNER).unwrap();
    send(&open(&files), &begun.id, &recording).unwrap();
    files.damage(&format!("shares/uploads/{}/about.json", begun.id), |bytes| bytes.truncate(3));
    let before = files.paths();
    assert!(matches!(open(&files).progress(&begun.id, OWNER.name), Err(ShareError::NoUpload)));
    assert_eq!(files.paths(), before);
}

/// Where a person is with an upload when the power fails.
struct ExpectedUpload {
    begun: Option<Begun>,
    received: u64,
    is_finished: bool,
    is_deleted: bool,
}

#[test]
fn whenever_the_power_fails_what_was_acknowledged_is_there_and_nothing_half_is() {
    let recording = recording(9);
    let files = MemoryFiles::recording();
    let shares = open(&files);
    // The server's answers so far, each with the number of changes that the disk had seen by then.
    let mut told = vec![(0, ExpectedUpload { begun: None, received: 0, is_finished: false, is_deleted: false })];
    let begun = shares.begin(&offer(&recording), OWNER).unwrap();
    let now = |received, is_finished, is_deleted| {
        (files.changes(), ExpectedUpload { begun: Some(begun.clone()), received, is_finished, is_deleted })
    };
    told.push(now(0, false, false));
    for (part, from) in recording.chunks(PART as usize).zip((0..).step_by(PART as usize)) {
        let mut writer = shares.part(&begun.id, OWNER, from).unwrap();
        writer.write(part).unwrap();
        told.push(now(writer.commit().unwrap().received, false, false));
    }
    shares.finish(&begun.id, OWNER).unwrap();
    told.push(now(recording.len() as u64, true, false));
    shares.delete(&begun.token, Some(&begun.delete_token)).unwrap();
    told.push(now(recording.len() as u64, true, true));
    assert!(files.changes() > 30, "{} changes", files.changes());

    for changes in 0..=files.changes() {
        let (_, told) = told.iter().rev().find(|(before, _)| *before <= changes).unwrap();
        for cut in PowerCut::ALL {
            let what = format!("{cut:?} after {changes} changes");
            let survivors = files.after(changes, cut);
            let shares = open(&survivors);
            let Some(Begun { id, token, delete_token }) = &told.begun else { continue };
            match (told.is_finished, told.is_deleted) {
                (false, _) => {
                    // Either the upload goes on from what was acknowledged, or it has just been finished.
                    match shares.progress(id, OWNER.name) {
                        Ok(progress) => {
                            assert!(progress.received >= told.received, "{what}: {progress:?}");
                            send(&shares, id, &recording).unwrap_or_else(|error| panic!("{what}: {error}"));
                            shares.finish(id, OWNER).unwrap_or_else(|error| panic!("{what}: {error}"));
                        }
                        Err(error) => assert!(shares.find(token).is_ok(), "{what}: {error}"),
                    }
                    assert!(read(&shares, token).unwrap() == recording, "{what}");
                }
                (true, false) => match read(&shares, token) {
                    Ok(bytes) => assert!(bytes == recording, "{what}"),
                    // The deletion has begun.
                    Err(error) => assert!(matches!(error, ShareError::Gone(_)), "{what}: {error}"),
                },
                (true, true) => assert!(matches!(shares.find(token), Err(ShareError::Gone(_))), "{what}"),
            }
            // Nothing stays that no one can reach.
            let _ = shares.delete(token, Some(delete_token));
            let _ = shares.cancel(id, OWNER.name);
            let grace = limits().orphan_seconds as i64 * SECOND;
            shares.sweep(now_us());
            shares.sweep(now_us() + grace);
            let left: Vec<_> = survivors.paths().into_iter().filter(|path| !path.contains("shares/links/")).collect();
            assert_eq!(left, [""; 0], "{what}");
        }
    }
}

#[test]
fn whatever_call_fails_the_upload_can_be_finished() {
    let recording = recording(10);
    for error in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
        for calls in 0..80 {
            let what = format!("{error:?} after {calls} calls");
            let files = MemoryFiles::default();
            let shares = open(&files);
            let begun = shares.begin(&offer(&recording), OWNER).unwrap();
            files.fail_after(calls, error);
            let failed = send(&shares, &begun.id, &recording).and_then(|()| shares.finish(&begun.id, OWNER).map(drop));
            if let (io::ErrorKind::StorageFull, Err(error)) = (error, &failed) {
                assert!(matches!(error, ShareError::Full), "{what}: {error}");
            }
            files.heal();
            if failed.is_err() && shares.find(&begun.token).is_err() {
                send(&shares, &begun.id, &recording).unwrap_or_else(|error| panic!("{what}: {error}"));
                shares.finish(&begun.id, OWNER).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            assert!(read(&open(&files), &begun.token).unwrap() == recording, "{what}");
        }
    }
}
