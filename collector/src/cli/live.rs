//! `--to`: publishes a run while it goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use trace::limits::PublishLimits;
use trace::units::{Count, counted};
use wire::Code;

use super::destination::{TOKEN_VARIABLE, destination};
use super::message::{note, warn};
use crate::server::stop_signal;
use crate::workloads::{Pacer, StopSignal};
use recorder::RecorderStats;
use recorder::publish::{Cause, Destination, Publisher, PublisherHandle, PublisherOutput, PublisherStats};

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
    /// File with the server's token; `-` reads standard input [default: the variable VRAMSCOPE_TOKEN]
    #[arg(long, value_name = "FILE", requires = "to")]
    token_file: Option<PathBuf>,
    /// File with the certificates to trust instead of the system's: of a company's authority, or the server's own
    /// [default: the variable VRAMSCOPE_CA_FILE]
    #[arg(long, value_name = "FILE", requires = "to")]
    ca_file: Option<PathBuf>,
}

/// A session that is being published.
pub(super) struct LivePublication {
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
    pub(super) fn start(&self, mode: &str) -> Result<Option<(PublisherOutput, LivePublication)>, String> {
        let Some(url) = &self.to else { return Ok(None) };
        let destination = destination("--to", url, self.token_file.as_deref(), self.ca_file.as_deref())?.mode(mode);
        let limits = PublishLimits::default();
        let (output, handle) = Publisher::start(destination.clone(), limits).map_err(|error| error.to_string())?;
        let stop = StopSignal::default();
        on_interrupt(stop.clone());
        Ok(Some((output, LivePublication { destination, handle: Arc::new(handle), rate: self.rate, stop, limits })))
    }
}

impl LivePublication {
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
            note(&self.invitation());
        } else if self.handle.failure().is_none() {
            warn(&not_connected(&self.handle.stats(), &self.destination.address()));
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
        let sentence = delivery.sentence(&stats, dropped, &self.destination.address());
        if delivery.is_whole {
            note(&sentence);
        } else {
            warn(&sentence);
        }
        delivery
    }
}

impl Delivery {
    /// Returns what arrived, what did not, and why. `dropped` is how many of the lost events never reached the publisher.
    fn sentence(&self, stats: &PublisherStats, dropped: u64, address: &str) -> String {
        let (sent, lost) = (counted(self.sent, "event"), Count(self.lost));
        if self.is_whole {
            return format!("{address} has the whole run: {sent}.");
        }
        let errors: Vec<String> = reason(stats).into_iter().chain(stats.spool_failure.clone()).collect();
        let why = match errors.is_empty() {
            false => errors.join("; "),
            true if dropped > 0 => {
                "the run made them faster than they could be sent and stored; limit it with --rate".to_owned()
            }
            true if self.lost > 0 => "the server or the connection took them too slowly".to_owned(),
            true => "the server did not confirm the end of the run".to_owned(),
        };
        format!("{address} has {sent}; {lost} did not arrive ({}).", why.trim_end_matches('.'))
    }

    /// Returns what arrived as a line of JSON.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Returns the latest error of a publisher, with what to do about it.
fn reason(stats: &PublisherStats) -> Option<String> {
    let why = stats.failure.as_ref().or(stats.trouble.as_ref())?;
    let why = why.trim_end_matches('.');
    Some(match stats.cause {
        Cause::Refusal(Code::Token) => {
            format!("{why}. Name the token with --token-file FILE or the variable {TOKEN_VARIABLE}")
        }
        _ => why.to_owned(),
    })
}

/// Returns the line for a run that was refused for good, if it was.
pub(super) fn stopped(stats: &PublisherStats) -> Option<String> {
    stats.failure.as_ref().and_then(|_| reason(stats)).map(|why| format!("Publishing stopped: {why}."))
}

/// Returns the line for a session that the server has not accepted yet.
fn not_connected(stats: &PublisherStats, address: &str) -> String {
    let why = reason(stats).unwrap_or_else(|| format!("{address}: no answer yet"));
    match stats.cause {
        Cause::Connection => format!("Cannot reach the server ({why}). Events are kept until it answers."),
        Cause::Certificate => format!("Cannot trust the server ({why}). Events are kept until it can be trusted."),
        Cause::Refusal(_) => format!("The server refused the session: {why}. Events are kept while it is asked again."),
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

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "http://box:7070/";

    fn stats(failure: Option<&str>, trouble: Option<&str>, cause: Cause) -> PublisherStats {
        let [failure, trouble] = [failure, trouble].map(|text| text.map(str::to_owned));
        PublisherStats { failure, trouble, cause, ..PublisherStats::default() }
    }

    #[test]
    fn a_server_that_answers_is_not_called_unreachable() {
        let (none, refused) = (Cause::default(), Cause::Refusal(Code::Busy));
        for (trouble, cause, wanted) in [
            (
                None,
                none,
                "Cannot reach the server (http://box:7070/: no answer yet). Events are kept until it answers.",
            ),
            (Some("x: refused"), none, "Cannot reach the server (x: refused). Events are kept until it answers."),
            (
                Some("x: the certificate has expired. Renew it."),
                Cause::Certificate,
                "Cannot trust the server (x: the certificate has expired. Renew it). Events are kept until it can be trusted.",
            ),
            (
                Some("the token has 1 live session, which is its quota; try again when one has ended"),
                refused,
                "The server refused the session: the token has 1 live session, which is its quota; try again when one has \
                 ended. Events are kept while it is asked again.",
            ),
        ] {
            assert_eq!(not_connected(&stats(None, trouble, cause), ADDRESS), wanted);
        }
    }

    #[test]
    fn a_wrong_token_is_refused_with_the_ways_to_give_one() {
        let wrong = stats(Some("the token is missing or wrong"), Some("x: away"), Cause::Refusal(Code::Token));
        let advice =
            "the token is missing or wrong. Name the token with --token-file FILE or the variable VRAMSCOPE_TOKEN.";
        assert_eq!(stopped(&wrong), Some(format!("Publishing stopped: {advice}")));
        let other = stats(Some("No."), None, Cause::Refusal(Code::Key));
        assert_eq!(stopped(&other).as_deref(), Some("Publishing stopped: No."));
        assert_eq!(stopped(&stats(None, Some("x: away"), Cause::Connection)), None);
    }

    #[test]
    fn the_end_says_why_events_are_missing() {
        let nothing = stats(None, None, Cause::Connection);
        let refused = stats(Some("No."), None, Cause::Refusal(Code::Key));
        let spool = PublisherStats { spool_failure: Some("no space".to_owned()), ..PublisherStats::default() };
        // Events that arrived, that did not, and that never reached the publisher.
        for (sent, lost, dropped, stats, wanted) in [
            (1, 0, 0, &nothing, "has 1 event; 0 did not arrive (the server did not confirm the end of the run)."),
            (65_536, 300_942, 300_942, &nothing, "has 65,536 events; 300,942 did not arrive (the run made them faster"),
            (5, 7, 0, &nothing, "7 did not arrive (the server or the connection took them too slowly)."),
            (0, 7, 7, &refused, "7 did not arrive (No)."),
            (0, 7, 7, &spool, "7 did not arrive (no space)."),
        ] {
            let delivery = Delivery { session: String::new(), sent, lost, is_whole: false };
            let sentence = delivery.sentence(stats, dropped, ADDRESS);
            assert!(sentence.starts_with(ADDRESS) && sentence.contains(wanted), "{sentence}");
        }
        let whole = Delivery { session: String::new(), sent: 2, lost: 0, is_whole: true };
        assert_eq!(whole.sentence(&nothing, 0, ADDRESS), "http://box:7070/ has the whole run: 2 events.");
    }
}
