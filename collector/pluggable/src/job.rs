//! The one recording of this process.
//!
//! Events arrive under PyTorch's lock of their device, so each device has one producer at a time and its sink is free.
//! If the sink is in use (the recording is ending, or two threads record for one device), the event is counted as lost
//! instead of waiting.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

use allocator::TraceEntry;
use recorder::disk;
use recorder::publish::{Destination, Publisher, PublisherHandle, PublisherStats};
use recorder::{
    Capture, Clock, DeviceSegments, DualOutput, FileCondition, FileOutput, Output, Recorder, RecorderHandle,
    RecorderSink, RecorderStats, Stacks,
};
use trace::Segment;
use trace::event::Action;
use trace::frames::StrId;
use trace::limits::PublishLimits;
use wire::Ask;

use crate::clock::CountingClock;
use crate::config::Config;

/// The sink of one device, which several threads may call.
struct DeviceSink {
    device: i64,
    /// Locked for the length of one event. `None` once the recording has ended.
    sink: Mutex<Option<RecorderSink>>,
    /// Events that arrived while the sink was locked, by action.
    contended: [AtomicU64; Action::ALL.len()],
    is_contended: AtomicBool,
}

/// The recording of a job.
pub struct Job {
    sinks: Vec<DeviceSink>,
    stacks: Arc<Stacks>,
    clock: Arc<dyn Clock>,
    handle: Mutex<Option<RecorderHandle>>,
    ends: Mutex<Vec<DeviceSegments>>,
    session: String,
    asks: Mutex<Option<Receiver<Ask>>>,
    delivery: Mutex<Option<Delivery>>,
}

/// The handles of the recording's outputs.
#[derive(Default)]
struct Delivery {
    publisher: Option<PublisherHandle>,
    /// The path of the file, and its condition.
    file: Option<(String, FileCondition)>,
}

impl Delivery {
    /// Opens the outputs that the configuration names. Returns the output, its name for errors, and its handles.
    fn open(config: &Config) -> Result<(Box<dyn Output>, String, Self), String> {
        let place = config.out.clone().or_else(|| config.to.clone()).unwrap_or_default();
        let file = match &config.out {
            Some(out) => {
                let failed = |error: io::Error| {
                    format!("Cannot write {out}: {}. Choose another file, or free some disk space.", disk::why(&error))
                };
                Some(FileOutput::create(Path::new(out)).map_err(failed)?)
            }
            None => None,
        };
        let condition = config.out.clone().zip(file.as_ref().map(FileOutput::condition));
        let Some(to) = &config.to else {
            let file = file.ok_or("neither a file nor a server to record to")?;
            return Ok((Box::new(file), place, Self { publisher: None, file: condition }));
        };
        let destination = Destination::parse(to).map_err(|error| error.to_string())?;
        let destination = destination.token(config.token.clone()).ca_file(config.ca_file.clone()).mode(&config.mode);
        let (output, publisher) =
            Publisher::start(destination, PublishLimits::default()).map_err(|error| error.to_string())?;
        let delivery = Self { publisher: Some(publisher), file: condition };
        Ok(match file {
            Some(file) => (Box::new(DualOutput::new(file, output)), place, delivery),
            None => (Box::new(output), place, delivery),
        })
    }

    /// Returns why a disk accepts nothing now, if one doesn't: the disk of the file, or that of the publisher's spool.
    fn full_disk(&self) -> Option<String> {
        let file = self.file.as_ref().and_then(|(path, file)| file.full().map(|why| format!("{path}: {why}")));
        file.or_else(|| self.publisher.as_ref()?.stats().spool_failure)
    }

    /// Returns why the file is not complete, if it is not; `recorder` has the statistics of the recording.
    fn incomplete(&self, recorder: &RecorderStats) -> Option<String> {
        let (path, file) = self.file.as_ref()?;
        // With a server as well, the recorder's losses and failures are not the file's alone.
        let is_alone = self.publisher.is_none();
        let failure = recorder.failure.clone().filter(|_| is_alone).or_else(|| file.failure());
        let why = failure.or_else(|| file.gap(if is_alone { recorder.lost } else { 0 }))?;
        Some(format!("{path}: {why}"))
    }
}

/// The statistics of a recording, final or so far.
#[derive(Clone, Debug, Default)]
pub struct JobStats {
    /// Of the recorder, once it has ended.
    pub recorder: Option<RecorderStats>,
    /// Of the publisher, if there is one.
    pub publisher: Option<PublisherStats>,
    /// Why a disk accepts nothing now, if one doesn't.
    pub full_disk: Option<String>,
}

/// The present recording. Written only when one starts or ends: readers never wait for each other, and a reader that
/// meets a writer counts its event as lost.
static JOB: RwLock<Option<Arc<Job>>> = RwLock::new(None);
/// The segments that exist before the next recording.
static START: Mutex<Vec<DeviceSegments>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the present recording.
pub fn current() -> Option<Arc<Job>> {
    JOB.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Calls `body` with the recording, without waiting. Returns `None` if there is none, or if it is starting or ending.
/// `body` must be quick.
#[inline]
pub fn with<T>(body: impl FnOnce(&Job) -> T) -> Option<T> {
    let job = match JOB.try_read() {
        Ok(job) => job,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    job.as_deref().map(body)
}

/// Sets a device's segments at the start of the next recording.
pub fn set_start(device: i64, segments: Vec<Segment>) {
    let mut start = locked(&START);
    start.retain(|known| known.device != device);
    start.push(DeviceSegments { device, segments });
}

/// Starts the recording of this process.
pub fn start(config: &Config) -> Result<(), String> {
    let mut job = JOB.write().unwrap_or_else(PoisonError::into_inner);
    if job.is_some() {
        return Err("This process is already being recorded. End that recording first.".to_owned());
    }
    *job = Some(Arc::new(Job::start(config)?));
    Ok(())
}

/// Ends the recording and waits at most `timeout` for its last bytes. Returns `None` if there was no recording, or if the
/// time was over; the rest is still written as long as the process lives.
pub fn finish(timeout: Duration) -> Option<JobStats> {
    let job = JOB.write().unwrap_or_else(PoisonError::into_inner).take()?;
    job.finish(timeout)
}

impl Job {
    fn start(config: &Config) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(CountingClock::new());
        let recorder = Recorder::new(config.header())
            .capture(if config.stacks { Capture::All } else { Capture::None })
            .clock(Arc::clone(&clock))
            .limits(config.limits())
            .leave_unused_out()
            .start_state(std::mem::take(&mut *locked(&START)));
        let (output, place, delivery) = Delivery::open(config)?;
        let (sinks, handle) = recorder.start_to(output, &place).map_err(|error| error.to_string())?;
        let sink = |(device, sink): (i64, RecorderSink)| DeviceSink {
            device,
            sink: Mutex::new(Some(sink)),
            contended: Default::default(),
            is_contended: Default::default(),
        };
        Ok(Self {
            sinks: config.devices.iter().map(|device| device.number).zip(sinks).map(sink).collect(),
            stacks: Arc::clone(handle.stacks()),
            clock,
            handle: Mutex::new(Some(handle)),
            ends: Mutex::default(),
            session: delivery.publisher.as_ref().map(|publisher| publisher.session().to_owned()).unwrap_or_default(),
            asks: Mutex::new(delivery.publisher.as_ref().and_then(PublisherHandle::asks)),
            delivery: Mutex::new(Some(delivery)),
        })
    }

    /// Returns the table that numbers stacks.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Returns the table that numbers stacks, to be kept after the recording has ended.
    pub fn shared_stacks(&self) -> Arc<Stacks> {
        Arc::clone(&self.stacks)
    }

    /// Removes and returns a device's sink, for an allocator that is the device's only source of events and has its own
    /// lock. Returns `None` if the sink was removed before or the recording has ended.
    pub fn take_sink(&self, device: i64) -> Option<RecorderSink> {
        locked(&self.sink(device)?.sink).take()
    }

    /// Returns the time of the recording's clock, in microseconds since the epoch.
    pub fn now_us(&self) -> i64 {
        self.clock.now_us()
    }

    /// Returns the session's name at the server; empty without a server.
    pub fn session(&self) -> &str {
        &self.session
    }

    #[inline]
    fn sink(&self, device: i64) -> Option<&DeviceSink> {
        // Usually device N is the Nth of the recording.
        let by_index = usize::try_from(device).ok().and_then(|index| self.sinks.get(index));
        by_index.filter(|sink| sink.device == device).or_else(|| self.sinks.iter().find(|sink| sink.device == device))
    }

    /// Records an event that happened at `time_us`, or now if that is 0. Returns false if it was not recorded.
    #[inline]
    pub fn event(&self, device: i64, entry: TraceEntry, time_us: i64) -> bool {
        let Some(device_sink) = self.sink(device) else { return false };
        let time_us = if time_us == 0 { self.clock.now_us() } else { time_us };
        let recorded = device_sink.with(|sink| sink.record_at(entry, time_us));
        if recorded.is_none() {
            device_sink.count_contended(entry.action, 1);
        }
        recorded.is_some()
    }

    /// Records that events were lost before they arrived here.
    pub fn lost(&self, device: i64, action: Action, count: u32) {
        let Some(device_sink) = self.sink(device) else { return };
        if device_sink.with(|sink| sink.lost(action, count)).is_none() {
            device_sink.count_contended(action, count);
        }
    }

    /// Sets the text that the job attaches to a device's later events. Returns false if it was not set.
    pub fn set_metadata(&self, device: i64, text: StrId) -> bool {
        self.sink(device).is_some_and(|sink| sink.with(|sink| sink.set_metadata(text)).is_some())
    }

    /// Calls `body` with a device's sink, to record several events in a row. Returns `None` if the sink is in use or the
    /// recording has ended.
    pub fn with_sink<T>(&self, device: i64, body: impl FnOnce(&mut RecorderSink) -> T) -> Option<T> {
        self.sink(device)?.with(body)
    }

    /// Sets a device's segments at the end of the recording.
    pub fn set_end(&self, device: i64, segments: Vec<Segment>) {
        let mut ends = locked(&self.ends);
        ends.retain(|known| known.device != device);
        ends.push(DeviceSegments { device, segments });
    }

    /// Calls `body` with the recorder's handle. Returns `None` if the recording has ended.
    pub fn with_handle<T>(&self, body: impl FnOnce(&RecorderHandle) -> T) -> Option<T> {
        locked(&self.handle).as_ref().map(body)
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> JobStats {
        let delivery = locked(&self.delivery);
        let publisher = delivery.as_ref().and_then(|delivery| delivery.publisher.as_ref()).map(PublisherHandle::stats);
        JobStats { recorder: None, publisher, full_disk: delivery.as_ref().and_then(Delivery::full_disk) }
    }

    fn finish(&self, timeout: Duration) -> Option<JobStats> {
        for device_sink in &self.sinks {
            // Waits for at most the one event that another thread is recording.
            let mut sink = locked(&device_sink.sink);
            if let Some(sink) = sink.as_mut() {
                device_sink.record_contended(sink);
            }
            *sink = None;
        }
        let handle = locked(&self.handle).take()?;
        let delivery = locked(&self.delivery).take().unwrap_or_default();
        let ends = std::mem::take(&mut *locked(&self.ends));
        let started = Instant::now();
        let (done, result) = mpsc::sync_channel(1);
        // In a thread, because a file system that hangs must not keep the job from ending.
        let ending = move || {
            let mut recorder = handle.finish(ends);
            let rest = timeout.saturating_sub(started.elapsed());
            recorder.failure = delivery.incomplete(&recorder).or(recorder.failure);
            let publisher = delivery.publisher.map(|publisher| publisher.finish(rest));
            // The caller may have timed out.
            let _ = done.send(JobStats { recorder: Some(recorder), publisher, full_disk: None });
        };
        std::thread::Builder::new().name("vramscope-end".to_owned()).spawn(ending).ok()?;
        // The publisher takes a moment to notice that its time is over.
        result.recv_timeout(timeout + Duration::from_secs(2)).ok()
    }

    /// Returns the next request of a viewer, if there is one.
    pub fn asked(&self) -> Option<Ask> {
        locked(&self.asks).as_ref()?.try_recv().ok()
    }

    /// Writes everything recorded so far, and waits at most `timeout` until the server has it, if there is one; for a server
    /// that is away, only until one more attempt to reach it has failed. Returns whether that succeeded.
    pub fn flush(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        if self.with_handle(|handle| handle.flush(timeout)) != Some(true) {
            return false;
        }
        let receipt = match locked(&self.delivery).as_ref() {
            Some(Delivery { publisher: Some(publisher), .. }) => publisher.receipt(),
            // What waits for room on the disk is not written.
            Some(delivery) => return delivery.full_disk().is_none(),
            None => return false,
        };
        // Without the lock: others read statistics meanwhile.
        receipt.wait(end.saturating_duration_since(Instant::now()))
    }
}

impl DeviceSink {
    #[inline]
    fn with<T>(&self, body: impl FnOnce(&mut RecorderSink) -> T) -> Option<T> {
        let mut sink = match self.sink.try_lock() {
            Ok(sink) => sink,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let sink = sink.as_mut()?;
        if self.is_contended.load(Ordering::Relaxed) {
            self.record_contended(sink);
        }
        Some(body(sink))
    }

    #[cold]
    fn count_contended(&self, action: Action, count: u32) {
        if let Some(sum) = self.contended.get(action as usize) {
            sum.fetch_add(count.into(), Ordering::Relaxed);
        }
        self.is_contended.store(true, Ordering::Relaxed);
    }

    /// Records the events that arrived while the sink was locked as lost.
    #[cold]
    fn record_contended(&self, sink: &mut RecorderSink) {
        self.is_contended.store(false, Ordering::Relaxed);
        for (action, count) in Action::ALL.into_iter().zip(&self.contended) {
            let count = count.swap(0, Ordering::Relaxed);
            if count > 0 {
                sink.lost(action, u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
    }
}
