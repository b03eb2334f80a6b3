//! The cost of publishing.
//!
//! `cargo bench -p collector --bench publish` prints, for publishing, for writing a file and for no recording: the
//! nanoseconds for each event on the allocating thread, and the processor time of all threads. It also prints how long an
//! event takes to be acknowledged, the bytes for each event on the wire at a busy job's rate, and how many events a second
//! reach a server that only acknowledges.

mod job;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use allocator::{TraceEntry, TraceSink};
use recorder::publish::{Destination, Publisher, PublisherHandle, PublisherStats};
use recorder::{FileOutput, Output, Recorder, RecorderHandle, RecorderSink, RecorderStats, WhenFull};
use trace::frames::StackId;
use trace::limits::{PublishLimits, RecorderLimits, WireLimits};
use tungstenite::Message as WsMessage;
use wire::{Ack, Decoder, Message, PROTOCOL, Welcome};

/// Starts a server that acknowledges everything, stores nothing, and counts bytes.
fn server(bytes: Arc<AtomicU64>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bytes = Arc::clone(&bytes);
            std::thread::spawn(move || serve(stream, &bytes));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream, bytes: &AtomicU64) {
    let Ok(mut socket) = tungstenite::accept(stream) else { return };
    let mut decoder = Decoder::new(&WireLimits::default());
    while let Ok(message) = socket.read() {
        let WsMessage::Binary(piece) = message else { continue };
        bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        let mut answer = None;
        let read = decoder.push(&piece, &mut |message| match message {
            Message::Hello(_) => answer = Some(Message::Welcome(Welcome { protocol: PROTOCOL, next: 1 })),
            Message::Batch(batch) => answer = Some(Message::Ack(Ack { seq: batch.seq })),
            Message::Goodbye(goodbye) => answer = Some(Message::Ack(Ack { seq: goodbye.seq })),
            _ => {}
        });
        let sent = answer.map_or(Ok(()), |answer| socket.send(WsMessage::binary(answer.to_bytes())));
        if read.is_err() || sent.is_err() {
            return;
        }
    }
}

fn recorder(output: Box<dyn Output>, when_full: WhenFull) -> (RecorderSink, RecorderHandle) {
    let recorder = Recorder::new(job::header()).when_full(when_full).limits(RecorderLimits::live());
    let (mut sinks, handle) = recorder.start_to(output, "bench").expect("a recorder");
    let sink = sinks.pop().expect("a sink");
    job::name_stacks(&handle);
    (sink, handle)
}

fn publisher(address: SocketAddr) -> (Box<dyn Output>, PublisherHandle) {
    let destination = Destination::parse(&format!("http://{address}")).expect("an address");
    let (output, handle) = Publisher::start(destination, PublishLimits::default()).expect("a publisher");
    (Box::new(output), handle)
}

/// Returns the processor seconds of all threads of this process; 0 if the system does not report them.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may contain anything, user and system time are the 12th and 13th field, in hundredths.
    let mut fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (next() + next()) / 100.0
}

/// The destination of a recording.
#[derive(Clone, Copy)]
enum To {
    Nowhere,
    File,
    Server(SocketAddr),
}

/// Records at a rate for some seconds. Returns the nanoseconds for each event on the allocating thread, the share of one
/// processor that all threads used, and the lost events.
fn steady(entries: &[TraceEntry], to: To, rate: usize, with_stacks: bool) -> (f64, f64, u64) {
    let path = std::env::temp_dir().join(format!("vramscope-bench-{}.vramscope", std::process::id()));
    let (output, handle): (Option<Box<dyn Output>>, _) = match to {
        To::Nowhere => (None, None),
        To::File => (Some(Box::new(FileOutput::create(&path).expect("a file"))), None),
        To::Server(address) => {
            let (output, handle) = publisher(address);
            (Some(output), Some(handle))
        }
    };
    let mut recording = output.map(|output| recorder(output, WhenFull::Count));
    let (mut spent, start, used) = (Duration::ZERO, Instant::now(), processor());
    // A step of the job: the events of a hundredth of a second, as fast as possible.
    for (turn, burst) in entries.chunks(rate / 100).enumerate() {
        let began = Instant::now();
        for &entry in burst {
            let stack = if with_stacks { entry.stack } else { StackId(0) };
            let entry = std::hint::black_box(TraceEntry { stack, ..entry });
            if let Some((sink, _)) = &mut recording {
                sink.record(entry);
            }
        }
        spent += began.elapsed();
        let due = start + Duration::from_millis(10) * (turn as u32 + 1);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let (share, count) = ((processor() - used) / start.elapsed().as_secs_f64(), entries.len() as f64);
    let stats = recording.map_or_else(RecorderStats::default, |(_, recorder)| recorder.finish(Vec::new()));
    let lost = stats.lost + handle.map_or(0, |handle| handle.finish(Duration::from_secs(10)).undelivered());
    // The file only exists if the destination was a file.
    let _ = std::fs::remove_file(path);
    (spent.as_nanos() as f64 / count, share, lost)
}

/// Returns the milliseconds from an event to its acknowledgement, sorted: one value for each step of a busy job.
fn latency(entries: &[TraceEntry], address: SocketAddr, rate: usize) -> Vec<f64> {
    let (output, handle) = publisher(address);
    let (mut sink, recorder) = recorder(output, WhenFull::Count);
    let (mut waiting, mut took) = (VecDeque::new(), Vec::new());
    let start = Instant::now();
    let (mut count, mut turn) = (0, 0);
    for burst in entries.chunks(rate / 100) {
        burst.iter().for_each(|&entry| sink.record(entry));
        (count, turn) = (count + burst.len() as u64, turn + 1);
        waiting.push_back((count, Instant::now()));
        let due = start + Duration::from_millis(10) * turn;
        while Instant::now() < due {
            std::thread::sleep(Duration::from_micros(500));
            let acked = handle.stats().events_acked;
            while let Some((_, since)) = waiting.pop_front_if(|(last, _)| *last <= acked) {
                took.push(since.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    recorder.finish(Vec::new());
    handle.finish(Duration::from_secs(10));
    took.sort_by(f64::total_cmp);
    took
}

/// Records all events to a server as fast as possible, without loss. Returns the seconds until everything was
/// acknowledged, and the statistics.
fn through(entries: &[TraceEntry], address: SocketAddr, with_stacks: bool) -> (f64, PublisherStats) {
    let (output, handle) = publisher(address);
    let (mut sink, recorder) = recorder(output, WhenFull::Wait);
    let start = Instant::now();
    for &entry in entries {
        sink.record(TraceEntry { stack: if with_stacks { entry.stack } else { StackId(0) }, ..entry });
    }
    assert_eq!(recorder.finish(Vec::new()).lost, 0);
    let stats = handle.finish(Duration::from_secs(60));
    assert_eq!((stats.undelivered(), stats.is_ended), (0, true));
    (start.elapsed().as_secs_f64(), stats)
}

fn main() -> std::io::Result<()> {
    let entries = job::entries(5_000_000);
    let bytes = Arc::new(AtomicU64::new(0));
    let address = server(Arc::clone(&bytes))?;
    for rate in [10_000, 50_000, 500_000] {
        let events = &entries[..rate * 4];
        for (name, to) in [("off", To::Nowhere), ("to a file", To::File), ("published", To::Server(address))] {
            let (ns, share, lost) = steady(events, to, rate, true);
            // The share includes the server, which runs in this process.
            println!(
                "{rate} events/s, {name}: {ns:.1} ns per event, {:.2} % of a processor, {lost} lost",
                share * 100.0
            );
        }
    }
    let took = latency(&entries[..500_000], address, 50_000);
    let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
    println!(
        "50000 events/s, from event to acknowledgement: {:.0} ms at the median, {:.0} ms at the 99th percentile",
        at(50),
        at(99)
    );
    for (name, with_stacks) in [("without stacks", false), ("with stacks", true)] {
        for rate in [10_000, 50_000] {
            bytes.store(0, Ordering::Relaxed);
            steady(&entries[..rate * 4], To::Server(address), rate, with_stacks);
            let each = bytes.load(Ordering::Relaxed) as f64 / (rate * 4) as f64;
            println!(
                "{name}, {rate} events/s: {each:.2} bytes per event on the wire, including the names of 2,000 stacks"
            );
        }
        let (seconds, stats) = through(&entries, address, with_stacks);
        let count = entries.len() as f64;
        println!(
            "{name}, as fast as possible: {:.2} M events/s, {:.2} bytes per event, {} batches",
            count / seconds / 1e6,
            stats.bytes as f64 / count,
            stats.batches
        );
    }
    Ok(())
}
