//! A recording to a server and to a file, and the check of both.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use allocator::{TraceEntry, TraceSink};
use anyhow::{Context, Result};
use format::recording::Decoder;
use format::{Device, Header};
use recorder::publish::{Destination, Publisher, PublisherHandle, PublisherStats};
use recorder::{
    DualOutput, FileCondition, FileOutput, Recorder, RecorderHandle, RecorderSink, RecorderStats, WhenFull,
};
use tests::Folder;
use trace::Stage;
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::{ImportLimits, PublishLimits, RecorderLimits};
use trace::units::{PoolId, Stream};

use crate::scripted::{Act, Scripted};

pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Returns limits with short times, so that tests are fast.
pub(crate) fn limits() -> PublishLimits {
    PublishLimits {
        batch_bytes: 2_000,
        post_bytes: 5_000,
        post_millis: 5,
        connect_millis: 1_000,
        answer_millis: 400,
        idle_millis: 100,
        backoff_millis: 5,
        backoff_cap_millis: 40,
        socket_millis: 60_000,
        ..PublishLimits::default()
    }
}

pub(crate) fn header() -> Header {
    let device = Device { number: 0, name: "simulated".to_owned(), capacity: 80 << 30 };
    Header { program: "test".to_owned(), name: "published".to_owned(), devices: vec![device], ..Header::default() }
}

/// Returns event `i` of an endless program, different from its neighbours.
pub(crate) fn entry(i: u64) -> TraceEntry {
    let action = [Action::Alloc, Action::FreeRequested, Action::FreeCompleted][(i % 3) as usize];
    // Mixed well, so that it compresses no better than a real program's events.
    let mixed = (i / 3 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let place = mixed >> 30 << 9;
    TraceEntry {
        action,
        address: place,
        size: place % 100_003,
        stream: Stream(0),
        pool: PoolId(0, 0),
        stack: StackId(0),
    }
}

/// A recording to a server and to a file.
pub(crate) struct Session {
    pub(crate) sink: RecorderSink,
    pub(crate) recorder: RecorderHandle,
    pub(crate) publisher: PublisherHandle,
    pub(crate) condition: FileCondition,
    pub(crate) next: u64,
}

impl Session {
    pub(crate) fn start(url: &str, file: &Path, limits: PublishLimits, when_full: WhenFull) -> Result<Self> {
        Self::start_to(Destination::parse(url)?, file, limits, when_full)
    }

    /// Starts a recording whose spool is in a folder of its own.
    pub(crate) fn start_in(
        url: &str,
        file: &Path,
        spool: &Path,
        limits: PublishLimits,
        when_full: WhenFull,
    ) -> Result<Self> {
        Self::begin(Destination::parse(url)?.spool(spool.to_owned()), file, limits, when_full)
    }

    /// Starts a recording to a destination whose token and mode are not set yet.
    pub(crate) fn start_to(
        destination: Destination,
        file: &Path,
        limits: PublishLimits,
        when_full: WhenFull,
    ) -> Result<Self> {
        Self::begin(destination.spool(file.with_extension("spool")), file, limits, when_full)
    }

    fn begin(destination: Destination, file: &Path, limits: PublishLimits, when_full: WhenFull) -> Result<Self> {
        let destination = destination.token(Some("open sesame".to_owned())).mode("simulated");
        let (output, publisher) = Publisher::start(destination, limits)?;
        let file = FileOutput::create(file)?;
        let condition = file.condition();
        let output = DualOutput::new(file, output);
        let flush = RecorderLimits { flush_millis: 2, room_millis: 20_000, ..RecorderLimits::default() };
        let recorder = Recorder::new(header()).when_full(when_full).limits(flush);
        let (mut sinks, recorder) = recorder.start_to(Box::new(output), "test")?;
        Ok(Self { sink: sinks.pop().context("no sink")?, recorder, publisher, condition, next: 0 })
    }

    pub(crate) fn record(&mut self, count: u64) {
        (self.next..self.next + count).for_each(|i| self.sink.record(entry(i)));
        self.next += count;
    }

    /// Records some events at a time, with pauses for the writer.
    pub(crate) fn record_slowly(&mut self, rounds: u64, count: u64) {
        for round in 0..rounds {
            self.record(count);
            self.recorder.mark(0, &format!("round {round}"), Stage::Instant);
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// Waits until a condition holds for the publisher's statistics.
    pub(crate) fn until(&self, what: &str, condition: impl Fn(&PublisherStats) -> bool) -> PublisherStats {
        let start = Instant::now();
        loop {
            let stats = self.publisher.stats();
            if condition(&stats) {
                return stats;
            }
            assert!(start.elapsed() < LONG, "timed out waiting for {what}: {stats:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn finish(self, time: Duration) -> (RecorderStats, PublisherStats) {
        (self.recorder.finish(Vec::new()), self.publisher.finish(time))
    }
}

/// Checks that the server has exactly the first `count` events, in order, and the same bytes as the file.
pub(crate) fn check(server: &Scripted, file: &Path, count: u64) -> Result<()> {
    let got = server.file();
    assert!(got == fs::read(file)?, "{} bytes were received, which differ from the file", got.len());
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&got)?;
    let (snapshot, findings, header) = decoder.finish()?;
    assert_eq!(header.map(|header| header.name).as_deref(), Some("published"));
    assert_eq!(findings, []);
    let events = &snapshot.devices[0].events;
    assert_eq!(events.len() as u64, count);
    for (i, event) in events.iter().enumerate() {
        let want = entry(i as u64);
        assert_eq!((event.action, event.address.0, event.size), (want.action, want.address, want.size), "event {i}");
    }
    let store = server.store.lock().unwrap();
    assert_eq!(store.faults, Vec::<String>::new());
    assert_eq!(store.ended, Some(store.batches.len() as u64));
    let hello = store.hello.clone().context("no hello")?;
    assert_eq!((hello.token.as_str(), hello.mode.as_str()), ("open sesame", "simulated"));
    Ok(())
}

/// Runs a session against a script. Returns its statistics and the number of POST requests.
pub(crate) fn run(name: &str, script: Vec<Act>) -> Result<(PublisherStats, usize)> {
    let folder = Folder::new(name)?;
    let file = folder.join("beside.vramscope");
    let server = Scripted::start(script)?;
    let session = Session::start(&server.url(), &file, limits(), WhenFull::Wait)?;
    run_session(session, &server, &file)
}

/// Records to a scripted server, and checks that everything arrived. Returns the statistics and the number of POST
/// requests.
pub(crate) fn run_session(mut session: Session, server: &Scripted, file: &Path) -> Result<(PublisherStats, usize)> {
    session.record_slowly(40, 200);
    let (recorded, published) = session.finish(LONG);
    assert_eq!((recorded.events, recorded.lost), (8_000, 0));
    assert!(published.is_ended, "{published:?}");
    assert_eq!((published.undelivered(), published.failure.clone()), (0, None));
    assert_eq!((published.batches, published.events), (published.batches_acked, 8_000));
    check(server, file, 8_000)?;
    let posts = server.store.lock().unwrap().posts;
    Ok((published, posts))
}
