//! Traces for unit tests, written as text: one event a line.
//!
//! ```text
//! segment_alloc 0x1000000 2097152 stream=7 pool=1
//! alloc 0x1000000 1000 forward@/home/me/model.py:54 main@/home/me/train.py:9
//! free 0x1000000
//! ```
//! Numbers are bytes; frames are given innermost first, and `lost` is a stack whose names were lost. `free` is both
//! `free_requested` and `free_completed`, and a `segment_map` is an expandable segment of its own. Blocks that are not
//! freed are in the segments at the end, and each event comes 10 µs after the one before.
#![allow(clippy::expect_used, clippy::panic, reason = "a test that is written wrongly fails")]

use std::collections::BTreeMap;

use crate::event::Action;
use crate::frames::{Frame, FrameId, StackId, Symbols};
use crate::units::{Address, PoolId, Stream};
use crate::{Block, BlockState, DeviceTrace, Event, Segment, Snapshot, Tag};

/// The time of the first event, in microseconds since the epoch.
pub const START_US: i64 = 1_700_000_000_000_000;

/// The live blocks and segments while the lines are read.
#[derive(Default)]
struct Builder {
    snapshot: Snapshot,
    trace: DeviceTrace,
    blocks: BTreeMap<u64, Block>,
}

/// A snapshot of one device with these events.
pub fn snapshot(lines: &str) -> Snapshot {
    let mut builder = Builder::default();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        builder.read(line);
    }
    builder.finish()
}

/// A stack of frames that are written as `function@file:line`, innermost first.
pub fn stack(symbols: &mut Symbols, frames: &[&str]) -> StackId {
    let ids: Vec<FrameId> = frames
        .iter()
        .map(|text| {
            let (name, place) = text.split_once('@').unwrap_or((text, ""));
            let (file, line) = place.rsplit_once(':').unwrap_or((place, "0"));
            let (name, filename) = (symbols.intern(name.as_bytes()), symbols.intern(file.as_bytes()));
            symbols.intern_frame(Frame { name, filename, line: line.parse().expect("a line number") })
        })
        .collect();
    symbols.intern_stack(&ids)
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).expect("a hexadecimal number"),
        None => text.parse().expect("a number"),
    }
}

impl Builder {
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [action, address, rest @ ..] = words.as_slice() else { panic!("an event has an action and an address") };
        let address = number(address);
        let mut tag = Tag::default();
        let (mut size, mut frames, mut is_lost) = (0, Vec::new(), false);
        for word in rest {
            match word.split_once('=') {
                Some(("stream", n)) => tag.stream = Stream(n.parse().expect("a stream")),
                Some(("pool", n)) => tag.pool = Some(PoolId(0, number(n))),
                _ if *word == "lost" => is_lost = true,
                _ if word.contains('@') => frames.push(*word),
                _ => size = number(word),
            }
        }
        let symbols = &mut self.snapshot.symbols;
        let stack = if is_lost { symbols.lose_stack() } else { stack(symbols, &frames) };
        match *action {
            "free" => {
                self.event(Action::FreeRequested, address, size, tag, stack);
                self.event(Action::FreeCompleted, address, size, tag, stack);
            }
            known => match Action::from_name(known) {
                Some(action) => self.event(action, address, size, tag, stack),
                None => {
                    tag.other_action = self.snapshot.symbols.intern(known.as_bytes());
                    self.event(Action::Other, address, size, tag, stack);
                }
            },
        }
    }

    fn event(&mut self, action: Action, address: u64, mut size: u64, tag: Tag, stack: StackId) {
        match action {
            Action::Alloc => {
                let block = Block {
                    address: Address(address),
                    size: size.next_multiple_of(512),
                    requested: size,
                    state: BlockState::Allocated,
                    stack,
                };
                self.blocks.insert(address, block);
            }
            Action::FreeRequested => {
                let block = self.blocks.get_mut(&address).expect("a live block");
                (block.state, size) = (BlockState::Pending, block.requested);
            }
            Action::FreeCompleted => size = self.blocks.remove(&address).expect("a live block").requested,
            Action::SegmentAlloc | Action::SegmentMap => self.trace.segments.push(Segment {
                address: Address(address),
                size,
                stream: tag.stream,
                is_small: size == 2 << 20,
                is_expandable: action == Action::SegmentMap,
                pool: tag.pool.unwrap_or_default(),
                stack,
                blocks: Vec::new(),
            }),
            Action::SegmentFree => {
                let at = self.trace.segments.iter().position(|s| s.address.0 == address).expect("a segment");
                size = self.trace.segments.remove(at).size;
            }
            _ => {}
        }
        let time_us = START_US + 10 * self.trace.events.len() as i64;
        let tag = self.snapshot.tags.intern(tag);
        self.trace.events.push(Event { action, address: Address(address), size, time_us, tag, stack });
    }

    /// Fills the segments with what is live, and with inactive blocks between.
    fn finish(mut self) -> Snapshot {
        self.trace.segments.sort_by_key(|segment| segment.address);
        for segment in &mut self.trace.segments {
            let end = segment.address.0 + segment.size;
            let mut at = segment.address.0;
            let inactive = |from: u64, to: u64| Block {
                address: Address(from),
                size: to - from,
                requested: 0,
                state: BlockState::Inactive,
                stack: StackId(0),
            };
            for block in self.blocks.range(at..end).map(|(_, block)| *block) {
                if block.address.0 > at {
                    segment.blocks.push(inactive(at, block.address.0));
                }
                segment.blocks.push(block);
                at = block.address.0 + block.size;
            }
            if at < end {
                segment.blocks.push(inactive(at, end));
            }
        }
        self.snapshot.devices.push(self.trace);
        self.snapshot
    }
}
