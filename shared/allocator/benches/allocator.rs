//! The cost of a request and a free: `cargo bench -p allocator --bench allocator [-- SCRIPT.json]`.
//!
//! Without a script, measures requests of random sizes where mostly the youngest block is freed, as in training. Then
//! measures how the cost grows with the number of live blocks, and the memory of a block.
//!
//! `-- live N PAIRS` runs only that many pairs with N blocks live, for external counters: the cost of PAIRS more pairs
//! is the difference of two runs.

use std::hint::black_box;
use std::time::Instant;

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Request, TORCH_2_11, TraceEntry, TraceSink};
use trace::frames::StackId;
use trace::units::{Address, Stream};

/// Number of runs, of which the best counts.
const RUNS: usize = 7;

#[derive(Clone, Copy)]
enum Op {
    Malloc { id: usize, size: u64, stream: i64 },
    Free { id: usize },
}

struct Script {
    name: String,
    conf: String,
    capacity: u64,
    ops: Vec<Op>,
}

/// A ring of entries that is never read: shows the cost of recording to the allocator itself.
struct Ring(Vec<TraceEntry>, usize);

impl TraceSink for Ring {
    #[inline]
    fn record(&mut self, entry: TraceEntry) {
        let at = self.1 & (self.0.len() - 1);
        self.0[at] = entry;
        self.1 += 1;
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = words.iter().position(|word| word == "live") {
        let number = |offset: usize| words.get(at + offset).and_then(|word| word.parse().ok()).expect("live N PAIRS");
        black_box(Churn::new(number(1)).lap(number(2)));
        return;
    }
    let file = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let is_given = file.is_some();
    let script = file.map_or_else(|| training(100_000, 600), |path| read(&path));
    let ops = script.ops.len();
    let off = best(|| run(&script, ()));
    let blank = TraceEntry {
        action: trace::event::Action::Other,
        address: 0,
        size: 0,
        stream: Stream(0),
        pool: Default::default(),
        stack: StackId(0),
    };
    let on = best(|| run(&script, Ring(vec![blank; 1 << 16], 0)));
    println!("{}: {ops} operations", script.name);
    for (mode, seconds) in [("recording off", off), ("into a ring", on)] {
        let rate = ops as f64 / seconds / 1e6;
        println!(
            "  {mode:14} {:6.1} ns/op {:6.1} ns/pair {rate:6.2} M ops/s",
            1e9 * seconds / ops as f64,
            2e9 * seconds / ops as f64
        );
    }
    if is_given {
        return;
    }
    println!("live blocks: ns per pair of free and malloc; bytes of bookkeeping per live block");
    for live in [100, 1_000, 10_000, 100_000, 1_000_000] {
        let (ns, bytes) = churn(live);
        println!("  {live:9} {ns:7.1} ns {bytes:5} B");
    }
}

fn best(mut run: impl FnMut() -> f64) -> f64 {
    (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Returns the seconds for all operations.
fn run<S: TraceSink>(script: &Script, sink: S) -> f64 {
    let config = AllocatorConfig::from_conf(&script.conf, &TORCH_2_11).expect("settings that are settings");
    let driver = SimDriver::new(script.capacity, Placement::FirstFit);
    let mut allocator = DeviceAllocator::new(driver, sink, &TORCH_2_11, config);
    let last = script.ops.iter().map(|op| match op {
        Op::Malloc { id, .. } | Op::Free { id } => *id,
    });
    let mut addresses = vec![Address(0); last.max().unwrap_or(0) + 1];
    let start = Instant::now();
    for op in &script.ops {
        match *op {
            Op::Malloc { id, size, stream } => {
                let request = Request { size, stream: Stream(stream), ..Request::default() };
                addresses[id] = allocator.malloc(request).unwrap_or(Address(0));
            }
            Op::Free { id } => {
                let _ = allocator.free(std::mem::take(&mut addresses[id]), StackId(0));
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    black_box(&allocator);
    seconds
}

/// Frees and allocates with `live` blocks held; returns nanoseconds for each pair, and bytes for each block.
fn churn(live: usize) -> (f64, usize) {
    let pairs = 1_000_000;
    let mut churn = Churn::new(live);
    churn.lap(pairs);
    let seconds = best(|| churn.lap(pairs));
    (1e9 * seconds / pairs as f64, churn.allocator.overhead() / live)
}

/// An allocator with blocks of 0.5 to 64 KiB live.
struct Churn {
    random: Random,
    allocator: DeviceAllocator<SimDriver, ()>,
    held: Vec<Address>,
}

impl Churn {
    fn new(live: usize) -> Self {
        let driver = SimDriver::new(1 << 40, Placement::FirstFit);
        let allocator = DeviceAllocator::new(driver, (), &TORCH_2_11, AllocatorConfig::default());
        let mut churn = Self { random: Random(7), allocator, held: Vec::with_capacity(live) };
        for _ in 0..live {
            let block = churn.ask();
            churn.held.push(block);
        }
        churn
    }

    fn ask(&mut self) -> Address {
        let request = Request { size: 512 + self.random.below(64 << 10), ..Request::default() };
        self.allocator.malloc(request).expect("room enough")
    }

    /// Returns the seconds for a number of pairs of a free and a malloc.
    fn lap(&mut self, pairs: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..pairs {
            let at = self.random.below(self.held.len() as u64) as usize;
            let _ = self.allocator.free(self.held[at], StackId(0));
            self.held[at] = self.ask();
        }
        start.elapsed().as_secs_f64()
    }
}

/// xorshift, for the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Returns requests of many sizes with `target` of them held; mostly the youngest is freed.
fn training(length: usize, target: usize) -> Script {
    let mut random = Random(21);
    let (mut ops, mut live, mut next) = (Vec::new(), Vec::new(), 0);
    while ops.len() < length {
        if live.len() > target / 2 && random.below(2 * target as u64) < live.len() as u64 {
            let back = (random.below(40) as usize).min(live.len() - 1);
            ops.push(Op::Free { id: live.remove(live.len() - 1 - back) });
        } else {
            let magnitude = 8 + random.below(18);
            let size = (1 << magnitude) + random.below(1 << magnitude);
            ops.push(Op::Malloc { id: next, size, stream: 0 });
            live.push(next);
            next += 1;
        }
    }
    Script { name: "random, mostly the youngest freed".to_owned(), conf: String::new(), capacity: 80 << 30, ops }
}

/// Reads the mallocs and frees of an operation script.
fn read(path: &str) -> Script {
    let text = std::fs::read_to_string(path).expect("a script, unpacked");
    let script: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let ops = script["ops"].as_array().expect("a list of operations").iter();
    let ops = ops.filter_map(|op| match op[0].as_str() {
        Some("malloc") => {
            Some(Op::Malloc { id: number(&op[1]) as usize, size: number(&op[2]), stream: number(&op[3]) as i64 })
        }
        Some("free") => Some(Op::Free { id: number(&op[1]) as usize }),
        _ => None,
    });
    Script {
        name: path.to_owned(),
        conf: script["config"].as_str().unwrap_or("").to_owned(),
        capacity: script["capacity_bytes"].as_u64().unwrap_or(80 << 30),
        ops: ops.collect(),
    }
}
