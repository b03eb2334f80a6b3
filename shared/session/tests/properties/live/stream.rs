//! Random programs on the simulated allocator, recorded like a live stream: chunk by chunk.

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Request, TORCH_2_11, TraceEntry};
use format::{Device, End, EventColumns, Header, LostEvents, Writer};
use proptest::prelude::*;
use trace::event::Action;
use trace::frames::{Frame, StackId, Symbols};
use trace::units::{Address, Stream};
use trace::{Annotation, BlockState, Event, Sample, Segment, Settings, Stage, Tag, Tags};

/// One operation of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Malloc {
        size: u64,
        stream: i64,
        site: u32,
    },
    Free {
        pick: usize,
    },
    FreeLater {
        pick: usize,
    },
    Synchronize,
    EmptyCache,
    Mark,
    /// Writes the events so far, with a loss before them or a state behind them.
    Flush {
        lose: u8,
        state: bool,
    },
}

pub(crate) fn ops(most: usize, losses: bool) -> impl Strategy<Value = Vec<Op>> {
    let size = prop_oneof![
        4 => 1_u64..4_000,
        3 => (1_u64..3_000).prop_map(|k| k * 1_024),
        2 => (1_u64..40).prop_map(|m| (m << 20) - 300),
        1 => Just(3 << 30),
    ];
    let lose = if losses { 0_u8..6 } else { 0_u8..1 };
    let op = prop_oneof![
        12 => (size, 0_i64..2, 0_u32..180).prop_map(|(size, stream, site)| Op::Malloc { size, stream, site }),
        8 => any::<usize>().prop_map(|pick| Op::Free { pick }),
        2 => any::<usize>().prop_map(|pick| Op::FreeLater { pick }),
        1 => Just(Op::Synchronize),
        1 => Just(Op::EmptyCache),
        1 => Just(Op::Mark),
        3 => (lose, prop::bool::weighted(0.2)).prop_map(|(lose, state)| Op::Flush { lose, state }),
    ];
    proptest::collection::vec(op, 0..most)
}

/// One device of a program.
struct Side {
    allocator: DeviceAllocator<SimDriver, Vec<TraceEntry>>,
    live: Vec<Address>,
    next: u64,
    columns: EventColumns,
    waiting: Vec<Event>,
}

/// A recording, and the truth about it.
pub(crate) struct Recorded {
    pub(crate) bytes: Vec<u8>,
    /// The offset of each chunk.
    pub(crate) chunks: Vec<usize>,
    /// The number of lost events.
    pub(crate) lost: u64,
    /// The number of recorded events of each device.
    pub(crate) events: Vec<u64>,
    /// The segments of each device at the end.
    pub(crate) segments: Vec<Vec<Segment>>,
}

pub(crate) struct Recorder {
    sides: Vec<Side>,
    symbols: Symbols,
    tags: Tags,
    writer: Writer,
    now_us: i64,
    found: Recorded,
}

impl Recorder {
    pub(crate) fn new(devices: usize, conf: &str) -> Self {
        let config = AllocatorConfig::from_conf(conf, &TORCH_2_11).unwrap();
        let settings = Settings {
            conf: conf.to_owned(),
            max_split_size: (config.max_split_size != u64::MAX).then_some(config.max_split_size),
            expandable_segments: config.expandable_segments,
            roundup_power2_divisions: config.roundup_power2_divisions,
            ..Settings::default()
        };
        let numbers = 0..devices as i64;
        let header = Header {
            program: "test".to_owned(),
            devices: numbers.map(|number| Device { number, name: "GPU".to_owned(), capacity: 2 << 30 }).collect(),
            settings,
            ..Header::default()
        };
        let mut bytes = Vec::new();
        let writer = Writer::new(&header, &mut bytes);
        let side = |_| Side {
            allocator: DeviceAllocator::new(
                SimDriver::new(2 << 30, Placement::FirstFit),
                Vec::new(),
                &TORCH_2_11,
                config.clone(),
            ),
            live: Vec::new(),
            next: 0,
            columns: EventColumns::default(),
            waiting: Vec::new(),
        };
        let found = Recorded { bytes, chunks: vec![12], lost: 0, events: vec![0; devices], segments: Vec::new() };
        let sides = (0..devices).map(side).collect();
        Self { sides, symbols: Symbols::default(), tags: Tags::default(), writer, now_us: 1_700_000_000_000_000, found }
    }

    /// Drops the events so far: recording begins with the state.
    pub(crate) fn begin_late(&mut self) {
        for device in 0..self.sides.len() {
            self.forget(device);
            self.state(device);
        }
    }

    /// Drops the events that were not written yet, without recording a loss.
    pub(crate) fn forget(&mut self, device: usize) {
        self.gather(device);
        self.sides[device].waiting.clear();
    }

    fn chunk(&mut self, write: impl FnOnce(&mut Writer, &Symbols, &Tags, &mut Vec<u8>)) {
        let before = self.found.bytes.len();
        write(&mut self.writer, &self.symbols, &self.tags, &mut self.found.bytes);
        if self.found.bytes.len() > before {
            self.found.chunks.push(before);
        }
    }

    /// Converts the allocator's trace entries to events of the recording.
    fn gather(&mut self, device: usize) {
        for entry in std::mem::take(self.sides[device].allocator.sink_mut()) {
            let tag = self.tags.intern(Tag { stream: entry.stream, pool: Some(entry.pool), ..Tag::default() });
            self.now_us += 7;
            let event = Event {
                action: entry.action,
                address: Address(entry.address),
                size: entry.size,
                time_us: self.now_us,
                tag,
                stack: entry.stack,
            };
            self.sides[device].waiting.push(event);
        }
    }

    pub(crate) fn flush(&mut self, device: usize, lose: usize) {
        self.gather(device);
        self.chunk(Writer::symbols);
        let mut waiting = std::mem::take(&mut self.sides[device].waiting);
        let first = self.sides[device].next;
        let kept = waiting.len() - lose.min(waiting.len());
        let lost = waiting.split_off(kept);
        for event in waiting {
            self.sides[device].columns.push(event);
        }
        let mut columns = std::mem::take(&mut self.sides[device].columns);
        let count = columns.len() as u64;
        self.chunk(|writer, _, _, out| writer.events(device as i64, first, &columns, out));
        columns.clear();
        self.sides[device].columns = columns;
        self.sides[device].next += count;
        self.found.events[device] += count;
        if !lost.is_empty() {
            let from = self.sides[device].next;
            let to = from + lost.len() as u64;
            let mut by_action = [0; Action::ALL.len()];
            lost.iter().for_each(|event| by_action[event.action as usize] += 1);
            self.found.lost += lost.len() as u64;
            self.chunk(|writer, _, _, out| {
                writer.lost_events(&LostEvents { device: device as i64, from, to, by_action }, out);
            });
            self.sides[device].next = to;
        }
    }

    pub(crate) fn state(&mut self, device: usize) {
        self.chunk(Writer::symbols);
        let segments = self.sides[device].allocator.segments();
        let at = self.sides[device].next;
        self.chunk(|writer, _, _, out| writer.segments(device as i64, at, &segments, out));
    }

    pub(crate) fn sample(&mut self) {
        self.now_us += 7;
        let segments = self.sides[0].allocator.segments();
        let reserved = segments.iter().map(|segment| segment.size).sum();
        let blocks = || segments.iter().flat_map(|segment| &segment.blocks);
        let sum = |is: &dyn Fn(BlockState) -> bool| blocks().filter(|b| is(b.state)).map(|block| block.size).sum();
        let allocated = sum(&|state| state == BlockState::Allocated);
        let active = sum(&|state| state != BlockState::Inactive);
        let sample = Sample { time_us: self.now_us, allocated, active, reserved };
        self.chunk(|writer, _, _, out| writer.statistics(0, &[sample], out));
    }

    fn site(&mut self, site: u32) -> StackId {
        let name = self.symbols.intern(format!("layer{}", site / 2).as_bytes());
        let filename = self.symbols.intern(b"/home/user/model.py");
        let outer = self.symbols.intern(b"main");
        let frame = self.symbols.intern_frame(Frame { name, filename, line: site / 2 + 1 });
        let main = self.symbols.intern_frame(Frame { name: outer, filename, line: 1000 + site % 2 });
        self.symbols.intern_stack(&[frame, main])
    }

    pub(crate) fn step(&mut self, number: usize, op: Op) {
        let device = number % self.sides.len();
        match op {
            Op::Malloc { size, stream, site } => {
                let stack = self.site(site);
                let side = &mut self.sides[device];
                let request = Request { size, stream: Stream(stream), stack, ..Request::default() };
                side.live.extend(side.allocator.malloc(request).ok());
            }
            Op::Free { pick } | Op::FreeLater { pick } => {
                let side = &mut self.sides[device];
                if side.live.is_empty() {
                    return;
                }
                let address = side.live.swap_remove(pick % side.live.len());
                if matches!(op, Op::FreeLater { .. }) {
                    side.allocator.driver_mut().hold(Stream(5));
                    side.allocator.record_stream(address, Stream(5)).unwrap();
                }
                side.allocator.free(address, StackId(0)).unwrap();
            }
            Op::Synchronize => self.sides[device].allocator.driver_mut().synchronize(),
            Op::EmptyCache => self.sides[device].allocator.empty_cache(StackId(0)).unwrap(),
            Op::Mark => {
                let name = self.symbols.intern(b"step");
                let stage = [Stage::Start, Stage::End, Stage::Instant][number % 3];
                let mark = Annotation { name, stage, time_us: self.now_us };
                self.chunk(Writer::symbols);
                self.chunk(|writer, _, _, out| writer.marks(device as i64, &[mark], out));
            }
            Op::Flush { lose, state } => {
                // Most batches lose nothing.
                self.flush(device, lose.saturating_sub(3).into());
                if state {
                    self.state(device);
                }
            }
        }
    }

    /// Writes the remaining events, and the state and the end if the program ends regularly.
    pub(crate) fn finish(mut self, has_end: bool) -> Recorded {
        for device in 0..self.sides.len() {
            self.flush(device, 0);
            if has_end {
                self.state(device);
            }
        }
        if has_end {
            let end = End { time_us: self.now_us, events: self.found.events.iter().sum(), lost: self.found.lost };
            self.chunk(|writer, _, _, out| writer.end(&end, out));
        }
        let truth = |side: &Side| comparable(side.allocator.segments());
        self.found.segments = self.sides.iter().map(truth).collect();
        self.found
    }
}

/// Settings under which the sizes of blocks are derived differently.
pub(crate) const CONFS: [&str; 4] =
    ["", "expandable_segments:True", "max_split_size_mb:21", "roundup_power2_divisions:4"];

/// Records a whole program.
pub(crate) fn record(ops: &[Op], devices: usize, conf: &str, late: usize, has_end: bool) -> Recorded {
    let mut recorder = Recorder::new(devices, conf);
    for (number, &op) in ops.iter().enumerate() {
        let is_before = number < late.min(ops.len());
        if is_before && matches!(op, Op::Flush { .. } | Op::Mark) {
            continue;
        }
        if number == late {
            recorder.begin_late();
        }
        recorder.step(number, op);
    }
    if late == 0 && ops.is_empty() || late >= ops.len() {
        recorder.begin_late();
    }
    recorder.finish(has_end)
}

/// Records a history that is read at intervals: the state at the start, then reads. The first operations before each
/// read are overwritten, the others are seen, and a state follows. Also returns the state after each read with events,
/// and its position.
pub(crate) fn record_reads(
    reads: &[(Vec<Op>, Vec<Op>)],
    conf: &str,
    has_end: bool,
) -> (Recorded, Vec<(u32, Vec<Segment>)>) {
    let mut recorder = Recorder::new(1, conf);
    let mut truths = Vec::new();
    recorder.begin_late();
    for (unseen, seen) in reads {
        let before = recorder.found.events[0];
        let mut number = 0;
        for (ops, lose) in [(unseen, usize::MAX), (seen, 0)] {
            for &op in ops.iter().filter(|op| !matches!(op, Op::Flush { .. } | Op::Mark)) {
                recorder.step(number, op);
                number += 1;
            }
            recorder.flush(0, lose);
        }
        recorder.sample();
        recorder.state(0);
        if recorder.found.events[0] > before {
            truths.push((recorder.found.events[0] as u32, comparable(recorder.sides[0].allocator.segments())));
        }
    }
    (recorder.finish(has_end), truths)
}

/// Removes what free blocks keep of their last use, and the stacks of expandable segments, of which the allocator keeps
/// any or none if there were several.
pub(crate) fn comparable(mut segments: Vec<Segment>) -> Vec<Segment> {
    for segment in &mut segments {
        if segment.is_expandable {
            segment.stack = StackId(0);
        }
        for block in segment.blocks.iter_mut().filter(|block| block.state == BlockState::Inactive) {
            (block.requested, block.stack) = (0, StackId(0));
        }
    }
    segments
}
