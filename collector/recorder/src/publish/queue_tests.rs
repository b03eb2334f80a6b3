use std::path::Path;

use format::seal;

use super::*;

fn limits() -> PublishLimits {
    PublishLimits {
        memory_bytes: 2_000,
        spool_bytes: 4_000,
        spool_file_bytes: 700,
        reserve_bytes: 1_500,
        batch_bytes: 500,
        ..PublishLimits::default()
    }
}

fn queue(folder: &Path, limits: PublishLimits) -> Queue {
    Queue::new(limits, Spool::new(folder.join("spool"), "queue", limits.spool_file_bytes))
}

/// Returns a chunk that holds a number and `bytes` incompressible bytes.
fn chunk(number: u32, bytes: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    let mut random = number | 1;
    payload.extend((0..bytes).map(|_| {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        random as u8
    }));
    seal(200, &payload)
}

/// Returns the numbers that the chunks hold.
fn numbers(mut chunks: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    let mut reader = format::ChunkReader::at_chunk(&trace::limits::ImportLimits::default(), 0);
    while let Some(length) = chunk_bytes(chunks) {
        let visit = &mut |chunk: format::Chunk<'_>| {
            found.push(u32::from_le_bytes(*chunk.payload.first_chunk().unwrap()));
        };
        reader.push(&chunks[..length], visit).unwrap();
        chunks = &chunks[length..];
    }
    assert!(chunks.is_empty());
    found
}

#[test]
fn batches_grow_until_they_are_sent_and_stay_within_their_bound() {
    let folder = tempfile::tempdir().unwrap();
    let limits = PublishLimits { memory_bytes: 1 << 20, ..limits() };
    let mut queue = queue(folder.path(), limits);
    (0..3).for_each(|i| queue.push(&chunk(i, 1), 1));
    let (number, batch) = queue.next().unwrap();
    assert_eq!((number, numbers(&batch)), (1, vec![0, 1, 2]));
    queue.push(&chunk(3, 1), 1);
    let (number, batch) = queue.next().unwrap();
    assert_eq!((number, numbers(&batch)), (2, vec![3]));
    assert!(queue.next().is_none() && queue.is_sent() && !queue.is_empty());
    queue.push(&[chunk(9, 4_000), chunk(4, 1)].concat(), 2);
    let bytes: Vec<usize> = std::iter::from_fn(|| queue.next()).map(|(_, batch)| batch.len()).collect();
    assert!(bytes.len() == 2 && bytes[0] > 4_000 && bytes[1] < 500, "a chunk is never split: {bytes:?}");
    assert!(queue.ack(2) && !queue.ack(2) && !queue.ack(1));
    assert_eq!((queue.acked(), queue.last(), queue.events, queue.events_acked), (2, 4, 6, 4));
    // An acknowledgement beyond what was sent only counts for what was sent.
    queue.push(&chunk(5, 1), 1);
    assert!(queue.ack(u64::MAX));
    assert_eq!((queue.acked(), queue.events_acked, queue.is_empty()), (4, 6, false));
}

#[test]
fn a_server_that_lost_data_or_means_another_session_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(folder.path(), limits());
    queue.push(&chunk(0, 1), 1);
    assert_eq!(queue.welcome(2), Err(ResumeError::Ahead(2)));
    assert_eq!(queue.welcome(1), Ok(false));
    queue.next().unwrap();
    assert_eq!(queue.welcome(2), Ok(true));
    assert_eq!(queue.welcome(1), Err(ResumeError::Behind(1)));
    assert_eq!(queue.welcome(0), Err(ResumeError::Behind(0)));
    assert_eq!(queue.welcome(2), Ok(false));
}

/// Against a random server and network: everything accepted is delivered once and in order, and the counts say what
/// was not accepted.
#[test]
fn whatever_happens_everything_accepted_is_delivered_once_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (mut most_spooled, mut refusals) = (0, 0);
    for seed in 1..400_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut roll = move |sides: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % sides
        };
        let limits = limits();
        let mut queue = queue(folder.path(), limits);
        let mut next = 0;
        let mut accepted = Vec::new();
        // The server's batches by number.
        let mut stored: Vec<Vec<u8>> = Vec::new();
        let is_slow = roll(2) == 0;
        for _ in 0..300 {
            match roll(if is_slow { 12 } else { 8 }) {
                0 | 1 | 8.. => {
                    let count = roll(4) as u32;
                    let new: Vec<u32> = (next..next + count).collect();
                    next += count;
                    let bytes = |i: &u32| 1 + (*i as usize * 37) % 300;
                    // Sizes differ, so that batches do too.
                    let chunks: Vec<u8> = new.iter().flat_map(|i| chunk(*i, bytes(i))).collect();
                    let (before, spool) = queue.bytes();
                    let fits = before + spool + chunks.len() as u64
                        <= limits.memory_bytes + limits.spool_bytes + limits.reserve_bytes;
                    queue.push(&chunks, u64::from(count));
                    if fits {
                        accepted.extend(new);
                    } else {
                        refusals += 1;
                        assert!(!queue.has_room(), "{:?}", queue.bytes());
                    }
                }
                2..=4 => {
                    if let Some((number, batch)) = queue.next() {
                        // It may be lost, with all that follows on this connection.
                        match (number as usize).cmp(&(stored.len() + 1)) {
                            std::cmp::Ordering::Equal => stored.push(batch.to_vec()),
                            std::cmp::Ordering::Less => assert_eq!(stored[number as usize - 1], *batch),
                            std::cmp::Ordering::Greater => panic!("{number} after {}", stored.len()),
                        }
                    }
                }
                5 | 6 => drop(queue.ack(roll(stored.len() as u64 + 1))),
                _ => {
                    queue.welcome(stored.len() as u64 + 1).unwrap();
                }
            }
            let (memory, spool) = queue.bytes();
            most_spooled = most_spooled.max(spool);
            assert!(memory <= limits.memory_bytes + limits.reserve_bytes + 2 * 500, "{memory} in memory");
            assert!(spool <= limits.spool_bytes + 500, "{spool} in files");
        }
        while !queue.is_empty() {
            match queue.next() {
                Some((number, batch)) if number as usize == stored.len() + 1 => stored.push(batch.to_vec()),
                Some(_) => {}
                None => drop(queue.ack(stored.len() as u64)),
            }
        }
        let got: Vec<u32> = stored.iter().flat_map(|batch| numbers(batch)).collect();
        assert_eq!(got, accepted, "seed {seed}");
        assert_eq!((queue.events, queue.events_acked), (next.into(), accepted.len() as u64), "seed {seed}");
        assert_eq!(queue.bytes(), (0, 0), "seed {seed}");
    }
    // The bounds were reached; otherwise the test shows nothing.
    assert!(most_spooled > 3_000 && refusals > 100, "{most_spooled} {refusals}");
    // Files are deleted once read.
    std::fs::remove_dir(folder.path().join("spool")).unwrap();
}

#[test]
fn batches_that_cannot_be_spooled_leave_room_for_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut queue = queue(folder.path(), limits());
    // Sent, never acknowledged, and far larger than the bound on a batch.
    queue.push(&chunk(0, 1_900), 1);
    queue.next().unwrap();
    for i in 1..=8 {
        assert!(queue.has_room(), "{i}: {:?}", queue.bytes());
        queue.push(&chunk(i, 450), 1);
    }
    let (memory, spool) = queue.bytes();
    assert!(memory < 3_500 && spool > 2_000, "{memory} {spool}");
    queue.clear();
}

#[test]
fn without_a_disk_only_memory_is_used() {
    let mut queue = queue(Path::new("/dev/null/no"), limits());
    let mut pushed = 0;
    while queue.has_room() {
        queue.push(&chunk(pushed, 40), 1);
        pushed += 1;
        assert!(pushed < 1_000);
    }
    assert!(queue.spool_failure.is_some());
    assert!((2_000..2_600).contains(&queue.bytes().0), "{:?}", queue.bytes());
    // The reserve still accepts names and losses. Beyond it, events are counted and dropped.
    let kept = pushed;
    while queue.bytes().0 < 3_400 {
        queue.push(&chunk(pushed, 40), 0);
        pushed += 1;
    }
    queue.push(&chunk(pushed, 1_000), 7);
    let mut got = Vec::new();
    while let Some((number, batch)) = queue.next() {
        got.extend(numbers(&batch));
        queue.ack(number);
    }
    assert!(got.into_iter().eq(0..pushed));
    assert_eq!((queue.events - queue.events_acked, queue.events_acked), (7, u64::from(kept)));
    assert!(queue.has_room());
}
