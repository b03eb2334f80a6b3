//! The recorder: recorded events are in the file, lost ones are counted, and the allocator never waits.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use allocator::{TraceEntry, TraceSink};
use anyhow::{Context, Result, ensure};
use format::import::{Encoding, Imported, Importer};
use format::recording::Decoder;
use format::{Device, Header};
use query::finding::FindingCode;
use recorder::{Capture, DeviceSegments, FileOutput, ManualClock, Output, Recorder, RecorderStats, WhenFull};
use tests::{Folder, program};
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::{ImportLimits, RecorderLimits};
use trace::units::{Address, PoolId, Stream};
use trace::{Block, BlockState, Sample, Segment, Snapshot, Stage};

const BASE: u64 = 0x7f00_0000_0000;

fn header(devices: i64) -> Header {
    let device = |number| Device { number, name: "simulated".to_owned(), capacity: 80 << 30 };
    Header { program: "test".to_owned(), devices: (0..devices).map(device).collect(), ..Header::default() }
}

/// Returns event `i` of an endless program: an allocation or one of its two free events.
fn entry(i: u64, stack: StackId) -> TraceEntry {
    let action = [Action::Alloc, Action::FreeRequested, Action::FreeCompleted][(i % 3) as usize];
    TraceEntry { action, address: BASE + i / 3 * 512, size: 100 + i / 3, stream: Stream(0), pool: PoolId(0, 0), stack }
}

fn read(path: &Path) -> Result<Imported> {
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(&fs::read(path)?)?;
    let imported = importer.finish()?;
    assert_eq!(imported.format.encoding, Encoding::Recording);
    Ok(imported)
}

fn codes(imported: &Imported) -> Vec<FindingCode> {
    imported.findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn events_of_two_devices_are_in_the_file() -> Result<()> {
    let folder = Folder::new("recorder")?;
    let path = folder.join("two.vramscope");
    let (sinks, handle) = Recorder::new(header(2)).when_full(WhenFull::Wait).start_all(&path)?;
    let stacks: Vec<StackId> = (0..50)
        .map(|line| handle.stacks().intern(&[("forward", "/home/me/model.py", line), ("main", "train.py", 9)]))
        .collect();
    let each = 100_000_u64;
    std::thread::scope(|scope| {
        for mut sink in sinks {
            let stacks = &stacks;
            scope.spawn(move || (0..each).for_each(|i| sink.record(entry(i, stacks[(i / 3 % 50) as usize]))));
        }
        // New names and marks, while events are recorded.
        for step in 0..20 {
            handle.mark(step % 2, &format!("step {step}"), Stage::Instant);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let block = Block {
        address: Address(BASE + each / 3 * 512),
        size: 512,
        requested: 100 + each / 3,
        state: BlockState::Allocated,
        stack: stacks[0],
    };
    let segment = Segment {
        address: Address(BASE),
        size: 2 << 30,
        stream: Stream(0),
        is_small: true,
        is_expandable: true,
        pool: PoolId(0, 0),
        stack: stacks[1],
        blocks: vec![block],
    };
    let end = |device| DeviceSegments { device, segments: vec![segment.clone()] };
    let stats = handle.finish(vec![end(0), end(1)]);
    let written = fs::metadata(&path)?.len();
    assert_eq!(stats, RecorderStats { events: 2 * each, bytes: written, ..RecorderStats::default() });

    let got = read(&path)?;
    assert_eq!(codes(&got), []);
    for device in &got.snapshot.devices {
        assert_eq!(device.events.len() as u64, each);
        for (i, event) in device.events.iter().enumerate() {
            let want = entry(i as u64, StackId(0));
            let what = (event.action, event.address.0, event.size);
            assert_eq!(what, (want.action, want.address, want.size), "event {i}");
            let top = got.snapshot.symbols.frame(got.snapshot.symbols.stack(event.stack)[0]);
            assert_eq!(u64::from(top.line), i as u64 / 3 % 50);
        }
        assert!(device.events.time_us.iter().is_sorted());
        assert_eq!(device.annotations.len(), 10);
        assert_eq!((device.segments.len(), device.segments[0].blocks.len()), (1, 1));
    }
    assert_eq!(got.snapshot.symbols.text(got.snapshot.devices[1].annotations[0].name), "step 1");

    // The program can read it.
    let output = program::run(&["report", "--json", path.to_str().context("a path without a name")?])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let file = &report["files"][0];
    assert_eq!((file["format"].as_str(), file["devices"].as_array().map(Vec::len)), (Some("recording"), Some(2)));
    assert_eq!(file["devices"][0]["events"]["alloc"].as_u64(), Some(each.div_ceil(3)));
    Ok(())
}

#[test]
fn a_device_is_left_out_until_it_is_used_and_has_the_marks_from_before() -> Result<()> {
    let folder = Folder::new("recorder-unused")?;
    let path = folder.join("used.vramscope");
    let (mut sinks, handle) = Recorder::new(header(3)).leave_unused_out().start_all(&path)?;
    for device in 0..3 {
        handle.mark_at(device, "loading", Stage::Instant, 1_700_000_000_000_000);
    }
    assert!(handle.flush(Duration::from_secs(20)));
    let header_bytes = fs::metadata(&path)?.len();
    sinks[1].record(entry(0, StackId(0)));
    assert!(handle.flush(Duration::from_secs(20)));
    assert!(fs::metadata(&path)?.len() > header_bytes);
    handle.mark(1, "later", Stage::Instant);
    handle.mark(2, "later", Stage::Instant);
    drop(sinks);
    let segment = Segment {
        address: Address(BASE),
        size: 2 << 20,
        stream: Stream(0),
        is_small: true,
        is_expandable: false,
        pool: PoolId(0, 0),
        stack: StackId(0),
        blocks: vec![],
    };
    // The third device is used only by the time of the end.
    let end = [(0, vec![]), (2, vec![segment])].map(|(device, segments)| DeviceSegments { device, segments });
    assert_eq!(handle.finish(end.to_vec()).marks_lost, 0);
    let got = read(&path)?;
    assert_eq!(codes(&got), []);
    let devices = got.snapshot.devices.iter();
    let devices: Vec<_> =
        devices.map(|of| (of.device, of.events.len(), of.annotations.len(), of.segments.len())).collect();
    assert_eq!(devices, [(1, 1, 2, 0), (2, 0, 2, 1)]);
    assert_eq!(got.snapshot.devices[0].annotations[0].time_us, 1_700_000_000_000_000);

    // A recording has a device, although the job has used none.
    let path = folder.join("none.vramscope");
    let (sinks, handle) = Recorder::new(header(3)).leave_unused_out().start_all(&path)?;
    handle.mark(2, "alone", Stage::Instant);
    handle.statistics(1, Sample { time_us: 1, allocated: 0, active: 0, reserved: 0 });
    drop(sinks);
    handle.finish(Vec::new());
    let got = read(&path)?;
    let devices: Vec<_> = got.snapshot.devices.iter().map(|of| (of.device, of.annotations.len())).collect();
    assert_eq!((codes(&got), devices), (vec![FindingCode::NoHistory], vec![(0, 0)]));

    // Samples alone show that a device is used.
    let path = folder.join("samples.vramscope");
    let (sinks, handle) = Recorder::new(header(3)).leave_unused_out().start_all(&path)?;
    handle.mark(1, "before", Stage::Instant);
    handle.statistics(1, Sample { time_us: 1, allocated: 512, active: 512, reserved: 2 << 20 });
    drop(sinks);
    handle.finish(Vec::new());
    let got = read(&path)?;
    let devices = got.snapshot.devices.iter();
    let devices: Vec<_> = devices.map(|of| (of.device, of.annotations.len(), of.samples.len())).collect();
    assert_eq!(devices, [(1, 1, 1)]);
    Ok(())
}

#[test]
fn events_have_the_text_that_the_job_attached_when_they_happened() -> Result<()> {
    let folder = Folder::new("recorder-texts")?;
    let path = folder.join("texts.vramscope");
    let (mut sink, handle) = Recorder::new(header(1)).start(&path)?;
    let texts = ["", "step 1", "step 1", "", "step 2"];
    for (i, text) in texts.into_iter().enumerate() {
        sink.set_metadata(handle.stacks().text(text));
        sink.record(entry(i as u64 * 3, StackId(0)));
    }
    // Set and not used.
    sink.set_metadata(handle.stacks().text("never"));
    drop(sink);
    assert_eq!(handle.finish(Vec::new()).events, 5);
    let Snapshot { devices, tags, symbols, .. } = read(&path)?.snapshot;
    let got: Vec<_> = devices[0].events.iter().map(|event| symbols.text(tags.get(event.tag).user_metadata)).collect();
    assert_eq!(got, texts);
    Ok(())
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
        self.bytes.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "timed out: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_full_queue_counts_lost_events_and_records_where_they_are_missing() -> Result<()> {
    let output = BlockingOutput::default();
    let limits = RecorderLimits { queue_events: 64, flush_millis: 1, ..RecorderLimits::default() };
    let recorder = Recorder::new(header(1)).limits(limits);
    let (mut sinks, handle) = recorder.start_to(Box::new(output.clone()), "test")?;
    let mut sink = sinks.pop().context("no sink")?;
    let mut next = 0;
    let mut record = |count: u64| {
        (next..next + count).for_each(|i| sink.record(entry(i, StackId(0))));
        next += count;
    };
    output.is_blocked.store(true, Ordering::SeqCst);
    record(9);
    until("the writer blocks", || output.is_waiting.load(Ordering::SeqCst));
    // The writer may have read some or all of the nine events; the queue holds 64 in any case.
    record(3_000);
    output.is_blocked.store(false, Ordering::SeqCst);
    until("the writer continues", || !output.is_waiting.load(Ordering::SeqCst));
    std::thread::sleep(Duration::from_millis(50));
    // A second loss, with no event after it.
    output.is_blocked.store(true, Ordering::SeqCst);
    record(3);
    until("the writer blocks", || output.is_waiting.load(Ordering::SeqCst));
    record(300);
    output.is_blocked.store(false, Ordering::SeqCst);
    let stats = handle.finish(Vec::new());
    assert_eq!(stats.events + stats.lost, 9 + 3_000 + 3 + 300, "{stats:?}");
    assert!((3_000 - 64 + 300 - 64..=3_300 - 64).contains(&stats.lost), "{stats:?}");
    assert_eq!(stats.lost_by_action.iter().sum::<u64>(), stats.lost);

    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&output.bytes.lock().unwrap())?;
    let track = decoder.recording().devices.get(0).context("no device")?;
    let missing = &track.lost;
    assert_eq!(missing.len(), 2, "{missing:?}");
    assert_eq!(missing.iter().map(|m| m.lost.to - m.lost.from).sum::<u64>(), stats.lost);
    // The loss is recorded at the place of the lost events.
    let seq_of = |position: usize| {
        position as u64
            + missing.iter().filter(|m| m.position as usize <= position).map(|m| m.lost.to - m.lost.from).sum::<u64>()
    };
    for (position, event) in track.trace.events.iter().enumerate() {
        let want = entry(seq_of(position), StackId(0));
        assert_eq!((event.action, event.address.0), (want.action, want.address), "event {position}");
    }
    for m in missing {
        let mut want = [0; Action::ALL.len()];
        (m.lost.from..m.lost.to).for_each(|i| want[entry(i, StackId(0)).action as usize] += 1);
        assert_eq!(m.lost.by_action, want);
    }
    assert_eq!(missing[1].lost.to, 9 + 3_000 + 3 + 300);
    Ok(())
}

#[test]
fn when_full_wait_loses_nothing() -> Result<()> {
    let folder = Folder::new("waits")?;
    let path = folder.join("waits.vramscope");
    let limits = RecorderLimits { queue_events: 32, ..RecorderLimits::default() };
    let recorder = Recorder::new(header(1)).when_full(WhenFull::Wait).limits(limits);
    let (mut sink, handle) = recorder.start(&path)?;
    (0..50_000).for_each(|i| sink.record(entry(i, StackId(0))));
    let stats = handle.finish(Vec::new());
    assert_eq!((stats.events, stats.lost), (50_000, 0));
    // After the end, the sink does not block.
    (0..1_000).for_each(|i| sink.record(entry(i, StackId(0))));
    assert_eq!(read(&path)?.snapshot.devices[0].events.len(), 50_000);
    Ok(())
}

#[test]
fn a_clock_that_is_set_back_does_not_change_the_order() -> Result<()> {
    let folder = Folder::new("clock")?;
    let path = folder.join("clock.vramscope");
    let clock = Arc::new(ManualClock::new(1_000_000));
    let (mut sink, handle) = Recorder::new(header(1)).clock(clock.clone()).start(&path)?;
    let times = [1_000_000, 1_000_500, 3, -7, i64::MAX, i64::MIN, 0];
    for (i, &time) in times.iter().enumerate() {
        clock.set(time);
        sink.record(entry(i as u64, StackId(0)));
    }
    handle.finish(Vec::new());
    let got = read(&path)?;
    assert_eq!(got.snapshot.devices[0].events.time_us.iter().collect::<Vec<_>>(), times);
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&fs::read(&path)?)?;
    let header = decoder.recording().header.clone().context("no header")?;
    assert_eq!((header.clock.as_str(), header.started_us), ("simulated", 1_000_000));
    Ok(())
}

#[test]
fn each_level_keeps_the_right_stacks() -> Result<()> {
    let folder = Folder::new("levels")?;
    for level in Capture::ALL {
        let path = folder.join(level.name());
        let (mut sink, handle) = Recorder::new(header(1)).capture(level).start(&path)?;
        let stack = handle.stacks().intern(&[("f", "m.py", 1)]);
        sink.record(entry(0, stack));
        handle.finish(Vec::new());
        let got = read(&path)?;
        let depth = got.snapshot.devices[0].events.get(0).map(|event| got.snapshot.symbols.stack(event.stack).len());
        assert_eq!(depth, Some(usize::from(level >= Capture::Alloc)), "{level:?}");
    }
    Ok(())
}

#[test]
fn two_recorders_never_write_to_one_file() -> Result<()> {
    let folder = Folder::new("both")?;
    let paths = [folder.join("a.vramscope"), folder.join("b.vramscope")];
    let both = [Recorder::new(header(1)).start(&paths[0])?, Recorder::new(header(1)).start(&paths[1])?];
    let third = Recorder::new(header(1)).start(&paths[0]).err().context("two recorders share a file")?;
    assert!(third.to_string().contains("another recorder is writing to it"), "{third}");
    std::thread::scope(|scope| {
        for (n, (mut sink, handle)) in both.into_iter().enumerate() {
            scope.spawn(move || {
                (0..1_000).for_each(|i| sink.record(entry(i + n as u64 * 3_000, StackId(0))));
                // Dropping the handle also ends the file.
                drop(handle);
            });
        }
    });
    for (n, path) in paths.iter().enumerate() {
        let got = read(path)?;
        assert!(!codes(&got).contains(&FindingCode::Truncated));
        let first = got.snapshot.devices[0].events.get(0).context("no event")?;
        assert_eq!((first.address.0, got.snapshot.devices[0].events.len()), (BASE + n as u64 * 512_000, 1_000));
    }
    Ok(())
}

/// A disk with room for a number of bytes.
struct SmallDisk {
    file: FileOutput,
    room: Arc<AtomicU64>,
}

impl Output for SmallDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = self.room.load(Ordering::SeqCst);
        if bytes.len() as u64 > room {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.room.store(room - bytes.len() as u64, Ordering::SeqCst);
        self.file.append(bytes)
    }
}

#[test]
fn a_full_disk_ends_the_file_but_not_the_program() -> Result<()> {
    let folder = Folder::new("full")?;
    let path = folder.join("full.vramscope");
    let output = SmallDisk { file: FileOutput::create(&path)?, room: Arc::new(AtomicU64::new(20_000)) };
    let recorder = Recorder::new(header(1)).when_full(WhenFull::Wait);
    let (mut sinks, handle) = recorder.start_to(Box::new(output), "test")?;
    let mut sink = sinks.pop().context("no sink")?;
    (0..500_000).for_each(|i| sink.record(entry(i, StackId(0))));
    let stats = handle.finish(Vec::new());
    assert_eq!(stats.events + stats.unwritten, 500_000);
    assert!(stats.events > 0 && stats.unwritten > 0 && stats.failure.is_some(), "{stats:?}");
    let got = read(&path)?;
    assert_eq!(codes(&got), [FindingCode::Truncated]);
    assert_eq!(got.snapshot.devices[0].events.len() as u64, stats.events);

    // If the file cannot be written at the start, starting is an error.
    for (path, word) in
        [(Path::new("/dev/full"), "the disk is full"), (&folder, "directory"), (&folder.join("none/a"), "No such file")]
    {
        if path != Path::new("/dev/full") || path.exists() {
            let error = Recorder::new(header(1)).start(path).err().context("no error")?.to_string();
            assert!(error.contains(word) && error.lines().count() == 1, "{error}");
        }
    }
    assert!(Recorder::new(header(0)).start(&path).is_err());
    Ok(())
}

/// The file for the test that is started as a separate program.
const CHILD: &str = "VRAMSCOPE_TEST_RECORDS_TO";

/// Not a test: the program that the test below kills. It records until then.
#[test]
fn a_program_that_records_until_it_is_killed() -> Result<()> {
    let Some(path) = std::env::var_os(CHILD) else { return Ok(()) };
    let (mut sink, handle) = Recorder::new(header(1)).start(Path::new(&path))?;
    let segment = TraceEntry { action: Action::SegmentAlloc, size: 1 << 40, ..entry(0, StackId(0)) };
    sink.record(segment);
    let start = Instant::now();
    for i in 0.. {
        let stack = handle.stacks().intern(&[("forward", "model.py", (i / 3 % 1_000) as u32)]);
        sink.record(entry(i, stack));
        if i % 100 == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
        ensure!(start.elapsed() < Duration::from_secs(60), "it was not killed");
    }
    Ok(())
}

#[test]
fn a_killed_program_leaves_a_readable_file() -> Result<()> {
    let folder = Folder::new("killed")?;
    for round in 0..3 {
        let path = folder.join(format!("{round}.vramscope"));
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--exact", "a_program_that_records_until_it_is_killed", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::null())
            .spawn()?;
        until("the file grows", || fs::metadata(&path).is_ok_and(|file| file.len() > 20_000 * (round + 1)));
        // SIGKILL: no handler of the program runs.
        child.kill()?;
        child.wait()?;
        let got = read(&path)?;
        assert_eq!(codes(&got), [FindingCode::Truncated], "{:?}", got.findings);
        let device = &got.snapshot.devices[0];
        assert!(device.events.len() > 1_000, "{} events", device.events.len());
        for (i, event) in device.events.iter().skip(1).enumerate() {
            assert_eq!(event.address.0, entry(i as u64, StackId(0)).address);
            assert_eq!(got.snapshot.symbols.stack(event.stack).len(), 1, "event {i}");
        }
        // The state at the end follows from the events.
        assert_eq!((device.segments.len(), device.segments[0].size), (1, 1 << 40));
        let live = device.segments[0].blocks.iter().filter(|block| block.state != BlockState::Inactive).count();
        assert_eq!(live, usize::from((device.events.len() - 1) % 3 != 0));
        let output = program::run(&["report", path.to_str().context("a path without a name")?])?;
        ensure!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("was not ended"));
    }
    Ok(())
}
