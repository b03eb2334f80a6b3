//! A session to send: plausible events, written like a recorder does, split into batches.

use format::{Chunk, ChunkReader, Device, End, EventColumns, Header, Writer, prelude};
use trace::event::Action;
use trace::frames::{Frame, StackId, Symbols};
use trace::limits::ImportLimits;
use trace::units::Address;
use trace::{Event, TagId, Tags};
use wire::{Hello, PROTOCOL, SESSION_CHARS, session_id};

/// The start of every session, in microseconds since the epoch.
pub const START_US: i64 = 1_700_000_000_000_000;

/// A session to send.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The first message.
    pub hello: Hello,
    /// The chunks of each batch; the first batch is number 1.
    pub batches: Vec<Vec<u8>>,
    /// The whole session as a file.
    pub file: Vec<u8>,
    /// The number of events.
    pub events: u64,
}

/// Pseudorandom numbers, the same in every run.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator.
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the next number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

/// Returns a session's id or key, a different one for each seed.
pub fn name(seed: u64) -> String {
    let mut random = Random::new(seed);
    session_id([0; SESSION_CHARS].map(|_| random.below(256) as u8))
}

impl Stream {
    /// Creates a session of so many batches with so many events each. `seed` distinguishes sessions.
    pub fn new(seed: u64, batches: usize, events: usize) -> Self {
        Self::named(seed, &format!("session {seed}"), batches, events)
    }

    /// Creates a session with a name.
    pub fn named(seed: u64, job: &str, batches: usize, events: usize) -> Self {
        let mut random = Random::new(seed);
        let mut made = Made::new(START_US);
        Self::of(seed, job, batches, |_, stack| {
            made.stack = stack;
            made.events(events, &mut random)
        })
    }

    /// Creates a session whose batches hold the events that `events` returns, given the number of a batch (from 0) and a
    /// stack of its own.
    pub fn of(seed: u64, job: &str, batches: usize, mut events: impl FnMut(usize, StackId) -> Vec<Event>) -> Self {
        let header = Header {
            program: "tests".to_owned(),
            name: job.to_owned(),
            host: "node-1".to_owned(),
            job: job.to_owned(),
            rank: Some(0),
            torch: "2.11".to_owned(),
            clock: "simulated".to_owned(),
            started_us: START_US,
            devices: vec![Device { number: 0, name: "Test GPU".to_owned(), capacity: 80 << 30 }],
            ..Header::default()
        };
        let mut file = Vec::new();
        let mut writer = Writer::new(&header, &mut file);
        writer.segments(0, 0, &[], &mut file);
        let (mut ends, mut count, mut time_us) = (Vec::new(), 0, START_US);
        let (mut symbols, tags) = (Symbols::default(), Tags::default());
        for batch in 0..batches {
            let (function, source) = (format!("layer_{batch}"), "/home/me/model.py");
            let (function, source) = (symbols.intern(function.as_bytes()), symbols.intern(source.as_bytes()));
            let frame = symbols.intern_frame(Frame { name: function, filename: source, line: 1 + batch as u32 });
            let stack = symbols.intern_stack(&[frame]);
            writer.symbols(&symbols, &tags, &mut file);
            let mut columns = EventColumns::default();
            for event in events(batch, stack) {
                time_us = event.time_us;
                columns.push(event);
            }
            writer.events(0, count, &columns, &mut file);
            count += columns.len() as u64;
            ends.push(file.len());
        }
        writer.end(&End { time_us, events: count, lost: 0 }, &mut file);
        if let Some(end) = ends.last_mut() {
            *end = file.len();
        }
        let mut from = prelude().len();
        let batches = ends
            .into_iter()
            .map(|to| {
                let batch = file[from..to].to_vec();
                from = to;
                batch
            })
            .collect();
        let hello = Hello {
            protocol: PROTOCOL,
            session: name(seed),
            key: name(seed + 1_000_000),
            token: String::new(),
            mode: "every event".to_owned(),
            header: first_payload(&file),
            first: 0,
        };
        Self { hello, batches, file, events: count }
    }

    /// Returns the session's id.
    pub fn session(&self) -> &str {
        &self.hello.session
    }

    /// Returns the number of the last batch.
    pub fn last(&self) -> u64 {
        self.batches.len() as u64
    }

    /// Returns the chunks of a batch.
    pub fn batch(&self, seq: u64) -> &[u8] {
        &self.batches[seq as usize - 1]
    }
}

/// Returns the payload of a file's first chunk.
pub fn first_payload(file: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut chunks = ChunkReader::at_start(&ImportLimits::default());
    let visit = &mut |chunk: Chunk<'_>| {
        if payload.is_empty() {
            payload = chunk.payload.to_vec();
        }
    };
    chunks.push(file, visit).expect("a recording");
    payload
}

/// Generates the events of a busy allocator: blocks are allocated and freed, and their addresses reused.
#[derive(Debug)]
struct Made {
    live: Vec<(u64, u64)>,
    time_us: i64,
    stack: StackId,
    begun: bool,
}

/// The address and the size of the only segment.
const SEGMENT: (u64, u64) = (0x7f00_0000_0000, 64 << 30);

impl Made {
    fn new(time_us: i64) -> Self {
        Self { live: Vec::new(), time_us, stack: StackId(0), begun: false }
    }

    fn events(&mut self, count: usize, random: &mut Random) -> Vec<Event> {
        let mut events = Vec::new();
        let stack = self.stack;
        let push = |events: &mut Vec<Event>, action, address, size, time_us| {
            events.push(Event { action, address: Address(address), size, time_us, tag: TagId(0), stack });
        };
        while events.len() < count {
            self.time_us += random.below(30) as i64;
            if !self.begun {
                self.begun = true;
                push(&mut events, Action::SegmentAlloc, SEGMENT.0, SEGMENT.1, self.time_us);
            } else if self.live.len() < 500 || random.below(2) == 0 {
                let size = 512 << random.below(12);
                // Slots of 2 MiB, so that blocks never overlap.
                let address = SEGMENT.0 + (random.below(SEGMENT.1 >> 21) << 21);
                if !self.live.iter().any(|(taken, _)| *taken == address) {
                    self.live.push((address, size));
                    push(&mut events, Action::Alloc, address, size, self.time_us);
                }
            } else if events.len() + 2 <= count {
                let (address, size) = self.live.swap_remove(random.below(self.live.len() as u64) as usize);
                push(&mut events, Action::FreeRequested, address, size, self.time_us);
                push(&mut events, Action::FreeCompleted, address, size, self.time_us);
            }
        }
        events
    }
}
