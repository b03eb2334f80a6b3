//! Tests of the room for shared traces: who takes how much of it, and for how long.

use trace::limits::ShareLimits;

use super::tests::{OWNER, PART, SECOND, limits, offer, open_with, read, recording, send, share, unordered};
use super::*;
use crate::store::files::MemoryFiles;

const BOB: Owner<'_> = Owner { name: "bob", bytes: None };

fn terms(bytes: u64) -> Terms {
    Terms { bytes, ..Terms::default() }
}

/// Returns an offer of so many bytes, whatever they are.
fn of(bytes: u64) -> Offer {
    Offer { bytes, hash: None, ..offer(b"x") }
}

/// Sends bytes of an upload until so many have arrived.
fn send_to(shares: &Shares, id: &str, owner: Owner<'_>, to: u64) -> ShareResult {
    loop {
        let Progress { received, .. } = shares.progress(id, owner.name)?;
        if received >= to {
            return Ok(());
        }
        let mut part = shares.part(id, owner, received)?;
        part.write(&vec![0; PART.min(to - received) as usize])?;
        part.commit()?;
    }
}

/// Returns the bytes of all files.
fn stored(files: &MemoryFiles) -> u64 {
    let paths = files.paths().into_iter().filter(|path| !path.ends_with(".json"));
    paths.map(|path| Files::read(files, &path, 0, usize::MAX).unwrap().len() as u64).sum()
}

#[test]
fn what_is_announced_and_not_sent_takes_no_room() {
    let files = MemoryFiles::default();
    let recording = recording(1);
    let room = 20 * PART;
    for begun in 0..3 {
        // Also after a restart.
        let shares = open_with(&files, limits(), terms(room));
        assert_eq!(shares.most_bytes(), room / 2);
        shares.begin(&of(room / 2), BOB).unwrap();
        let held: u64 = shares.state().uploads.values().map(|upload| upload.held()).sum();
        assert!(held <= (begun + 1) * 2 * PART, "{held}");
        share(&shares, &recording, &offer(&recording)).unwrap();
    }
}

#[test]
fn what_arrives_is_counted_up_to_the_room_and_up_to_the_half_of_one_token() {
    let shares = open_with(&MemoryFiles::default(), limits(), terms(20 * PART));
    let [first, second, bob, other] =
        [OWNER, OWNER, BOB, BOB].map(|owner| shares.begin(&of(7 * PART), owner).unwrap().id);
    send_to(&shares, &first, OWNER, 6 * PART).unwrap();
    // Of the ten parts of her half, this holds seven.
    let refused = send_to(&shares, &second, OWNER, 7 * PART).unwrap_err();
    assert!(matches!(refused, ShareError::Unfinished(10_000)), "{refused}");
    assert!(refused.to_string().contains("finish or cancel one"), "{refused}");
    let alice = shares.progress(&second, "alice").unwrap().received;
    assert!((2..=4).contains(&(alice / PART)), "{alice}");
    // Bob gets the other half, and no more.
    send_to(&shares, &bob, BOB, 5 * PART).unwrap();
    let refused = send_to(&shares, &other, BOB, 7 * PART).unwrap_err();
    assert!(matches!(refused, ShareError::Unfinished(_) | ShareError::Full), "{refused}");
    assert!(shares.state().used() <= 20 * PART);
    // What was cancelled is free at once.
    shares.cancel(&first, "alice").unwrap();
    send_to(&shares, &second, OWNER, 7 * PART).unwrap();
    // A new one that would not fit is refused at once.
    let refused = shares.begin(&of(7 * PART), Owner { name: "carol", bytes: None }).unwrap_err();
    assert!(matches!(refused, ShareError::Full) && refused.to_string().contains("try again later"), "{refused}");
}

#[test]
fn a_quota_is_not_exceeded_by_uploads_that_arrive_at_once() {
    let shares = open_with(&MemoryFiles::default(), limits(), terms(100 * PART));
    let owner = Owner { bytes: Some(10 * PART), ..OWNER };
    let [one, two] = [(); 2].map(|()| shares.begin(&of(8 * PART), owner).unwrap().id);
    send_to(&shares, &one, owner, 6 * PART).unwrap();
    let refused = send_to(&shares, &two, owner, 8 * PART).unwrap_err();
    assert!(matches!(refused, ShareError::Quota(_)), "{refused}");
}

#[test]
fn an_upload_ends_after_its_pause_also_if_servers_start_anew_meanwhile() {
    let small = ShareLimits { note_seconds: 0, ..limits() };
    let begin = |received: u64| {
        let files = MemoryFiles::default();
        let shares = open_with(&files, small, Terms::default());
        let id = shares.begin(&of(9 * PART), OWNER).unwrap().id;
        send_to(&shares, &id, OWNER, received).unwrap();
        (files, id)
    };
    let now = now_us();
    for (received, seconds) in [(0, small.empty_seconds), (PART, small.idle_seconds)] {
        let (files, id) = begin(received);
        // Each server sees only a part of the pause.
        for (after, is_there) in [(1, true), (seconds / 2, true), (seconds - 2, true), (seconds + 2, false)] {
            let shares = open_with(&files, small, Terms::default());
            shares.sweep(now + after as i64 * SECOND);
            assert_eq!(shares.progress(&id, "alice").is_ok(), is_there, "{received} bytes, {after} s");
        }
        assert_eq!(files.paths(), [""; 0]);
        // What arrives ends the pause.
        let (files, id) = begin(received);
        open_with(&files, small, Terms::default()).sweep(now);
        send_to(&open_with(&files, small, Terms::default()), &id, OWNER, received + PART).unwrap();
        let shares = open_with(&files, small, Terms::default());
        shares.sweep(now + small.empty_seconds as i64 * SECOND);
        assert_eq!(shares.progress(&id, "alice").unwrap().received, received + PART);
    }
}

#[test]
fn an_upload_that_has_paused_gives_way_to_others_and_one_that_goes_on_does_not() {
    for (yield_seconds, is_given_up) in [(0, true), (900, false)] {
        let files = MemoryFiles::default();
        let small = ShareLimits { yield_seconds, ..limits() };
        let shares = open_with(&files, small, terms(20 * PART));
        let [one, two] = [OWNER, BOB].map(|owner| shares.begin(&of(10 * PART), owner).unwrap().id);
        send_to(&shares, &one, OWNER, 9 * PART).unwrap();
        send_to(&shares, &two, BOB, 9 * PART).unwrap();
        let _goes_on = shares.part(&two, BOB, 9 * PART).unwrap();
        let carol = Owner { name: "carol", bytes: None };
        assert_eq!(shares.begin(&of(5 * PART), carol).is_ok(), is_given_up);
        assert_eq!(shares.progress(&one, "alice").is_err(), is_given_up);
        assert_eq!(shares.progress(&two, "bob").unwrap().received, 9 * PART);
    }
}

#[test]
fn no_upload_gives_way_to_one_that_would_not_fit_then_either() {
    let small = ShareLimits { yield_seconds: 0, ..limits() };
    let shares = open_with(&MemoryFiles::default(), small, terms(20 * PART));
    let [paused, goes_on] = [OWNER, BOB].map(|owner| shares.begin(&of(9 * PART), owner).unwrap().id);
    send_to(&shares, &goes_on, BOB, 8 * PART).unwrap();
    let _goes_on = shares.part(&goes_on, BOB, 8 * PART).unwrap();
    let carol = Owner { name: "carol", bytes: None };
    let busy = shares.begin(&of(9 * PART), carol).unwrap().id;
    let _busy = shares.part(&busy, carol, 0).unwrap();
    let dave = Owner { name: "dave", bytes: None };
    assert!(matches!(shares.begin(&of(10 * PART), dave), Err(ShareError::Full)));
    shares.progress(&paused, "alice").unwrap();
    shares.begin(&of(9 * PART), dave).unwrap();
    assert!(matches!(shares.progress(&paused, "alice"), Err(ShareError::NoUpload)));
}

#[test]
fn what_an_upload_becomes_does_not_exceed_the_room() {
    // What is written anew has an index.
    let (sent, becomes) = (unordered(1), recording(1).len() as u64);
    assert!(becomes > sent.len() as u64, "{becomes} bytes instead of {}", sent.len());
    let files = MemoryFiles::default();
    let filler = recording(2);
    let room = filler.len() as u64 + becomes - 1;
    let shares = open_with(&files, ShareLimits { unfinished_share: 1, ..limits() }, terms(room));
    let kept = share(&shares, &filler, &offer(&filler)).unwrap();
    let begun = shares.begin(&Offer { hash: None, ..offer(&sent) }, OWNER).unwrap();
    send(&shares, &begun.id, &sent).unwrap();
    assert!(matches!(shares.finish(&begun.id, OWNER), Err(ShareError::Full)));
    assert!(stored(&files) <= room && matches!(shares.find(&begun.token), Err(ShareError::Unknown)));
    // It is finished when there is room.
    shares.delete(&kept.token, None).unwrap();
    shares.finish(&begun.id, OWNER).unwrap();
    assert_eq!(read(&shares, &begun.token).unwrap().len() as u64, becomes);
}

#[test]
fn whatever_is_sent_in_whatever_order_the_room_is_kept() {
    let files = MemoryFiles::default();
    let recordings: Vec<_> = (0..6).map(recording).collect();
    let room = 4 * recordings[0].len() as u64;
    let shares = open_with(&files, ShareLimits { unfinished_share: 1, uploads_of_token: 9, ..limits() }, terms(room));
    let (mut random, mut uploads, mut links) = (7_u64, Vec::new(), Vec::new());
    let mut finished = 0;
    for step in 0..2_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (what, which) = ((random >> 33) % 16, (random >> 40) as usize);
        match what {
            0 | 1 => {
                let recording = &recordings[which % recordings.len()];
                uploads.extend(shares.begin(&offer(recording), OWNER).map(|begun| (begun, recording)));
            }
            2 if !uploads.is_empty() => {
                let (begun, _) = uploads.swap_remove(which % uploads.len());
                shares.cancel(&begun.id, "alice").unwrap();
            }
            3 if !links.is_empty() => {
                let token: String = links.swap_remove(which % links.len());
                shares.delete(&token, None).unwrap();
            }
            _ if !uploads.is_empty() => {
                let which = which % uploads.len();
                let (begun, recording) = &uploads[which];
                let received = shares.progress(&begun.id, "alice").unwrap().received as usize;
                if received < recording.len() {
                    let part = shares.part(&begun.id, OWNER, received as u64).and_then(|mut part| {
                        part.write(&recording[received..recording.len().min(received + PART as usize)])?;
                        part.commit()
                    });
                    assert!(matches!(part, Ok(_) | Err(ShareError::Full)));
                } else if shares.finish(&begun.id, OWNER).is_ok() {
                    finished += 1;
                    links.push(uploads.swap_remove(which).0.token);
                }
            }
            _ => {}
        }
        assert!(shares.state().used() <= room && stored(&files) <= room, "step {step}: {} bytes", stored(&files));
    }
    assert!(finished > 20, "{finished} were finished");
}
