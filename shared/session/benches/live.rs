//! Measures the cost of following a running job: `cargo bench -p session --bench live`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use allocator::sim::{Placement, SimDriver};
use allocator::{AllocatorConfig, DeviceAllocator, Request, TORCH_2_11, TraceEntry};
use format::{ChunkReader, EventColumns, Header, Writer};
use query::diagnosis::DiagnosisQuery;
use query::{Axis, ColorBy, OverviewQuery, Query, TimelineQuery, Window};
use replay::Forward;
use session::LiveSession;
use trace::event::Action;
use trace::frames::{Frame, StackId, Symbols};
use trace::limits::{CHUNK_EVENTS, ImportLimits, LiveLimits, live_diagnosis_rest_ms};
use trace::units::{Address, PoolId, Stream};
use trace::{Event, Settings, Tag, Tags};
use tracker::Tracker;

/// Each measurement is the best of this number of runs.
const RUNS: usize = 5;
/// The number of the program's call sites.
const SITES: u64 = 200;

/// A program that never ends: it frees one of its blocks and allocates another, over and over.
struct Job {
    allocator: DeviceAllocator<SimDriver, Vec<TraceEntry>>,
    live: Vec<Address>,
    seed: u64,
    writer: Writer,
    symbols: Symbols,
    tags: Tags,
    columns: EventColumns,
    next: u64,
    now_us: i64,
    out: Vec<u8>,
}

impl Job {
    fn new(live: usize) -> Self {
        let driver = SimDriver::new(1 << 45, Placement::FirstFit);
        let allocator = DeviceAllocator::new(driver, Vec::new(), &TORCH_2_11, AllocatorConfig::default());
        let mut out = Vec::new();
        let writer = Writer::new(&Header::default(), &mut out);
        let mut symbols = Symbols::default();
        for site in 0..SITES as u32 {
            let (name, filename) =
                (symbols.intern(format!("layer{site}").as_bytes()), symbols.intern(b"/home/me/model.py"));
            let frame = symbols.intern_frame(Frame { name, filename, line: site + 1 });
            symbols.intern_stack(&[frame]);
        }
        let mut new = Self {
            allocator,
            live: Vec::new(),
            seed: 1,
            writer,
            symbols,
            tags: Tags::default(),
            columns: EventColumns::default(),
            next: 0,
            now_us: 0,
            out,
        };
        for _ in 0..live {
            new.malloc();
        }
        new
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    fn malloc(&mut self) {
        let size = match self.random(10) {
            0..7 => 1 + self.random(500_000),
            7..9 => (1 << 20) + self.random(9 << 20),
            _ => (10 << 20) + self.random(90 << 20),
        };
        let stack = StackId(1 + self.random(SITES) as u32);
        let request = Request { size, stack, ..Request::default() };
        self.live.extend(self.allocator.malloc(request));
    }

    fn churn(&mut self) {
        let at = self.random(self.live.len() as u64) as usize;
        let address = self.live.swap_remove(at);
        self.allocator.free(address, StackId(0)).expect("it is live");
        self.malloc();
    }

    /// Returns the new events in the form of a recording.
    fn events(&mut self) -> Vec<Event> {
        let entries = std::mem::take(self.allocator.sink_mut());
        let mut event = |entry: TraceEntry| {
            self.now_us += 3;
            Event {
                action: entry.action,
                address: Address(entry.address),
                size: entry.size,
                time_us: self.now_us,
                tag: self.tags.intern(Tag { stream: entry.stream, pool: Some(entry.pool), ..Tag::default() }),
                stack: entry.stack,
            }
        };
        entries.into_iter().map(&mut event).collect()
    }

    /// Returns chunks with at least this number of further events, the last of which is a request that fails if
    /// `has_failure`.
    fn chunks_with(&mut self, events: usize, has_failure: bool) -> Vec<u8> {
        if has_failure {
            let entry = TraceEntry {
                action: Action::Oom,
                address: 1 << 20,
                size: 1 << 40,
                stream: Stream(0),
                pool: PoolId::default(),
                stack: StackId(1),
            };
            self.allocator.sink_mut().push(entry);
        }
        self.chunks(events)
    }

    /// Returns chunks with at least this number of further events.
    fn chunks(&mut self, events: usize) -> Vec<u8> {
        let mut done = 0;
        while done < events {
            self.churn();
            if self.allocator.sink_mut().len() < CHUNK_EVENTS.min(events - done) {
                continue;
            }
            let gathered = self.events();
            self.writer.symbols(&self.symbols, &self.tags, &mut self.out);
            done += gathered.len();
            gathered.into_iter().for_each(|event| self.columns.push(event));
            self.writer.events(0, self.next, &self.columns, &mut self.out);
            self.next += self.columns.len() as u64;
            self.columns.clear();
        }
        std::mem::take(&mut self.out)
    }
}

fn best(mut run: impl FnMut() -> f64) -> f64 {
    (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("carried forward: ns an event");
    for live in [100, 1_000, 10_000, 100_000] {
        let mut job = Job::new(live);
        let before = job.events();
        (0..200_000).for_each(|_| job.churn());
        let events = job.events();
        let mut held = Forward::new(&Settings::default());
        before.iter().for_each(|event| held.apply(event, Stream(0), None));
        let ns = best(|| {
            let mut forward = held.clone();
            let start = Instant::now();
            events.iter().for_each(|event| forward.apply(event, Stream(0), None));
            black_box(forward.sums());
            start.elapsed().as_secs_f64() * 1e9 / events.len() as f64
        });
        println!("  {live:9} live blocks {ns:7.1} ns");
    }
    println!("tracked from chunks: ns an event");
    for live in [1_000, 10_000] {
        let mut job = Job::new(live);
        let bytes = job.chunks(1_000_000);
        let ns = best(|| {
            let mut tracker = Tracker::new(ImportLimits::default());
            let start = Instant::now();
            let mut chunks = ChunkReader::at_start(&ImportLimits::default());
            chunks.push(&bytes, &mut |chunk| tracker.add(chunk)).expect("a recording");
            black_box(tracker.bytes());
            start.elapsed().as_secs_f64() * 1e9 / job.next as f64
        });
        println!("  {live:9} live blocks {ns:7.1} ns");
    }
    println!("a session that grows by {NEW} events: ms to push, to refresh, and to query");
    for held in [100_000, 1_000_000, 2_000_000] {
        grow(held);
    }
    trim();
    println!("findings of a job that makes {RATE} events a second");
    for held in [100_000, 1_000_000, LiveLimits::default().events - NEW] {
        diagnose(held);
    }
    println!("a job in which a request fails at every refresh");
    fail();
}

/// Events a second of the jobs that are diagnosed.
const RATE: usize = 100_000;
/// Diagnoses of a measurement, and the seconds that a job in which requests fail is watched.
const LOOKS: usize = 3;
const SECONDS: usize = 5;

/// Measures a running job with and without diagnoses, each as often as the page asks for one.
fn diagnose(held: usize) {
    let mut job = Job::new(10_000);
    let mut live = LiveSession::new(LiveLimits::default());
    live.push(&job.chunks(held)).expect("a recording");
    live.refresh();
    let (mut ingest, mut findings, mut longest, mut seconds) = (0.0, 0.0, 0.0_f64, 0.0);
    for _ in 0..LOOKS {
        let start = Instant::now();
        black_box(live.answer(0, &Query::Diagnosis(DiagnosisQuery)));
        let took_ms = start.elapsed().as_secs_f64() * 1e3;
        let rest_ms = live_diagnosis_rest_ms(took_ms);
        // Until the next one, the job goes on. The session is measured as if it stayed as long as it is.
        let bytes = job.chunks(NEW);
        let start = Instant::now();
        live.push(&bytes).expect("a recording");
        live.refresh();
        let refresh = start.elapsed().as_secs_f64();
        let passed = (took_ms + rest_ms) / 1e3;
        ingest += refresh * passed * RATE as f64 / NEW as f64;
        findings += took_ms / 1e3;
        seconds += passed;
        // An event right after the beginning of a diagnosis is part of the one after the next rest.
        longest = longest.max((2.0 * took_ms + rest_ms) / 1e3);
    }
    println!(
        "  {held:9} events held: {:.0} ms each; findings take {:.1} % of a core, ingest {:.1} % ({:.2} times that of ingest \
         alone); a verdict is at most {longest:.1} s old",
        findings * 1e3 / LOOKS as f64,
        findings / seconds * 100.0,
        ingest / seconds * 100.0,
        (ingest + findings) / ingest
    );
}

/// Measures refreshes in which another request has failed, which is a finding at once.
fn fail() {
    let mut job = Job::new(10_000);
    let mut live = LiveSession::new(LiveLimits::default());
    live.push(&job.chunks(1_000_000)).expect("a recording");
    live.refresh();
    let mut spent = [0.0; 2];
    for round in 0..2 * 10 * SECONDS {
        let bytes = job.chunks_with(RATE / 10, round % 2 == 1);
        let start = Instant::now();
        live.push(&bytes).expect("a recording");
        live.refresh();
        spent[round % 2] += start.elapsed().as_secs_f64();
    }
    let [without, with] = spent.map(|spent| spent / SECONDS as f64 * 100.0);
    println!(
        "  refreshes take {with:.1} % of a core, and {without:.1} % without failures: {:.1} % for findings",
        with - without
    );
}

/// The number of events of one refresh.
const NEW: usize = 10_000;

fn grow(held: usize) {
    let mut job = Job::new(10_000);
    let mut live = LiveSession::new(LiveLimits::default());
    live.push(&job.chunks(held)).expect("a recording");
    let start = Instant::now();
    live.refresh();
    let first = start.elapsed().as_secs_f64() * 1e3;
    ask(&mut live);
    // Repeating the queries measures drawing alone.
    let names = ["push", "refresh", "overview", "timeline", "and both again"];
    let mut times: [Vec<f64>; 5] = Default::default();
    for _ in 0..20 {
        let bytes = job.chunks(NEW);
        let start = Instant::now();
        live.push(&bytes).expect("a recording");
        let pushed = start.elapsed();
        live.refresh();
        let refreshed = start.elapsed();
        let overview = ask(&mut live);
        let asked = start.elapsed();
        ask(&mut live);
        let again = start.elapsed();
        let parts = [pushed, refreshed - pushed, overview, asked - refreshed - overview, again - asked];
        times.iter_mut().zip(parts).for_each(|(times, part)| times.push(part.as_secs_f64() * 1e3));
    }
    print!("  {held:9} events held ({first:.0} ms at first, {} MiB):", live.bytes() >> 20);
    for (name, times) in names.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        print!("  {name} {:.2} (at worst {:.2})", times[times.len() / 2], times[times.len() - 1]);
    }
    println!();
}

/// Measures refreshes of a session at its limit: ordinary ones, and the one that trims the older half, including the
/// answers drawn after it.
fn trim() {
    let limits = LiveLimits::default();
    let mut job = Job::new(10_000);
    let mut live = LiveSession::new(limits);
    live.push(&job.chunks(limits.events / 2)).expect("a recording");
    live.refresh();
    ask(&mut live);
    let (mut usual, mut worst, mut most) = (Vec::new(), 0.0_f64, 0);
    for _ in 0..limits.events * 3 / 2 / NEW {
        let bytes = job.chunks(NEW);
        let start = Instant::now();
        live.push(&bytes).expect("a recording");
        let is_trimmed = live.refresh().is_some_and(|update| !update.trimmed.is_empty());
        if is_trimmed {
            ask(&mut live);
        }
        let ms = start.elapsed().as_secs_f64() * 1e3;
        if is_trimmed {
            worst = worst.max(ms);
        } else {
            usual.push(ms);
        }
        most = most.max(live.bytes());
    }
    usual.sort_by(f64::total_cmp);
    let (median, last) = (usual[usual.len() / 2], usual[usual.len() - 1]);
    let (bound, mib) = (limits.events, most >> 20);
    println!(
        "at the bound of {bound} events ({mib} MiB at most): pushing {NEW} events and refreshing takes {median:.2} ms (at worst {last:.2}); trimming the older half and drawing again, {worst:.0} ms"
    );
}

/// Asks for the answers that are drawn after each refresh. Returns the duration of the first one.
fn ask(live: &mut LiveSession) -> Duration {
    let start = Instant::now();
    let summary = &live.summary().devices[0];
    let timeline = TimelineQuery {
        axis: Axis::Time,
        window: summary.time,
        columns: 1600,
        bytes: Window { start: 0.0, end: summary.peak_reserved as f64 },
        rows: 800,
        color_by: ColorBy::Site,
        filter: Vec::new(),
        highlight: None,
    };
    black_box(live.answer(0, &Query::Overview(OverviewQuery { axis: Axis::Time, columns: 1600 })));
    let overview = start.elapsed();
    black_box(live.answer(0, &Query::Timeline(timeline)));
    overview
}
