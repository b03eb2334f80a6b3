//! The recordings that the page's journeys show: one with lost events, as the recorder writes them when its output blocks,
//! and one whose texts look like HTML.
//!
//! These tests wrote the fixtures, with `VRAMSCOPE_WRITE_FIXTURES=1`. Which events were lost depended on the speed of the
//! recorder's thread, so the files are kept.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use allocator::{TraceEntry, TraceSink};
use anyhow::{Context, Result};
use format::export;
use format::import::{Imported, Importer};
use format::{Device, Header};
use query::finding::FindingCode;
use query::{Answer, Axis, EventFilter, EventOrder, EventsQuery, LOST, ListRow, OverviewQuery, Query};
use recorder::{DeviceSegments, ManualClock, Output, Recorder, RecorderHandle};
use session::Session;
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::{ImportLimits, RecorderLimits};
use trace::units::{PoolId, Stream};
use trace::{DeviceTrace, Settings, Snapshot};
use vramscope::workloads::{Choices, ClockedSim, RunControl, Setup, Workload};

/// Where the output blocks, as fractions of the trace: start and end.
const BLOCKED: [(f64, f64); 3] = [(0.20, 0.215), (0.5, 0.52), (0.70, 0.82)];

/// The workload's steps: enough for it to run out of memory and to continue.
const STEPS: u64 = 4;

/// Reads a fixture, after writing it with these bytes if that is requested.
fn fixture(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    if std::env::var_os("VRAMSCOPE_WRITE_FIXTURES").is_some() {
        std::fs::write(&path, bytes)?;
    }
    Ok(std::fs::read(path)?)
}

/// An output that blocks on demand.
#[derive(Clone, Default)]
struct BlockingOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_blocked: Arc<AtomicBool>,
    is_waiting: Arc<AtomicBool>,
}

impl Output for BlockingOutput {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        while self.is_blocked.load(Ordering::SeqCst) {
            self.is_waiting.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        self.is_waiting.store(false, Ordering::SeqCst);
        self.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(bytes);
        Ok(())
    }
}

/// Returns the recording's number of each stack of a snapshot.
fn stacks(snapshot: &Snapshot, handle: &RecorderHandle) -> Vec<StackId> {
    let symbols = &snapshot.symbols;
    let number = |stack: usize| {
        let frames: Vec<_> = symbols.stack(StackId(stack as u32)).iter().map(|frame| symbols.frame(*frame)).collect();
        let texts: Vec<_> = frames.iter().map(|f| (symbols.text(f.name), symbols.text(f.filename), f.line)).collect();
        let texts: Vec<_> = texts.iter().map(|(name, file, line)| (name.as_ref(), file.as_ref(), *line)).collect();
        if texts.is_empty() { StackId(0) } else { handle.stacks().intern(&texts) }
    };
    (0..symbols.stack_count()).map(number).collect()
}

/// Records a workload's trace with a small queue and an output that blocks at times.
fn record() -> Result<Vec<u8>> {
    let workload = Workload::named("recovery").context("no such workload")?;
    let choices = Choices::read(workload.params, &[])?;
    let setup = Setup { capacity: workload.capacity, ..Setup::default() };
    let outcome = vramscope::workloads::run(
        workload,
        &choices,
        STEPS,
        &setup,
        ClockedSim::new(workload.capacity),
        RunControl::default(),
    );
    let snapshot = outcome.snapshot;
    let trace: &DeviceTrace = snapshot.devices.first().context("no device")?;

    let header = Header {
        program: concat!("vramscope ", env!("CARGO_PKG_VERSION")).to_owned(),
        name: workload.name.to_owned(),
        host: "node-7".to_owned(),
        job: "pretrain".to_owned(),
        rank: Some(3),
        torch: setup.profile.torch.to_owned(),
        devices: vec![Device { number: 0, name: "simulated".to_owned(), capacity: workload.capacity }],
        settings: export::settings(&setup.config, setup.profile),
        ..Header::default()
    };
    let output = BlockingOutput::default();
    let clock = Arc::new(ManualClock::new(trace.events.time_us.get(0).unwrap_or_default()));
    let limits = RecorderLimits { queue_events: 128, flush_millis: 8, ..RecorderLimits::default() };
    let recorder = Recorder::new(header).clock(Arc::clone(&clock) as _).limits(limits);
    let (sinks, handle) = recorder.start_to(Box::new(output.clone()), "fixture")?;
    let mut sink = sinks.into_iter().next().context("no sink")?;
    let stacks = stacks(&snapshot, &handle);
    let of = |stack: StackId| stacks.get(stack.0 as usize).copied().unwrap_or_default();

    let count = trace.events.len();
    for (i, event) in trace.events.iter().enumerate() {
        let share = i as f64 / count as f64;
        let is_blocked = BLOCKED.iter().any(|(from, to)| (*from..*to).contains(&share));
        if output.is_blocked.swap(is_blocked, Ordering::SeqCst) != is_blocked && !is_blocked {
            until(|| !output.is_waiting.load(Ordering::SeqCst));
        }
        clock.set(event.time_us);
        let tag = snapshot.tags.get(event.tag);
        let (stream, pool) = (tag.stream, tag.pool.unwrap_or(PoolId(0, 0)));
        let (action, address, size, stack) = (event.action, event.address.0, event.size, of(event.stack));
        sink.record(TraceEntry { action, address, size, stream, pool, stack });
        if !is_blocked && i % 48 == 0 {
            // As slow as a job, so that the writer keeps up.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let mut segments = trace.segments.clone();
    for segment in &mut segments {
        segment.stack = of(segment.stack);
        segment.blocks.iter_mut().for_each(|block| block.stack = of(block.stack));
    }
    let stats = handle.finish(vec![DeviceSegments { device: 0, segments }]);
    assert_eq!(stats.events + stats.lost, count as u64);
    let bytes = output.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    Ok(bytes)
}

fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn import(bytes: &[u8]) -> Result<Imported> {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(bytes)?;
    Ok(importer.finish()?)
}

/// Checks that losses are at the places of the lost events: in the trace, the overview and the list of events.
fn check(bytes: &[u8]) -> Result<()> {
    let imported = import(bytes)?;
    assert!(imported.findings.iter().any(|finding| finding.code == FindingCode::EventsLost));
    assert_eq!(imported.header.as_ref().context("no header")?.host, "node-7");
    let mut session = Session::build(imported, &mut |_| {});
    let device = session.summary().devices.first().context("no device")?.clone();
    assert!(device.losses >= 2 && device.lost > 100, "{} in {}", device.lost, device.losses);
    // The trace starts before the first allocation, so everything is known up to the first loss.
    assert_eq!((device.start.requested, device.start.blocks), (0, 0));
    assert!(device.peak.requested <= device.capacity, "{} of {}", device.peak.requested, device.capacity);

    for axis in [Axis::Time, Axis::Event] {
        let Answer::Overview(overview) = session.answer(0, &Query::Overview(OverviewQuery { axis, columns: 100 }))
        else {
            anyhow::bail!("no overview")
        };
        assert_eq!(overview.losses.len(), device.losses as usize);
        assert_eq!(overview.losses.iter().map(|loss| loss.events).sum::<u64>(), device.lost);
        assert!(overview.losses.iter().all(|loss| loss.span.start < loss.span.end && !loss.kinds.is_empty()));
        assert!(overview.losses.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
    }

    let ask = |actions: &[&str], first, count, locate| {
        let actions = actions.iter().map(|name| (*name).to_owned()).collect();
        Query::Events(EventsQuery {
            order: EventOrder::default(),
            filter: EventFilter { actions, terms: Vec::new() },
            first,
            count,
            locate,
        })
    };
    let mut list = |query: Query| match session.answer(0, &query) {
        Answer::Events(rows) => Ok(rows),
        other => anyhow::bail!("{other:?}"),
    };
    let all = list(ask(&[], 0, 10_000, 0))?;
    assert_eq!(all.total, device.events + device.losses);
    // The row of a loss precedes the event at its position.
    let mut next = 0;
    for row in &all.rows {
        match row {
            ListRow::Event(event, _) => {
                assert_eq!(event.index, next);
                next += 1;
            }
            ListRow::Lost(loss) => assert_eq!(loss.position, next),
        }
    }
    for (number, row) in (0..).zip(&all.rows) {
        let found = list(ask(&[], number, 1, row.position()))?;
        assert_eq!(&found.rows, std::slice::from_ref(row));
        if row.event().is_some() {
            assert_eq!(found.located, Some(number));
        }
    }
    let lost = list(ask(&[LOST], 0, 10_000, 0))?;
    assert_eq!((lost.total, lost.rows.len()), (device.losses, device.losses as usize));
    let oom = list(ask(&["alloc"], 0, 10_000, 0))?;
    assert!(oom.rows.iter().all(|row| row.event().is_some_and(|event| event.action == "alloc")));
    Ok(())
}

#[test]
fn lost_events_are_shown_in_their_place() -> Result<()> {
    let bytes = record()?;
    check(&bytes)?;
    check(&fixture("recording_gap.vramscope", &bytes)?)
}

/// A text that would run a script if it were treated as HTML.
const MARKUP: &str = "<img src=x onerror=\"document.title='run'\"><b>bold</b>";

#[test]
fn texts_that_look_like_html_are_texts() -> Result<()> {
    let text = MARKUP.to_owned();
    let header = Header {
        program: text.clone(),
        name: text.clone(),
        host: text.clone(),
        job: text.clone(),
        torch: text.clone(),
        devices: vec![Device { number: 0, name: text.clone(), capacity: 1 << 30 }],
        settings: Settings { as_written: vec![(text.clone(), text)], ..Settings::default() },
        ..Header::default()
    };
    let output = BlockingOutput::default();
    let recorder = Recorder::new(header).clock(Arc::new(ManualClock::new(1_000_000)));
    let (sinks, handle) = recorder.start_to(Box::new(output.clone()), "fixture")?;
    let mut sink = sinks.into_iter().next().context("no sink")?;
    let stack = handle.stacks().intern(&[(MARKUP, MARKUP, 1)]);
    let (stream, pool, address) = (Stream(0), PoolId(0, 0), 0x7f00_0000_0000);
    for (action, size) in [(Action::SegmentAlloc, 2 << 20), (Action::Alloc, 1 << 20)] {
        sink.record(TraceEntry { action, address, size, stream, pool, stack });
    }
    handle.finish(Vec::new());
    let bytes = output.bytes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let imported = import(&fixture("recording_markup.vramscope", &bytes)?)?;
    let summary = Session::build(imported, &mut |_| {}).summary().clone();
    let origin = summary.origin.context("no origin")?;
    assert_eq!([origin.program, origin.name, origin.host, origin.job], [MARKUP; 4]);
    assert!(origin.allocator.contains(MARKUP));
    assert_eq!(summary.devices[0].model, MARKUP);
    Ok(())
}
