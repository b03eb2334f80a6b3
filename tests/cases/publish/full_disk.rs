//! Disks that are full while a job is recorded: nothing that was written is lost, what is missing is counted, the job never
//! waits, and it goes on by itself once there is room.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use allocator::TraceSink;
use anyhow::{Context, Result, ensure};
use format::recording::Decoder;
use query::finding::FindingCode;
use recorder::{FileOutput, Recorder, RecorderHandle, RecorderSink, RecorderStats, WhenFull};
use tests::{Folder, program};
use trace::Stage;
use trace::limits::{ImportLimits, PublishLimits, RecorderLimits};

use super::scripted::Scripted;
use super::session::{LONG, Session, check, entry, header, limits};

/// Files for which another disk has room.
const FILES: u32 = 9;

/// What a call of the job may take at most, on a busy machine.
const SOON: Duration = Duration::from_millis(500);

/// Returns a small disk, or says that the test is skipped.
fn disk(name: &str, mib: u32) -> Result<Option<Folder>> {
    let disk = Folder::disk(name, mib)?;
    if disk.is_none() {
        eprintln!("skipped: mounting a small disk needs rights that this user has not");
    }
    Ok(disk)
}

/// Takes all space of a small disk.
fn fill(disk: &Folder) -> Result<()> {
    let mut ballast = fs::File::create(disk.join("ballast"))?;
    let mut piece = 1 << 20;
    while piece > 0 {
        while std::io::Write::write_all(&mut ballast, &vec![1; piece]).is_ok() {}
        piece /= 2;
    }
    Ok(())
}

fn make_room(disk: &Folder) -> Result<()> {
    Ok(fs::remove_file(disk.join("ballast"))?)
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A recording to a file alone.
struct File {
    sink: RecorderSink,
    handle: RecorderHandle,
    next: u64,
}

impl File {
    fn start(output: FileOutput) -> Result<Self> {
        let flush = RecorderLimits { flush_millis: 2, ..RecorderLimits::default() };
        let (mut sinks, handle) = Recorder::new(header()).limits(flush).start_to(Box::new(output), "test")?;
        Ok(Self { sink: sinks.pop().context("no sink")?, handle, next: 0 })
    }

    fn record(&mut self, count: u64) {
        let begun = Instant::now();
        (self.next..self.next + count).for_each(|i| self.sink.record(entry(i)));
        self.next += count;
        self.handle.mark(0, "mark", Stage::Instant);
        assert!(begun.elapsed() < SOON, "the job waited {:?}", begun.elapsed());
        assert!(self.handle.flush(LONG));
    }

    fn finish(self) -> (u64, RecorderStats) {
        (self.next, self.handle.finish(Vec::new()))
    }
}

/// Checks that a recording holds events of the endless program, with gaps of `missing` events in all. Returns the codes of the
/// findings.
fn check_with_gaps(file: &Path, total: u64, missing: u64) -> Result<Vec<FindingCode>> {
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&fs::read(file)?)?;
    let track = decoder.recording().devices.get(0).context("no device")?;
    let gaps: Vec<_> = track.lost.iter().map(|of| (of.position as usize, of.lost.to - of.lost.from)).collect();
    assert_eq!(gaps.iter().map(|(_, count)| count).sum::<u64>(), missing, "{gaps:?}");
    for (position, event) in track.trace.events.iter().enumerate() {
        let before: u64 = gaps.iter().filter(|(at, _)| *at <= position).map(|(_, count)| count).sum();
        let want = entry(position as u64 + before);
        assert_eq!((event.action, event.address.0, event.size), (want.action, want.address, want.size), "{position}");
    }
    assert_eq!(track.trace.events.len() as u64 + missing, total);
    Ok(decoder.finish()?.1.into_iter().map(|finding| finding.code).collect())
}

#[test]
fn a_file_goes_on_once_its_disk_has_room_again() -> Result<()> {
    let Some(disk) = disk("file", 1)? else { return Ok(()) };
    let path = disk.join("a.vramscope");
    let output = FileOutput::create(&path)?;
    let condition = output.condition();
    let mut file = File::start(output)?;
    file.record(1_000);
    fill(&disk)?;
    let whole = fs::read(&path)?;
    until("the full disk", || {
        file.record(2_000);
        condition.full().is_some()
    });
    assert_eq!(condition.full().as_deref(), Some("the disk is full"));
    for _ in 0..20 {
        file.record(1_000);
    }
    // What was written stays, and ends with a whole chunk.
    ensure!(fs::read(&path)?.starts_with(&whole));
    make_room(&disk)?;
    until("room", || {
        file.record(10);
        condition.full().is_none()
    });
    file.record(1_000);
    let (total, stats) = file.finish();
    assert_eq!((stats.events + stats.lost, stats.unwritten, &stats.failure), (total, 0, &None), "{stats:?}");
    ensure!(stats.lost >= 10_000, "{stats:?}");
    assert_eq!(check_with_gaps(&path, total, stats.lost)?, [FindingCode::EventsLost]);
    let gap = condition.gap(stats.lost).context("no sentence")?;
    ensure!(gap.contains("its disk was full for a time") && condition.failure().is_none(), "{gap}");
    Ok(())
}

#[test]
fn a_file_whose_disk_stays_full_counts_what_is_missing() -> Result<()> {
    let Some(disk) = disk("stays", 1)? else { return Ok(()) };
    let path = disk.join("a.vramscope");
    let output = FileOutput::create(&path)?;
    let condition = output.condition();
    let mut file = File::start(output)?;
    file.record(1_000);
    fill(&disk)?;
    until("the full disk", || {
        file.record(2_000);
        condition.full().is_some()
    });
    file.record(5_000);
    let (total, stats) = file.finish();
    assert_eq!(stats.events + stats.unwritten + stats.lost, total, "{stats:?}");
    assert_eq!(
        (stats.failure.as_deref(), condition.failure().as_deref()),
        (Some("the disk is full"), Some("the disk is full"))
    );
    assert_eq!(fs::metadata(&path)?.len(), stats.bytes);
    assert_eq!(check_with_gaps(&path, stats.events, 0)?, [FindingCode::Truncated]);
    Ok(())
}

#[test]
fn a_file_that_can_not_even_begin_leaves_nothing() -> Result<()> {
    let Some(disk) = disk("begins", 1)? else { return Ok(()) };
    fill(&disk)?;
    let path = disk.join("a.vramscope");
    let error = Recorder::new(header()).start(&path).err().context("no error")?.to_string();
    ensure!(error.contains("a.vramscope: the disk is full.") && !path.exists(), "{error}");
    // Without room for another file.
    let Some(disk) = Folder::disk_for_files("inodes", 1)? else { return Ok(()) };
    fs::write(disk.join("one"), "")?;
    let error = FileOutput::create(&disk.join("b.vramscope")).err().context("no error")?;
    assert_eq!(error.to_string(), "the disk has no room for another file");
    Ok(())
}

#[test]
fn a_server_gets_everything_while_the_disk_of_the_file_beside_it_is_full() -> Result<()> {
    let Some(disk) = disk("beside", 16)? else { return Ok(()) };
    let (path, spool) = (disk.join("beside.vramscope"), Folder::new("spool")?);
    let server = Scripted::start([])?;
    let mut session = Session::start_in(&server.url(), &path, &spool, limits(), WhenFull::Wait)?;
    session.record(1_000);
    session.until("the first events", |stats| stats.events_acked == 1_000);
    fill(&disk)?;
    // More than waits in memory.
    until("what has no room", || {
        session.record(100_000);
        session.condition.gap(0).is_some()
    });
    let sent = session.next;
    session.until("all events", |stats| stats.events_acked == sent);
    make_room(&disk)?;
    until("room", || {
        session.record(1);
        session.condition.full().is_none()
    });
    session.record(1_000);
    let (total, condition) = (session.next, session.condition.clone());
    let (recorded, published) = session.finish(LONG);
    assert_eq!((recorded.events, recorded.lost, published.undelivered()), (total, 0, 0), "{published:?}");
    let whole = server.file();
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(&whole)?;
    assert_eq!(decoder.recording().devices.get(0).context("no device")?.trace.events.len() as u64, total);
    // The file says where events are missing.
    let gap = condition.gap(0).context("no sentence")?;
    let missing: u64 = gap.chars().filter(char::is_ascii_digit).collect::<String>().parse()?;
    ensure!(missing > 0, "{gap}");
    assert_eq!(check_with_gaps(&path, total, missing)?, [FindingCode::EventsLost]);
    let report = program::run(&["report", path.to_str().context("a path")?])?;
    ensure!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    Ok(())
}

#[test]
fn what_waits_for_a_server_uses_its_disk_again_once_that_has_room() -> Result<()> {
    for is_small in [true, false] {
        let made = if is_small { Folder::disk("waits", 1)? } else { Folder::disk_for_files("waits", FILES)? };
        let Some(disk) = made else { return Ok(()) };
        let folder = Folder::new("waits-file")?;
        let file = folder.join("beside.vramscope");
        let limits = PublishLimits { memory_bytes: 20_000, spool_file_bytes: 10_000, ..limits() };
        let server = Scripted::start([])?;
        let url = server.url();
        let mut session = Session::start_in(&url, &file, &disk, limits, WhenFull::Count)?;
        session.record(300);
        session.until("the first events", |stats| stats.events_acked == 300);
        let (address, store) = server.go_away();
        if is_small {
            fill(&disk)?;
        } else {
            (0..FILES).try_for_each(|i| fs::write(disk.join(i.to_string()), ""))?;
        }
        let begun = Instant::now();
        let full = loop {
            session.record(600);
            let stats = session.publisher.stats();
            if let Some(why) = stats.spool_failure {
                break why;
            }
            ensure!(begun.elapsed() < LONG, "{stats:?}");
            std::thread::sleep(Duration::from_millis(2));
        };
        let why = if is_small { "the disk is full" } else { "the disk has no room for another file" };
        assert_eq!(full, format!("events can't be kept in {}: {why}", disk.display()));
        // Events are lost now, and the job doesn't wait.
        let since = Instant::now();
        session.record(20_000);
        ensure!(since.elapsed() < SOON, "the job waited {:?}", since.elapsed());
        if is_small {
            make_room(&disk)?;
        } else {
            (0..FILES).try_for_each(|i| fs::remove_file(disk.join(i.to_string())))?;
        }
        let begun = Instant::now();
        while session.publisher.stats().spool_bytes < 30_000 {
            session.record(600);
            ensure!(begun.elapsed() < LONG, "{:?}", session.publisher.stats());
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(session.publisher.stats().spool_failure, None);
        let server = Scripted::start_at(address, store)?;
        session.record(900);
        let total = session.next;
        let (recorded, published) = session.finish(LONG);
        assert_eq!((recorded.events + recorded.lost, published.undelivered()), (total, 0), "{published:?}");
        ensure!(recorded.lost > 0, "{recorded:?}");
        ensure!(server.file() == fs::read(&file)?, "the server has other bytes than the file");
        check_with_gaps(&file, total, recorded.lost)?;
    }
    Ok(())
}

#[test]
fn a_run_says_that_the_disk_of_its_file_is_full_and_what_is_missing() -> Result<()> {
    let Some(disk) = disk("run", 1)? else { return Ok(()) };
    let path = disk.join("a.vramscope");
    let name = path.to_str().context("a path")?;
    fs::write(disk.join("ballast"), vec![1; 1_000_000])?;
    let begun = Instant::now();
    let output = program::run(&["run", "transformer", "--steps", "60", "--out", name])?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    ensure!(begun.elapsed() < Duration::from_secs(50), "the run waited for room: {:?}", begun.elapsed());
    let last = errors.lines().last().unwrap_or_default();
    ensure!(last.starts_with(&format!("error: {name}: writing failed: the disk is full.")), "{errors}");
    ensure!(last.contains("The file can be read up to there;") && last.ends_with("could not be written."), "{errors}");
    let report = program::run(&["report", name])?;
    ensure!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    Ok(())
}

#[test]
fn everything_arrives_where_there_is_room() -> Result<()> {
    // The test of the test: the same without a full disk.
    let Some(disk) = disk("room", 1)? else { return Ok(()) };
    let (path, spool) = (disk.join("beside.vramscope"), Folder::new("spool")?);
    let server = Scripted::start([])?;
    let mut session = Session::start_in(&server.url(), &path, &spool, limits(), WhenFull::Wait)?;
    session.record(5_000);
    let condition = session.condition.clone();
    session.finish(LONG);
    assert_eq!((condition.full(), condition.gap(0), condition.failure()), (None, None, None));
    check(&server, &path, 5_000)
}
