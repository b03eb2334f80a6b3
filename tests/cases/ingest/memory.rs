//! The memory that a session takes on the server: checked before a batch is stored, and when a stored one is read back.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use format::{EventColumns, Kind, Writer, seal};
use serde::Serialize;
use tests::peer::Peer;
use tests::stream::Stream;
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::ServerLimits;
use trace::units::Address;
use trace::{Event, TagId};
use vramscope::ingest::Retention;
use vramscope::store::SegmentStore;
use wire::{Code, Message, Refused};

use crate::inside::{Inside, small};

const MIB: usize = 1 << 20;

/// Blocks of one piece of a state: 32 bytes of memory each.
const PIECE_BLOCKS: u64 = 1 << 13;

/// Limits for the memory of a session that a test can reach.
fn limits() -> ServerLimits {
    ServerLimits { state_bytes: 4 * MIB, ..small() }
}

/// A segments chunk whose numbers are chosen freely.
#[derive(Serialize)]
struct State<'a> {
    device: i64,
    at: u64,
    of: u64,
    from: u64,
    #[serde(with = "serde_bytes")]
    segments: &'a [u8],
    #[serde(with = "serde_bytes")]
    blocks: &'a [u8],
}

impl State<'_> {
    fn chunk(&self) -> Vec<u8> {
        seal(Kind::Segments as u8, &rmp_serde::to_vec_named(self).expect("a map"))
    }
}

/// Returns one part of a state of 2^60 parts: a segment with [`PIECE_BLOCKS`] blocks of a byte.
fn endless_part(device: i64, from: u64) -> Vec<u8> {
    // Address, size, stream, flags (1 small, 4 more blocks of the segment before), pool, stack, and the number of blocks
    // as a number of two bytes.
    let flags = if from > 0 { 5 } else { 1 };
    let segment = [0, 0x80, 0x40, 0, flags, 0, 0, 0, 0x80 | (PIECE_BLOCKS & 0x7f) as u8, (PIECE_BLOCKS >> 7) as u8];
    let blocks = [0, 1, 0, 0, 0].repeat(PIECE_BLOCKS as usize);
    State { device, at: 1 << 40, of: 1 << 60, from, segments: &segment, blocks: &blocks }.chunk()
}

/// Returns events that allocate blocks and never free them.
fn allocations(device: i64, batch: u64, count: u64) -> Vec<u8> {
    let mut columns = EventColumns::default();
    for i in batch * count..(batch + 1) * count {
        let (action, address) = (Action::Alloc, Address((1 << 40) + i * 512));
        columns.push(Event { action, address, size: 512, time_us: i as i64, tag: TagId(0), stack: StackId(0) });
    }
    let mut chunks = Vec::new();
    Writer::at_chunk().events(device, batch * count, &columns, &mut chunks);
    chunks
}

/// Returns a part of a kind that no version knows, which unpacks to a mebibyte.
fn zeros() -> Vec<u8> {
    seal(77, &vec![0; MIB])
}

/// Sends a header, and batches until one is refused. Returns how many were accepted, and the sentence.
fn send(server: &Inside, stream: &Stream, batches: impl Iterator<Item = Vec<u8>>) -> Result<(u64, String)> {
    let (mut peer, _) = Peer::hello(server.address, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let mut last = 1;
    for chunks in batches {
        peer.batch(last + 1, &chunks)?;
        loop {
            match peer.frame()? {
                Message::Ack(ack) if ack.seq > last => break,
                // The last one again, before a refusal.
                Message::Ack(_) => {}
                Message::Refused(Refused { code: Code::Full, message, retry: false }) => {
                    // What was accepted is stored, and only that.
                    let next = Peer::hello(server.address, &stream.hello)?.1;
                    ensure!(next == last + 1, "batch {next} is wanted after {last}");
                    return Ok((last - 1, message));
                }
                other => bail!("{other:?}"),
            }
        }
        last += 1;
    }
    bail!("{last} batches were accepted")
}

/// Checks that a session that sends such batches is refused with a sentence that contains `reason`, after so many batches
/// at most, and that a server which opens the store reads back what was accepted.
fn check(seed: u64, limits: ServerLimits, most: u64, reason: &str, batch: impl Fn(u64) -> Vec<u8>) -> Result<()> {
    let store: Arc<SegmentStore> = Arc::new(SegmentStore::in_memory(1 << 30));
    let stream = Stream::new(seed, 2, 50);
    let server = Inside::with(Arc::clone(&store), limits, Retention::default())?;
    let (accepted, sentence) = send(&server, &stream, (0..1_000).map(batch))?;
    ensure!(sentence.contains(reason) && (1..=most).contains(&accepted), "{accepted} batches, then: {sentence}");
    let again = Inside::with(store, limits, Retention::default())?;
    let (_, next) = Peer::hello(again.address, &stream.hello)?;
    ensure!(next == accepted + 2, "batch {next} is wanted again after {accepted}");
    Ok(())
}

#[test]
fn a_state_that_never_ends_is_refused_before_it_is_stored() -> Result<()> {
    // A part takes a quarter of a mebibyte.
    check(300, limits(), 16, "more blocks", |i| endless_part(0, i))
}

#[test]
fn states_of_many_devices_that_never_end_are_refused_together() -> Result<()> {
    check(301, limits(), 16, "more blocks", |i| endless_part(i as i64, 0))
}

#[test]
fn the_memory_of_a_state_is_checked_at_every_batch() -> Result<()> {
    // Far fewer than a million events.
    check(302, limits(), 60, "more blocks", |i| allocations(1, i, 1_000))
}

#[test]
fn one_batch_cannot_take_more_than_the_bound() -> Result<()> {
    // It would take five times as much.
    let first = |i| if i == 0 { allocations(1, 0, 10) } else { allocations(1, i, 400_000) };
    check(303, limits(), 1, "needs more memory", first)
}

#[test]
fn of_sessions_that_need_too_much_together_a_large_one_is_refused() -> Result<()> {
    let limits = ServerLimits { states_bytes: 4 * MIB, ..small() };
    let server = Inside::with(Arc::new(SegmentStore::in_memory(1 << 30)), limits, Retention::default())?;
    let (small, large) = (Stream::new(307, 3, 50), Stream::new(308, 2, 50));
    let (mut peer, _) = Peer::hello(server.address, &small.hello)?;
    peer.batch(1, small.batch(1))?;
    peer.acked(1)?;
    let (accepted, sentence) = send(&server, &large, (0..1_000).map(|i| allocations(1, i, 1_000)))?;
    ensure!(sentence.contains("all sessions together") && (1..60).contains(&accepted), "{accepted}: {sentence}");
    // The other one was never disturbed.
    peer.batch(2, small.batch(2))?;
    peer.acked(2)
}

#[test]
fn a_batch_unpacks_to_no_more_than_its_bound() -> Result<()> {
    let limits = ServerLimits { batch_plain_bytes: 3 * MIB as u64, ..small() };
    check(304, limits, 3, "unpacks to more than 3.00 MiB", |i| zeros().repeat(i as usize + 1))
}

#[test]
fn a_session_that_is_too_large_to_be_read_back_does_not_stop_the_others() -> Result<()> {
    let store: Arc<SegmentStore> = Arc::new(SegmentStore::in_memory(1 << 30));
    let (large, other) = (Stream::new(305, 2, 50), Stream::new(306, 2, 50));
    {
        // A server that allows much more, as if it had been another version.
        let server = Inside::with(Arc::clone(&store), small(), Retention::default())?;
        let (mut peer, _) = Peer::hello(server.address, &large.hello)?;
        peer.batch(1, large.batch(1))?;
        for i in 0..40 {
            peer.batch(2 + i, &endless_part(0, i))?;
        }
        peer.acked(41)?;
        let (mut peer, _) = Peer::hello(server.address, &other.hello)?;
        peer.batch(1, other.batch(1))?;
        peer.acked(1)?;
    }
    let server = Inside::with(store, limits(), Retention::default())?;
    let (mut peer, next) = Peer::hello(server.address, &other.hello)?;
    peer.batch(next, other.batch(next))?;
    peer.acked(next)?;
    let mut peer = Peer::collector(server.address)?;
    peer.say(&Message::Hello(large.hello.clone()))?;
    assert_eq!(peer.refused()?, (Code::Full, false));
    Ok(())
}
