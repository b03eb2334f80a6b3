//! The cost of recording, and the size of recordings.
//!
//! `cargo bench -p collector --bench recorder` prints the nanoseconds for each event on the allocating thread, the bytes for
//! each event in the file, and the speed of reading the file.

mod job;

use std::sync::Arc;
use std::time::{Duration, Instant};

use allocator::{TraceEntry, TraceSink};
use format::EventColumns;
use format::import::Importer;
use recorder::{DeviceSegments, ManualClock, Recorder, RecorderStats, WhenFull};
use trace::frames::StackId;
use trace::limits::ImportLimits;
use trace::units::Address;
use trace::{Event, TagId};

/// Records the entries in bursts with pauses, like a job. Returns the nanoseconds for each event, and the statistics.
fn hot(entries: &[TraceEntry], burst: usize, pause: Duration) -> (f64, RecorderStats) {
    let recorder = Recorder::new(job::header());
    let (mut sinks, handle) = recorder.start_to(Box::new(Vec::new()), "memory").expect("a recorder");
    let mut sink = sinks.pop().expect("a sink");
    let mut spent = Duration::ZERO;
    for burst in entries.chunks(burst) {
        let start = Instant::now();
        burst.iter().for_each(|&entry| sink.record(entry));
        spent += start.elapsed();
        std::thread::sleep(pause);
    }
    (spent.as_nanos() as f64 / entries.len() as f64, handle.finish(Vec::new()))
}

/// Returns the nanoseconds for each event with a vector as the sink, which all other figures include.
fn baseline(entries: &[TraceEntry]) -> f64 {
    let mut sink = Vec::with_capacity(entries.len());
    let start = Instant::now();
    entries.iter().for_each(|&entry| sink.record(entry));
    let spent = start.elapsed();
    std::hint::black_box(&sink);
    spent.as_nanos() as f64 / entries.len() as f64
}

/// Records all entries to a file, without loss. Returns the file's bytes and the seconds.
fn file(entries: &[TraceEntry], with_stacks: bool, is_ended: bool) -> std::io::Result<(Vec<u8>, f64)> {
    let path = std::env::temp_dir().join(format!("vramscope-bench-{}.vramscope", std::process::id()));
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let recorder = Recorder::new(job::header()).when_full(WhenFull::Wait).clock(clock.clone());
    let (mut sink, handle) = recorder.start(&path).map_err(std::io::Error::other)?;
    job::name_stacks(&handle);
    let start = Instant::now();
    for (i, &entry) in entries.iter().enumerate() {
        // An event every 1 to 30 microseconds.
        clock.advance(1 + (i as i64 * 7_919) % 30);
        let stack = if with_stacks { entry.stack } else { StackId(0) };
        sink.record(TraceEntry { stack, ..entry });
    }
    // Without segments at the end, reading derives them, which is measured separately.
    let stats = handle.finish(if is_ended { vec![DeviceSegments::default()] } else { Vec::new() });
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(stats.lost, 0);
    let bytes = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;
    Ok((bytes, seconds))
}

/// Returns the uncompressed bytes for each event.
fn plain(entries: &[TraceEntry], with_stacks: bool) -> f64 {
    let (mut columns, mut bytes, mut time_us) = (EventColumns::default(), 0, 0);
    for (i, &entry) in entries.iter().enumerate() {
        time_us += 1 + (i as i64 * 7_919) % 30;
        let stack = if with_stacks { entry.stack } else { StackId(0) };
        let (action, address) = (entry.action, Address(entry.address));
        columns.push(Event { action, address, size: entry.size, time_us, tag: TagId(0), stack });
        if columns.len() == trace::limits::CHUNK_EVENTS {
            bytes += columns.bytes();
            columns.clear();
        }
    }
    (bytes + columns.bytes()) as f64 / entries.len() as f64
}

fn decode(bytes: &[u8]) -> (usize, f64) {
    let start = Instant::now();
    let mut importer = Importer::new(ImportLimits::default());
    for piece in bytes.chunks(1 << 20) {
        importer.push(piece).expect("a recording");
    }
    let imported = importer.finish().expect("a recording");
    (imported.snapshot.devices[0].events.len(), start.elapsed().as_secs_f64())
}

fn main() -> std::io::Result<()> {
    let entries = job::entries(5_000_000);
    let count = entries.len() as f64;
    println!("an entry into a vector: {:.1} ns", baseline(&entries));
    for (burst, pause) in [(1_000, 1), (20_000, 2), (100_000, 20)] {
        let (ns, stats) = hot(&entries[..2_000_000], burst, Duration::from_millis(pause));
        println!("bursts of {burst}, {pause} ms between: {ns:.1} ns per event, {} lost", stats.lost);
    }
    let (ns, stats) = hot(&entries, entries.len(), Duration::ZERO);
    println!("without a pause: {ns:.1} ns per event, {:.1} % lost", stats.lost as f64 / count * 100.0);
    for with_stacks in [false, true] {
        let (bytes, seconds) = file(&entries, with_stacks, true)?;
        let (events, read) = decode(&bytes);
        assert_eq!(events, entries.len());
        println!(
            "{}: {:.1} bytes per event, {:.1} in the file; written at {:.1} M events/s, read at {:.1} M events/s ({:.0} MB/s)",
            if with_stacks { "with stacks" } else { "without stacks" },
            plain(&entries, with_stacks),
            bytes.len() as f64 / count,
            count / seconds / 1e6,
            count / read / 1e6,
            bytes.len() as f64 / read / 1e6,
        );
    }
    let (bytes, _) = file(&entries, true, false)?;
    let (_, read) = decode(&bytes);
    println!("with stacks, segments derived from the events: read at {:.1} M events/s", count / read / 1e6);
    Ok(())
}
