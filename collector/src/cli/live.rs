//! `--to`: publishes a run while it goes on.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use shared::limits::PublishLimits;
use shared::units::{Count, counted};

use super::one_line;
use crate::publish::{Destination, Publisher, PublisherHandle, PublisherOutput, PublisherStats};
use crate::recorder::RecorderStats;
use crate::server::stop_signal;
use crate::workloads::{Pacer, StopSignal};

/// The variable that holds the server's token if no file is named.
const TOKEN_VARIABLE: &str = "VRAMSCOPE_TOKEN";
/// The variable that holds the path of a file with certificates if the option is not given.
const CA_FILE_VARIABLE: &str = "VRAMSCOPE_CA_FILE";
/// The longest time to wait for the server before the run begins.
const GREETING: Duration = Duration::from_secs(2);
/// The exit code of a program that Ctrl-C ended at once.
const INTERRUPTED: i32 = 130;

/// The options for publishing.
#[derive(Args, Debug)]
pub(super) struct To {
    /// Send the run live to the server at http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Events per second of wall time; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 5_000, requires = "to")]
    rate: u64,
    /// File with the server's token [default: the variable VRAMSCOPE_TOKEN]
    #[arg(long, value_name = "FILE", requires = "to")]
    token_file: Option<PathBuf>,
    /// File with the certificates to trust instead of the system's: of a company's authority, or the server's own
    /// [default: the variable VRAMSCOPE_CA_FILE]
    #[arg(long, value_name = "FILE", requires = "to")]
    ca_file: Option<PathBuf>,
}

/// A session that is being published.
pub(super) struct Live {
    destination: Destination,
    pub(super) handle: Arc<PublisherHandle>,
    rate: u64,
    stop: StopSignal,
    limits: PublishLimits,
}

/// How much of a session has arrived.
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

    /// Begins a session if one was requested. `mode` says how its events are obtained.
    pub(super) fn start(&self, mode: &str) -> Result<Option<(PublisherOutput, Live)>, String> {
        let Some(url) = &self.to else { return Ok(None) };
        let destination = Destination::parse(url).map_err(|error| format!("--to: {error}"))?;
        if self.ca_file.is_some() && !destination.is_secure() {
            return Err(format!(
                "--ca-file: {} is not encrypted. Write the address as https://.",
                destination.address()
            ));
        }
        let variable = || std::env::var_os(CA_FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let ca_file = self.ca_file.clone().or_else(variable);
        let token = match &self.token_file {
            Some(path) => {
                let text = fs::read_to_string(path);
                Some(text.map_err(|error| format!("{}: the token can't be read: {error}.", path.display()))?)
            }
            None => std::env::var(TOKEN_VARIABLE).ok(),
        };
        let destination = destination.token(token).ca_file(ca_file).mode(mode);
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

    /// Prints where the run can be watched, or that the server can't be reached. Returns whether it can be watched.
    pub(super) fn greet(&self) -> bool {
        let is_connected = self.handle.wait_connected(GREETING);
        if is_connected {
            eprintln!("{}", self.invitation());
        } else if self.handle.failure().is_none() {
            let trouble = self.handle.stats().trouble;
            let trouble = trouble.unwrap_or_else(|| format!("{}: no answer yet", self.destination.address()));
            eprintln!("Cannot reach the server ({}). Events are kept until it answers.", one_line(&trouble));
        }
        is_connected
    }

    /// Returns the line that says where the run can be watched.
    pub(super) fn invitation(&self) -> String {
        format!("Watch it at {} (Ctrl-C stops it)", self.destination.page(self.handle.session()))
    }

    /// Ends the session after the recorder has ended, and prints what has arrived.
    pub(super) fn finish(self, recorded: Option<&RecorderStats>) -> Delivery {
        let session = self.handle.session().to_owned();
        let time = Duration::from_millis(self.limits.finish_millis);
        // The only other owner, the watch of the run, has been dropped.
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
    /// Prints what arrived and what did not.
    fn tell(&self, stats: &PublisherStats, destination: &Destination) {
        let (sent, lost) = (counted(self.sent, "event"), Count(self.lost));
        let address = destination.address();
        if self.is_whole {
            eprintln!("{address} has the whole run: {sent}.");
            return;
        }
        let why = stats.failure.as_ref().or(stats.trouble.as_ref()).or(stats.spool_failure.as_ref());
        let why = why.map(|why| format!(" ({})", one_line(why.trim_end_matches('.')))).unwrap_or_default();
        eprintln!("{address} has {sent}; {lost} did not arrive{why}.");
    }

    /// Returns what arrived as a line of JSON.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Makes Ctrl-C and SIGTERM set `stop`, so that a run ends in order. The second one ends the program at once.
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
    // Without the thread, Ctrl-C ends the program at once, and the server reports the session as lost.
    let _ = std::thread::Builder::new().name("vramscope-interrupt".to_owned()).spawn(wait);
}

/// Returns the name of this machine, or an empty text if it is unknown.
pub(super) fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}
