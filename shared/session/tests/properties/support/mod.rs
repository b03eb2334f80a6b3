//! A simple caching allocator that records its events: the model against which replay and level of detail are tested.
//! It follows PyTorch's rules for rounding, splitting and merging in the most direct way, and keeps the whole state
//! after every event.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test binary uses its own part")]

use proptest::prelude::*;
use trace::event::Action;
use trace::frames::{StackId, Symbols};
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, DeviceTrace, Event, Events, Segment, Settings, Tag, TagId, Tags};

/// A step of a random program.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Allocates so many bytes on a stream.
    Alloc { size: u64, stream: i64 },
    /// Frees a live allocation.
    Free(usize),
    /// Frees an allocation that another stream still uses.
    FreeLater(usize),
    /// Completes the oldest pending free.
    Complete,
    /// Releases all cached segments.
    EmptyCache,
    /// A request that fails.
    Oom(u64),
}

/// Random programs with sizes of all kinds.
pub fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let size = prop_oneof![
        4 => 1_u64..4_000,
        3 => (1_u64..3_000).prop_map(|k| k * 1_024),
        3 => (1_u64..64).prop_map(|m| (m << 20) - 300),
        1 => (1_u64..300).prop_map(|k| (9 << 20) + k * 7_000),
    ];
    let op = prop_oneof![
        10 => (size.clone(), 0_i64..2).prop_map(|(size, stream)| Op::Alloc { size, stream: stream * 7 }),
        8 => any::<usize>().prop_map(Op::Free),
        2 => any::<usize>().prop_map(Op::FreeLater),
        2 => Just(Op::Complete),
        1 => Just(Op::EmptyCache),
        1 => size.prop_map(Op::Oom),
    ];
    proptest::collection::vec(op, 0..most)
}

/// A block of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    pub address: u64,
    pub size: u64,
    pub requested: u64,
    pub is_allocated: bool,
}

/// A segment of the model with all its blocks; free blocks are inactive and have no requested size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub address: u64,
    pub size: u64,
    pub stream: i64,
    pub is_small: bool,
    /// Address and size of each block, and the allocation in active ones.
    pub blocks: Vec<(u64, u64, Option<Piece>)>,
}

/// The whole state after an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub segments: Vec<Held>,
}

impl Moment {
    /// Returns the active blocks by address.
    pub fn active(&self) -> Vec<Piece> {
        self.segments.iter().flat_map(|s| s.blocks.iter().filter_map(|b| b.2)).collect()
    }

    /// Returns address and size of the free blocks, by address.
    pub fn gaps(&self) -> Vec<(u64, u64)> {
        let free = |s: &Held| s.blocks.iter().filter(|b| b.2.is_none()).map(|b| (b.0, b.1)).collect::<Vec<_>>();
        self.segments.iter().flat_map(free).collect()
    }

    /// Returns the bytes requested by active blocks.
    pub fn requested(&self) -> u64 {
        self.active().iter().map(|p| p.requested).sum()
    }

    /// Returns the bytes of all segments.
    pub fn reserved(&self) -> u64 {
        self.segments.iter().map(|s| s.size).sum()
    }
}

/// A program's run: a trace, and the truth at each of its positions.
#[derive(Debug)]
pub struct Run {
    pub trace: DeviceTrace,
    pub tags: Tags,
    pub symbols: Symbols,
    pub settings: Settings,
    /// The state at each position.
    pub moments: Vec<Moment>,
}

#[derive(Default)]
struct Model {
    now: Moment,
    events: Vec<(Action, u64, u64, i64)>,
    moments: Vec<Moment>,
    next_segment: u64,
    waiting: Vec<u64>,
}

impl Model {
    fn record(&mut self, action: Action, address: u64, size: u64, stream: i64) {
        self.events.push((action, address, size, stream));
        self.moments.push(self.now.clone());
    }

    fn alloc(&mut self, size: u64, stream: i64) {
        let rounded = size.next_multiple_of(512);
        let is_small = rounded <= 1 << 20;
        let mut best: Option<(u64, u64)> = None;
        for s in self.now.segments.iter().filter(|s| s.is_small == is_small && s.stream == stream) {
            for b in s.blocks.iter().filter(|b| b.2.is_none() && b.1 >= rounded) {
                if best.is_none_or(|best| (b.1, b.0) < best) {
                    best = Some((b.1, b.0));
                }
            }
        }
        let address = match best {
            Some((_, address)) => address,
            None => {
                let bytes = if is_small {
                    2 << 20
                } else if rounded < 10 << 20 {
                    20 << 20
                } else {
                    rounded.next_multiple_of(2 << 20)
                };
                let address = 0x7f00_0000_0000 + self.next_segment;
                self.next_segment += bytes.next_multiple_of(2 << 20);
                self.now.segments.push(Held {
                    address,
                    size: bytes,
                    stream,
                    is_small,
                    blocks: vec![(address, bytes, None)],
                });
                self.record(Action::SegmentAlloc, address, bytes, stream);
                address
            }
        };
        let segment = self.now.segments.iter_mut().find(|s| s.blocks.iter().any(|b| b.0 == address)).unwrap();
        let i = segment.blocks.iter().position(|b| b.0 == address).unwrap();
        let whole = segment.blocks[i].1;
        let rest = whole - rounded;
        let splits = if is_small { rest >= 512 } else { rest > 1 << 20 };
        let size_of = if splits { rounded } else { whole };
        segment.blocks[i] =
            (address, size_of, Some(Piece { address, size: size_of, requested: size, is_allocated: true }));
        if splits {
            segment.blocks.insert(i + 1, (address + rounded, rest, None));
        }
        self.record(Action::Alloc, address, size, stream);
    }

    fn piece(&mut self, address: u64) -> (&mut Option<Piece>, i64) {
        let segment = self.now.segments.iter_mut().find(|s| s.blocks.iter().any(|b| b.0 == address)).unwrap();
        let stream = segment.stream;
        (&mut segment.blocks.iter_mut().find(|b| b.0 == address).unwrap().2, stream)
    }

    fn request_free(&mut self, address: u64) {
        let (piece, stream) = self.piece(address);
        let piece = piece.as_mut().unwrap();
        piece.is_allocated = false;
        let requested = piece.requested;
        self.record(Action::FreeRequested, address, requested, stream);
    }

    fn complete(&mut self, address: u64) {
        let (piece, stream) = self.piece(address);
        let requested = piece.take().unwrap().requested;
        let segment = self.now.segments.iter_mut().find(|s| s.blocks.iter().any(|b| b.0 == address)).unwrap();
        let mut merged: Vec<(u64, u64, Option<Piece>)> = Vec::new();
        for &b in &segment.blocks {
            match merged.last_mut() {
                Some(last) if last.2.is_none() && b.2.is_none() => last.1 += b.1,
                _ => merged.push(b),
            }
        }
        segment.blocks = merged;
        self.record(Action::FreeCompleted, address, requested, stream);
    }

    fn step(&mut self, op: Op) {
        let live = |m: &Self| m.now.active().into_iter().filter(|p| p.is_allocated).collect::<Vec<_>>();
        match op {
            Op::Alloc { size, stream } => self.alloc(size, stream),
            Op::Free(i) | Op::FreeLater(i) => {
                let live = live(self);
                if let Some(p) = live.get(i % live.len().max(1)) {
                    self.request_free(p.address);
                    if matches!(op, Op::Free(_)) { self.complete(p.address) } else { self.waiting.push(p.address) }
                }
            }
            Op::Complete if !self.waiting.is_empty() => {
                let address = self.waiting.remove(0);
                self.complete(address);
            }
            Op::Complete => {}
            Op::EmptyCache => {
                while let Some(i) = self.now.segments.iter().position(|s| s.blocks.iter().all(|b| b.2.is_none())) {
                    let s = self.now.segments.remove(i);
                    self.record(Action::SegmentFree, s.address, s.size, s.stream);
                }
            }
            Op::Oom(size) => self.record(Action::Oom, 12 << 20, size.next_multiple_of(512), 0),
        }
    }
}

/// Runs a program and keeps its trace without the first `lost` events, as a ring that overflowed does.
pub fn run(ops: &[Op], lost: usize) -> Run {
    let mut model = Model::default();
    for &op in ops {
        model.step(op);
    }
    let lost = lost.min(model.events.len());
    let mut moments = vec![lost.checked_sub(1).map_or_else(Moment::default, |i| model.moments[i].clone())];
    moments.extend_from_slice(&model.moments[lost..]);

    let (mut tags, mut symbols) = (Tags::default(), Symbols::default());
    let stacks: Vec<StackId> = (0..5)
        .map(|line| {
            let name = symbols.intern(format!("layer{line}").as_bytes());
            let filename = symbols.intern(b"/home/user/model.py");
            let frame = symbols.intern_frame(trace::frames::Frame { name, filename, line: line + 1 });
            symbols.intern_stack(&[frame])
        })
        .collect();
    let mut events = Events::default();
    for (i, &(action, address, size, stream)) in model.events.iter().enumerate().skip(lost) {
        let tag: TagId = tags.intern(Tag { stream: Stream(stream), ..Tag::default() });
        let stack = stacks[(size as usize / 512) % stacks.len()];
        // Several events share a microsecond, as they do in real traces.
        let time_us = 1_700_000_000_000_000 + (i as i64 / 3) * 5;
        events.push(Event { action, address: Address(address), size, time_us, tag, stack });
    }
    let mut segments: Vec<Segment> = model
        .now
        .segments
        .iter()
        .map(|s| Segment {
            address: Address(s.address),
            size: s.size,
            stream: Stream(s.stream),
            is_small: s.is_small,
            is_expandable: false,
            pool: PoolId::default(),
            stack: StackId(0),
            blocks: s.blocks.iter().map(block).collect(),
        })
        .collect();
    segments.sort_by_key(|s| s.address);
    let trace = DeviceTrace { device: 0, events, segments, ..DeviceTrace::default() };
    Run { trace, tags, symbols, settings: Settings::default(), moments: sorted(moments) }
}

fn block(&(address, size, piece): &(u64, u64, Option<Piece>)) -> Block {
    let state = match piece {
        None => BlockState::Inactive,
        Some(p) if p.is_allocated => BlockState::Allocated,
        Some(_) => BlockState::Pending,
    };
    let requested = piece.map_or(0, |p| p.requested);
    Block { address: Address(address), size, requested, state, stack: StackId(0) }
}

fn sorted(mut moments: Vec<Moment>) -> Vec<Moment> {
    for m in &mut moments {
        m.segments.sort_by_key(|s| s.address);
    }
    moments
}
