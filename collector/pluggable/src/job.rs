//! The one recording of this process.
//!
//! Events come in under PyTorch's lock of their device, so each device has one producer at a time, and finds its
//! queue's end free. Where it is not (the recording just ends, or two threads call for one device), the event is
//! counted as lost: nobody waits.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

use shared::allocator::TraceEntry;
use shared::event::Action;
use shared::limits::PublishLimits;
use shared::trace::Segment;
use shared::wire::Ask;
use vramscope::publish::{Destination, Publisher, PublisherHandle, PublisherStats};
use vramscope::recorder::{
    Capture, Clock, DeviceSegments, FileOutput, MonotonicClock, Output, Recorder, RecorderHandle, RecorderSink,
    RecorderStats, Stacks, Tee,
};

use crate::config::Config;

/// A device's end of the recording.
struct Lane {
    device: i64,
    /// Held for the length of one event. Gone when the recording has ended.
    sink: Mutex<Option<RecorderSink>>,
    /// Events that found the lane held.
    contended: [AtomicU64; Action::ALL.len()],
    is_contended: AtomicBool,
}

/// A recording.
pub struct Job {
    lanes: Vec<Lane>,
    stacks: Arc<Stacks>,
    clock: Arc<dyn Clock>,
    handle: Mutex<Option<RecorderHandle>>,
    ends: Mutex<Vec<DeviceSegments>>,
    session: String,
    asks: Mutex<Option<Receiver<Ask>>>,
    link: Mutex<Option<Link>>,
}

/// Where the recording goes beside a file.
#[derive(Default)]
struct Link {
    publisher: Option<PublisherHandle>,
    /// Why the file beside it is not whole.
    file_failure: Arc<OnceLock<String>>,
}

impl Link {
    /// Opens what the configuration names: the output, what it is called, and what is kept of it.
    fn open(config: &Config) -> Result<(Box<dyn Output>, String, Self), String> {
        let place = config.out.clone().or_else(|| config.to.clone()).unwrap_or_default();
        let file = match &config.out {
            Some(out) => {
                let failed = |error| format!("{out} can't be written: {error}. Name another file, or make room.");
                Some(FileOutput::create(Path::new(out)).map_err(failed)?)
            }
            None => None,
        };
        let Some(to) = &config.to else {
            let file = file.ok_or("nowhere to record to")?;
            return Ok((Box::new(file), place, Self::default()));
        };
        let destination = Destination::parse(to).map_err(|error| error.to_string())?;
        let destination = destination.token(config.token.clone()).mode(&config.mode);
        let (output, publisher) =
            Publisher::start(destination, PublishLimits::default()).map_err(|error| error.to_string())?;
        let publisher = Some(publisher);
        Ok(match file {
            Some(file) => {
                let (tee, file_failure) = Tee::new(file, output);
                (Box::new(tee), place, Self { publisher, file_failure })
            }
            None => (Box::new(output), place, Self { publisher, file_failure: Arc::default() }),
        })
    }
}

/// What a recording came to, or has come to so far.
#[derive(Clone, Debug, Default)]
pub struct JobStats {
    /// Of the recorder, when it has ended.
    pub recorder: Option<RecorderStats>,
    /// Of the publisher, where there is one.
    pub publisher: Option<PublisherStats>,
}

/// The recording, where there is one. Written when one starts and ends, else only read: readers never wait for each
/// other, and one that meets a writer counts its event as lost.
static JOB: RwLock<Option<Arc<Job>>> = RwLock::new(None);
/// What was reserved before the recording that is about to start.
static START: Mutex<Vec<DeviceSegments>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The recording, where there is one.
pub fn current() -> Option<Arc<Job>> {
    JOB.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs something quick with the recording, without waiting. `None` where there is none, or it just begins or ends.
#[inline]
pub fn with<T>(body: impl FnOnce(&Job) -> T) -> Option<T> {
    let job = match JOB.try_read() {
        Ok(job) => job,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    job.as_deref().map(body)
}

/// Keeps what a device has reserved before the next recording.
pub fn set_start(device: i64, segments: Vec<Segment>) {
    let mut start = locked(&START);
    start.retain(|known| known.device != device);
    start.push(DeviceSegments { device, segments });
}

/// Begins the recording of this process.
pub fn start(config: &Config) -> Result<(), String> {
    let mut job = JOB.write().unwrap_or_else(PoisonError::into_inner);
    if job.is_some() {
        return Err("this process is recorded already; end that recording first".to_owned());
    }
    *job = Some(Arc::new(Job::start(config)?));
    Ok(())
}

/// Ends the recording, and waits no longer than `timeout` for its last bytes. `None`: there was none, or time was out
/// (what is left is still written, as long as the process lives).
pub fn finish(timeout: Duration) -> Option<JobStats> {
    let job = JOB.write().unwrap_or_else(PoisonError::into_inner).take()?;
    job.finish(timeout)
}

impl Job {
    fn start(config: &Config) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let recorder = Recorder::new(config.header())
            .capture(if config.stacks { Capture::All } else { Capture::None })
            .clock(Arc::clone(&clock))
            .limits(config.limits())
            .start_state(std::mem::take(&mut *locked(&START)));
        let (output, place, link) = Link::open(config)?;
        let (sinks, handle) = recorder.start_to(output, &place).map_err(|error| error.to_string())?;
        let lane = |(device, sink): (i64, RecorderSink)| Lane {
            device,
            sink: Mutex::new(Some(sink)),
            contended: Default::default(),
            is_contended: Default::default(),
        };
        Ok(Self {
            lanes: config.devices.iter().map(|device| device.number).zip(sinks).map(lane).collect(),
            stacks: Arc::clone(handle.stacks()),
            clock,
            handle: Mutex::new(Some(handle)),
            ends: Mutex::default(),
            session: link.publisher.as_ref().map(|publisher| publisher.session().to_owned()).unwrap_or_default(),
            asks: Mutex::new(link.publisher.as_ref().and_then(PublisherHandle::asks)),
            link: Mutex::new(Some(link)),
        })
    }

    /// Where stacks get their numbers.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// The same, to be kept: the numbers stay those of this recording when it has ended.
    pub fn shared_stacks(&self) -> Arc<Stacks> {
        Arc::clone(&self.stacks)
    }

    /// The end of a device's queue, for the allocator that is the device's only source of events and has a lock of its
    /// own. `None` where it is not there (any more).
    pub fn take_sink(&self, device: i64) -> Option<RecorderSink> {
        locked(&self.lane(device)?.sink).take()
    }

    /// Now, in microseconds since the epoch, by the recording's clock.
    pub fn now_us(&self) -> i64 {
        self.clock.now_us()
    }

    /// The session's name at the server; empty without one.
    pub fn session(&self) -> &str {
        &self.session
    }

    #[inline]
    fn lane(&self, device: i64) -> Option<&Lane> {
        let at_its_place = usize::try_from(device).ok().and_then(|at| self.lanes.get(at));
        at_its_place
            .filter(|lane| lane.device == device)
            .or_else(|| self.lanes.iter().find(|lane| lane.device == device))
    }

    /// An event that happened at `time_us`, or now when that is 0. False where it was not taken.
    #[inline]
    pub fn event(&self, device: i64, entry: TraceEntry, time_us: i64) -> bool {
        let Some(lane) = self.lane(device) else { return false };
        let time_us = if time_us == 0 { self.clock.now_us() } else { time_us };
        let taken = lane.with(|sink| sink.record_at(entry, time_us));
        if taken.is_none() {
            lane.count_contended(entry.action, 1);
        }
        taken.is_some()
    }

    /// Events that were lost before they came here.
    pub fn lost(&self, device: i64, action: Action, count: u32) {
        let Some(lane) = self.lane(device) else { return };
        if lane.with(|sink| sink.lost(action, count)).is_none() {
            lane.count_contended(action, count);
        }
    }

    /// Runs something with the end of a device's queue; for several events in a row. `None` where it is held, or the
    /// recording has ended.
    pub fn with_sink<T>(&self, device: i64, body: impl FnOnce(&mut RecorderSink) -> T) -> Option<T> {
        self.lane(device)?.with(body)
    }

    /// What a device has reserved when the recording ends.
    pub fn set_end(&self, device: i64, segments: Vec<Segment>) {
        let mut ends = locked(&self.ends);
        ends.retain(|known| known.device != device);
        ends.push(DeviceSegments { device, segments });
    }

    /// Does something with the recorder; `None` when it has ended.
    pub fn with_handle<T>(&self, body: impl FnOnce(&RecorderHandle) -> T) -> Option<T> {
        locked(&self.handle).as_ref().map(body)
    }

    /// What has come so far.
    pub fn stats(&self) -> JobStats {
        let link = locked(&self.link);
        let publisher = link.as_ref().and_then(|link| link.publisher.as_ref()).map(PublisherHandle::stats);
        JobStats { recorder: None, publisher }
    }

    fn finish(&self, timeout: Duration) -> Option<JobStats> {
        for lane in &self.lanes {
            // What another thread is about to hand in is waited for: one event.
            let mut sink = locked(&lane.sink);
            if let Some(sink) = sink.as_mut() {
                lane.tell_contended(sink);
            }
            *sink = None;
        }
        let handle = locked(&self.handle).take()?;
        let link = locked(&self.link).take().unwrap_or_default();
        let ends = std::mem::take(&mut *locked(&self.ends));
        let started = Instant::now();
        let (done, ended) = mpsc::sync_channel(1);
        // A file system that hangs must not hang the end of the job.
        let ending = move || {
            let mut recorder = handle.finish(ends);
            let rest = timeout.saturating_sub(started.elapsed());
            let publisher = link.publisher.map(|publisher| publisher.finish(rest));
            recorder.failure = recorder.failure.take().or_else(|| link.file_failure.get().cloned());
            // Who waited too long is gone.
            let _ = done.send(JobStats { recorder: Some(recorder), publisher });
        };
        std::thread::Builder::new().name("vramscope-end".to_owned()).spawn(ending).ok()?;
        // The publisher takes a moment to notice that its time is over.
        ended.recv_timeout(timeout + Duration::from_secs(2)).ok()
    }

    /// What a page asked for since the last call.
    pub fn asked(&self) -> Option<Ask> {
        locked(&self.asks).as_ref()?.try_recv().ok()
    }

    /// Waits until the server has all that was handed in, at most so long; at once without a server.
    pub fn flush(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        if self.with_handle(|handle| handle.flush(timeout)) != Some(true) {
            return false;
        }
        let Some(sent) = self.stats().publisher.map(|publisher| publisher.batches) else { return true };
        loop {
            let Some(publisher) = self.stats().publisher else { return false };
            if publisher.batches_acked >= sent {
                return true;
            }
            // A server that is away is not waited for: it gets what is kept when it is back.
            if !publisher.is_connected || publisher.failure.is_some() || Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Lane {
    #[inline]
    fn with<T>(&self, body: impl FnOnce(&mut RecorderSink) -> T) -> Option<T> {
        let mut sink = match self.sink.try_lock() {
            Ok(sink) => sink,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let sink = sink.as_mut()?;
        if self.is_contended.load(Ordering::Relaxed) {
            self.tell_contended(sink);
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

    /// Makes a gap of what found the lane held.
    #[cold]
    fn tell_contended(&self, sink: &mut RecorderSink) {
        self.is_contended.store(false, Ordering::Relaxed);
        for (action, count) in Action::ALL.into_iter().zip(&self.contended) {
            let count = count.swap(0, Ordering::Relaxed);
            if count > 0 {
                sink.lost(action, u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
    }
}
