//! What a few bytes on the wire can make readers allocate, measured by the system for each hostile recording: through
//! the tracker of a server, the live session of the page, and the decoder of files.
//!
//! Each is read in a process of its own, whose highest resident memory is then that of the reader.
#![cfg(target_os = "linux")]

mod hostile;
mod packed;

use std::process::Command;
use std::time::{Duration, Instant};

use format::import::Importer;
use format::recording::Decoder;
use format::{Chunk, ChunkReader};
use hostile::{ALL, Hostile};
use session::LiveSession;
use trace::limits::{ImportLimits, LiveLimits};
use tracker::Tracker;

const MIB: usize = 1 << 20;

/// The variable that names the reader and the recording for a process that measures.
const MEASURED: &str = "VRAMSCOPE_MEASURED";

/// Limits that little data reaches, in the proportions of the real ones.
fn limits() -> LiveLimits {
    let import = ImportLimits {
        unfinished_device_bytes: 5 * MIB,
        unfinished_bytes: 8 * MIB,
        outside_samples: 1 << 15,
        lost_symbols: 1 << 20,
        tracked_bytes: 8 * MIB,
        ..ImportLimits::default()
    };
    LiveLimits { pending_bytes: 2 * MIB, bytes: 16 * MIB, import, ..LiveLimits::default() }
}

/// Reads a recording. Returns the bytes of memory that the reader says it holds; 0 if it does not count them.
type Read = fn(&[u8]) -> usize;

fn track(bytes: &[u8]) -> usize {
    let mut tracker = Tracker::new(limits().import);
    let pushed = ChunkReader::at_start(&limits().import).push(bytes, &mut |chunk| tracker.add(chunk));
    assert!(pushed.is_ok());
    tracker.bytes()
}

fn watch(bytes: &[u8]) -> usize {
    let mut live = LiveSession::new(limits());
    for piece in bytes.chunks(MIB) {
        if live.push(piece).is_err() {
            break;
        }
        live.refresh();
    }
    live.bytes()
}

fn decode(bytes: &[u8]) -> usize {
    let mut decoder = Decoder::new(limits().import);
    if decoder.push(bytes).is_ok() {
        let _ = decoder.finish();
    }
    0
}

fn import(bytes: &[u8]) -> usize {
    let mut importer = Importer::new(ImportLimits::default());
    // As the command line and the page read files.
    let pushed = bytes.chunks(MIB).try_for_each(|piece| importer.push(piece));
    println!("{:?}", pushed.and_then(|()| importer.finish().map(|imported| imported.findings)));
    0
}

/// Returns a field of this process's status, in bytes.
fn memory(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Not a test of its own: the others start it with a recording to read.
#[test]
fn a_process_that_measures() {
    let Ok(what) = std::env::var(MEASURED) else { return };
    let (reader, name) = what.split_once('/').unwrap();
    let read: Read = match reader {
        "tracker" => track,
        "live" => watch,
        "import" => import,
        _ => decode,
    };
    let recordings = ALL.iter().map(|hostile| (hostile.name, hostile.make));
    let mut all = recordings.chain(packed::ALL.iter().map(|packed| (packed.name, packed.make)));
    let bytes = all.find(|(known, _)| *known == name).unwrap().1();
    let mut plain = 0;
    let add = &mut |chunk: Chunk<'_>| plain += chunk.payload.len();
    if reader != "import" {
        ChunkReader::at_start(&limits().import).push(&bytes, add).unwrap();
    }
    // The highest resident memory so far is forgotten.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let held = read(&bytes);
    println!("\nmeasured {plain} {} {held}", memory("VmHWM").saturating_sub(before));
}

/// What a reader needed for a recording, in bytes.
struct Measured {
    /// The unpacked recording.
    plain: usize,
    /// The most memory that the reader took.
    most: usize,
    /// The memory that it said to hold at the end.
    held: usize,
}

fn measure(reader: &str, name: &str) -> Measured {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_process_that_measures", "--nocapture"]);
    let output = command.env(MEASURED, format!("{reader}/{name}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("measured ")).unwrap_or_else(|| panic!("{text}"));
    let mut numbers = line.split(' ').map(|n| n.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    Measured { plain: next(), most: next(), held: next() }
}

/// Checks that a reader takes no more memory for each recording than `bound` says, and that it does not say to hold more
/// than `held`.
fn check(reader: &str, held: usize, bound: impl Fn(&Hostile, usize) -> usize) {
    let mut failed = Vec::new();
    // Two at a time.
    let half = ALL.len() / 2;
    let measure_all = |part: &[Hostile]| part.iter().map(|hostile| measure(reader, hostile.name)).collect::<Vec<_>>();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| measure_all(&ALL[..half]));
        let second = measure_all(&ALL[half..]);
        (first.join().unwrap(), second)
    });
    for (hostile, measured) in ALL.iter().zip(first.into_iter().chain(second)) {
        let bound = bound(hostile, measured.plain);
        let mib = |bytes: usize| bytes as f64 / MIB as f64;
        let line = format!(
            "{}: {:.1} MiB in {:.1} MiB, {:.1} allowed, {:.1} told",
            hostile.name,
            mib(measured.plain),
            mib(measured.most),
            mib(bound),
            mib(measured.held)
        );
        println!("{reader}: {line}");
        if measured.most > bound || measured.held > held {
            failed.push(line);
        }
    }
    assert!(failed.is_empty(), "{reader}: {failed:#?}");
}

/// A compressed file of less than 256 KiB took up to 780 MB, and 7 s, before it was refused.
#[test]
fn a_small_compressed_file_takes_little_memory_and_time() {
    let limit = ImportLimits::default().memory_grace_bytes.max(256 * (256 << 10)) as usize;
    let mut failed = Vec::new();
    for packed in packed::ALL {
        let begun = Instant::now();
        let most = measure("import", packed.name).most;
        let line = format!("{}: {} MiB, {:?}", packed.name, most / MIB, begun.elapsed());
        println!("{line}");
        // Lists are twice as long for a moment while they grow; making the file counts for the time.
        if most > 2 * limit || begun.elapsed() > Duration::from_secs(60) {
            failed.push(line);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_tracker_stays_below_its_bound_whatever_it_reads() {
    let limit = limits().import.tracked_bytes;
    // While a state takes effect, its parts are there too.
    check("tracker", limit + limit / 16, |_, _| 2 * limit);
}

#[test]
fn a_live_session_stops_at_its_bound() {
    let limit = limits().bytes;
    // It notices after it has added what was pending.
    check("live", 2 * limit, |_, _| 2 * limit + 8 * MIB);
}

#[test]
fn a_decoder_takes_so_much_memory_for_each_unpacked_byte() {
    // The largest number of lost names takes as much as this in any case.
    check("decoder", 0, |hostile, plain| 10 * MIB + hostile.per_byte * plain);
}
