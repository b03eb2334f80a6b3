//! `--to`: a run that is published while it goes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use shared::limits::PublishLimits;
use shared::units::Count;

use super::one_line;
use crate::publish::{Destination, Publisher, PublisherHandle, PublisherOutput, PublisherStats};
use crate::recorder::RecorderStats;
use crate::server::stop_signal;
use crate::workloads::{Pacer, StopSignal};

/// Where the server's token is looked for when no file is named.
const TOKEN_VARIABLE: &str = "VRAMSCOPE_TOKEN";
/// How long the beginning waits to tell whether the server is there.
const GREETING: Duration = Duration::from_secs(2);
/// The exit code of a program that Ctrl-C ended at once.
const INTERRUPTED: i32 = 130;

/// What is told of publishing.
#[derive(Args, Debug)]
pub(super) struct To {
    /// Publish the run while it goes: to the server at http://HOST:PORT
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Events a second of wall time; 0 is as fast as can be
    #[arg(long, value_name = "N", default_value_t = 5_000, requires = "to")]
    rate: u64,
    /// The file with the server's token; otherwise VRAMSCOPE_TOKEN is used
    #[arg(long, value_name = "FILE", requires = "to")]
    token_file: Option<PathBuf>,
}

/// A session that is being published.
pub(super) struct Live {
    destination: Destination,
    pub(super) handle: Arc<PublisherHandle>,
    rate: u64,
    stop: StopSignal,
    limits: PublishLimits,
}

/// What of a session has arrived.
#[derive(Serialize)]
pub(super) struct Delivery {
    session: String,
    #[serde(rename = "events_sent")]
    sent: u64,
    #[serde(rename = "events_lost")]
    lost: u64,
    /// Whether the server has everything, the end included.
    #[serde(skip)]
    pub(super) is_whole: bool,
}

impl To {
    /// Whether the run is to be published.
    pub(super) fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Begins a session, when one is wanted. `mode` tells people how its events are had.
    pub(super) fn start(&self, mode: &str) -> Result<Option<(PublisherOutput, Live)>, String> {
        let Some(url) = &self.to else { return Ok(None) };
        let destination = Destination::parse(url).map_err(|error| format!("--to: {error}"))?;
        let token = match &self.token_file {
            Some(path) => {
                let text = fs::read_to_string(path);
                Some(text.map_err(|error| format!("{}: the token can't be read: {error}.", path.display()))?)
            }
            None => std::env::var(TOKEN_VARIABLE).ok(),
        };
        let destination = destination.token(token).mode(mode);
        let limits = PublishLimits::default();
        let (output, handle) = Publisher::start(destination.clone(), limits).map_err(|error| error.to_string())?;
        let stop = StopSignal::default();
        on_interrupt(stop.clone());
        Ok(Some((output, Live { destination, handle: Arc::new(handle), rate: self.rate, stop, limits })))
    }
}

impl Live {
    /// Returns a pacer for the rate that was asked for.
    pub(super) fn pacer(&self) -> Pacer {
        Pacer::new(self.rate)
    }

    /// Returns the signal that Ctrl-C sets.
    pub(super) fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Says where it can be watched, or that the server is not there. Whether it can be watched: the address of a page
    /// that nobody serves is of no use.
    pub(super) fn greet(&self) -> bool {
        let is_connected = self.handle.wait_connected(GREETING);
        if is_connected {
            eprintln!("{}", self.invitation());
        } else if self.handle.failure().is_none() {
            let trouble = self.handle.stats().trouble;
            let trouble = trouble.unwrap_or_else(|| format!("{}: no answer yet", self.destination.address()));
            eprintln!("The server is not there ({}); what is recorded waits for it.", one_line(&trouble));
        }
        is_connected
    }

    /// Where it can be watched.
    pub(super) fn invitation(&self) -> String {
        format!("Watch it at {} (Ctrl-C ends it)", self.destination.page(self.handle.session()))
    }

    /// Ends the session when the recorder has ended, and says what has arrived.
    pub(super) fn finish(self, recorded: Option<&RecorderStats>) -> Delivery {
        let session = self.handle.session().to_owned();
        let time = Duration::from_millis(self.limits.finish_millis);
        // Nobody else has it any more: who watched the run has gone with it.
        let stats = Arc::into_inner(self.handle).map(|handle| handle.finish(time)).unwrap_or_default();
        let dropped = recorded.map_or(0, |stats| stats.lost + stats.unwritten);
        let delivery = Delivery {
            session,
            sent: stats.events_acked,
            lost: dropped + stats.undelivered(),
            is_whole: dropped == 0 && stats.is_ended && stats.undelivered() == 0,
        };
        delivery.tell(&stats, &self.destination);
        delivery
    }
}

impl Delivery {
    /// What arrived and what did not, for people.
    fn tell(&self, stats: &PublisherStats, destination: &Destination) {
        let (sent, lost) = (Count(self.sent), Count(self.lost));
        let address = destination.address();
        if self.is_whole {
            eprintln!("{address} has all {sent} events.");
            return;
        }
        let why = stats.failure.as_ref().or(stats.trouble.as_ref()).or(stats.spool_failure.as_ref());
        let why = why.map(|why| format!(" ({})", one_line(why.trim_end_matches('.')))).unwrap_or_default();
        eprintln!("{address} has {sent} events; {lost} did not arrive{why}.");
    }

    /// The same for programs: one line.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Has Ctrl-C, or a request to terminate, set `stop`, so that a run ends in order; the second one ends the program at
/// once.
fn on_interrupt(stop: StopSignal) {
    let wait = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            loop {
                stop_signal().await;
                if stop.set() {
                    std::process::exit(INTERRUPTED);
                }
            }
        });
    };
    // Without it Ctrl-C ends the program as it always did, and the server sees that the session was lost.
    let _ = std::thread::Builder::new().name("vramscope-interrupt".to_owned()).spawn(wait);
}

/// This machine's name; empty where it isn't told.
pub(super) fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}
