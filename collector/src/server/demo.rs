//! The demo: a built-in training job that publishes to this server.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use allocator::{AllocatorConfig, Driver, Profile};
use rustls::pki_types::CertificateDer;
use trace::limits::PublishLimits;

use crate::brief_lock::BriefLock;
use crate::workloads::{Choices, ClockedSim, Device, JobClock, Pacer, RecordingHeading, RecordingOutput};
use crate::workloads::{RunControl, Setup, StopSignal, Workload};
use recorder::publish::{Destination, Publisher, PublisherHandle};

/// The workload that runs.
const WORKLOAD: &str = "transformer";
/// Events per second: enough to watch, and little work.
const RATE: u64 = 2_000;
/// The length of the demo.
const LENGTH: Duration = Duration::from_secs(600);
/// The longest time until the demo is connected to the server.
const GREETING: Duration = Duration::from_secs(5);

/// Runs one demo at a time.
#[derive(Debug, Default)]
pub(crate) struct Demo {
    /// The last demo. It may have ended.
    running: BriefLock<Option<Running>>,
    /// Held while one is started.
    starting: Mutex<()>,
}

#[derive(Debug)]
struct Running {
    session: String,
    has_ended: Arc<AtomicBool>,
    stop: StopSignal,
}

/// The session of a demo.
#[derive(Debug)]
pub(crate) enum Started {
    /// The demo was started.
    New(String),
    /// A demo was already running.
    Running(String),
}

impl Demo {
    /// Starts the demo unless one is running. `certificate` is the server's own, if it has TLS. Waits for the server: call
    /// it on a thread that may wait.
    pub(crate) fn start(
        &self,
        server: SocketAddr,
        token: Option<String>,
        certificate: Option<CertificateDer<'static>>,
    ) -> Result<Started, String> {
        let _alone = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*self.running.lock()
            && !running.has_ended.load(Ordering::Relaxed)
        {
            return Ok(Started::Running(running.session.clone()));
        }
        let (has_ended, stop) = (Arc::new(AtomicBool::new(false)), StopSignal::default());
        let scheme = if certificate.is_some() { "https" } else { "http" };
        let destination = Destination::parse(&format!("{scheme}://{server}")).map_err(|error| error.to_string())?;
        let destination = match certificate {
            // It need not name the address at which the server reaches itself.
            Some(certificate) => destination.certificate(certificate),
            None => destination,
        };
        // Before its session is known to the server, so that a stop need not wait for that.
        let register = |session: &str| {
            let (session, has_ended, stop) = (session.to_owned(), Arc::clone(&has_ended), stop.clone());
            *self.running.lock() = Some(Running { session, has_ended, stop });
        };
        begin(destination.token(token).mode("simulated"), (&has_ended, &stop), register).map(Started::New)
    }

    /// Stops the demo.
    pub(crate) fn stop(&self) {
        if let Some(running) = &*self.running.lock() {
            running.stop.set();
        }
    }
}

/// Sets a flag when its thread ends, even by a panic.
struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Starts the thread of the job, and names its session to `register`. Returns the session when the server knows it.
fn begin(
    destination: Destination,
    (has_ended, stop): (&Arc<AtomicBool>, &StopSignal),
    register: impl FnOnce(&str),
) -> Result<String, String> {
    let workload = Workload::named(WORKLOAD).ok_or("the built-in job is missing")?;
    let choices = Choices::read(workload.params, &[]).map_err(|error| error.to_string())?;
    let (output, handle) =
        Publisher::start(destination, PublishLimits::default()).map_err(|error| error.to_string())?;
    let session = handle.session().to_owned();
    let profile = Profile::ALL.last().copied().ok_or("no release of PyTorch is known")?;
    let setup = Setup { capacity: workload.capacity, seed: 1, profile, config: AllocatorConfig::default() };
    let handle = Arc::new(handle);
    let watched = Arc::clone(&handle);
    let (ended, job_stop) = (Ended(Arc::clone(has_ended)), stop.clone());
    let run = move || {
        let _ended = ended;
        let device = ClockedSim::new(setup.capacity);
        let heading = RecordingHeading {
            name: "demo",
            job: String::new(),
            host: "this server".to_owned(),
            device: (device.model(), device.total_memory()),
            allocator: (&setup.config, setup.profile),
        };
        // The recording is only published, so a failure shows in the session and nowhere else.
        let clock = JobClock::machine();
        if let Ok(recording) = RecordingOutput::start(Box::new(output), "the demo", heading, &clock) {
            let (begun, enough) = (Instant::now(), job_stop.clone());
            let watch = Box::new(move |_: &str, _: usize| {
                if begun.elapsed() > LENGTH {
                    enough.set();
                }
            });
            let control = RunControl {
                watch: Some(watch),
                memory_watch: None,
                pacer: Some(Pacer::new(RATE)),
                stop: job_stop,
                clock,
                recording: Some(recording),
            };
            let _ = crate::workloads::run(workload, &choices, u64::MAX, &setup, device, control);
        }
        finish(handle);
    };
    let spawned = std::thread::Builder::new().name("vramscope-demo".to_owned()).spawn(run);
    spawned.map_err(|error| format!("its thread could not be started: {error}"))?;
    register(&session);
    if watched.wait_connected(GREETING) {
        return Ok(session);
    }
    stop.set();
    Err("it could not connect to this server".to_owned())
}

/// Waits until every event has arrived.
fn finish(handle: Arc<PublisherHandle>) {
    if let Some(handle) = Arc::into_inner(handle) {
        handle.finish(GREETING);
    }
}
