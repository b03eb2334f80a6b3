//! The minimum rate at which a client must send or read while the server waits for it.
//!
//! Only the time in which nothing but the client holds up the connection counts: what the server needs to read a disk or to
//! compute is not the client's fault.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use trace::limits::ServerLimits;

/// A client sends or reads too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client was too slow")]
pub(super) struct TooSlow;

/// The limits of [`Pace`].
#[derive(Clone, Copy, Debug)]
pub(super) struct PaceLimits {
    /// The longest time without a byte, and the time over which the bytes are averaged.
    idle: Duration,
    /// Bytes that a client has to send or read in that time.
    bytes: u64,
}

impl From<&ServerLimits> for PaceLimits {
    fn from(limits: &ServerLimits) -> Self {
        Self {
            idle: Duration::from_secs(limits.idle_seconds),
            bytes: limits.idle_seconds.saturating_mul(limits.least_bytes_per_second),
        }
    }
}

/// Measures one direction of a connection.
#[derive(Debug)]
pub(super) struct Pace {
    tally: Tally,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// Starts to measure.
    pub(super) fn new(limits: PaceLimits) -> Self {
        Self { tally: Tally::new(limits), timer: None }
    }

    /// Counts bytes that the client sent or read.
    pub(super) fn advance(&mut self, bytes: usize) {
        if self.tally.is_waiting() {
            self.timer = None;
        }
        self.tally.advance(bytes as u64, Instant::now());
    }

    /// Waits for the client. Resolves when it was too slow.
    pub(super) fn poll_too_slow(&mut self, context: &mut Context<'_>) -> Poll<TooSlow> {
        loop {
            let timer = match &mut self.timer {
                Some(timer) => timer,
                None => self.timer.insert(Box::pin(sleep_until(self.tally.wait(Instant::now())))),
            };
            ready!(timer.as_mut().poll(context));
            if let Err(error) = self.tally.judge(Instant::now()) {
                return Poll::Ready(error);
            }
            self.timer = None;
        }
    }
}

/// The bytes and the waiting time of a client in the current span of time.
#[derive(Debug)]
struct Tally {
    limits: PaceLimits,
    bytes: u64,
    /// For how long the server waited in this span, up to the last byte.
    waited: Duration,
    /// Since when the server waits now, and when the span began if that was later.
    waiting: Option<(Instant, Instant)>,
}

impl Tally {
    fn new(limits: PaceLimits) -> Self {
        Self { limits, bytes: 0, waited: Duration::ZERO, waiting: None }
    }

    fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    fn advance(&mut self, bytes: u64, now: Instant) {
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some((_, begun)) = self.waiting.take() {
            self.waited += now.saturating_duration_since(begun);
        }
    }

    /// Begins to wait, or goes on. Returns the time at which to judge the client.
    fn wait(&mut self, now: Instant) -> Instant {
        let (since, begun) = *self.waiting.get_or_insert((now, now));
        (since + self.limits.idle).min(begun + self.limits.idle.saturating_sub(self.waited))
    }

    /// Tells whether the client was too slow. If not, another span begins.
    fn judge(&mut self, now: Instant) -> Result<(), TooSlow> {
        let (since, _) = self.waiting.unwrap_or((now, now));
        if now.saturating_duration_since(since) >= self.limits.idle || self.bytes < self.limits.bytes {
            return Err(TooSlow);
        }
        (self.bytes, self.waited, self.waiting) = (0, Duration::ZERO, Some((since, now)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that takes `bytes` each `every` seconds, of a server that then works for `busy` seconds. Returns the second
    /// in which it is found to be too slow, if it is in the first hundred.
    fn run(bytes: u64, every: u64, busy: u64) -> Option<u64> {
        let limits = ServerLimits { idle_seconds: 10, least_bytes_per_second: 100, ..ServerLimits::default() };
        let (mut tally, begun) = (Tally::new(PaceLimits::from(&limits)), Instant::now());
        let mut now = begun;
        while now < begun + Duration::from_secs(100) {
            let comes = now + Duration::from_secs(every);
            loop {
                let due = tally.wait(now);
                if due > comes {
                    break;
                }
                now = due;
                if tally.judge(now).is_err() {
                    return Some(now.duration_since(begun).as_secs());
                }
            }
            tally.advance(bytes, comes);
            now = comes + Duration::from_secs(busy);
        }
        None
    }

    #[test]
    fn a_client_has_to_keep_up() {
        for (what, bytes, every, busy, want) in [
            ("nothing for ten seconds", 1, 1_000_000, 0, Some(10)),
            ("90 bytes a second", 90, 1, 0, Some(10)),
            ("120 bytes a second", 120, 1, 0, None),
            ("many bytes, rarely", 2_000, 9, 0, None),
            ("many bytes, too rarely", 1_000_000, 11, 0, Some(10)),
            ("a slow server", 120, 1, 30, None),
            ("a slow client of a slow server", 10, 1, 7, Some(73)),
        ] {
            assert_eq!(run(bytes, every, busy), want, "{what}");
        }
    }

    #[test]
    fn a_client_that_stops_is_found_within_the_time_of_silence() {
        let limits = ServerLimits { idle_seconds: 10, least_bytes_per_second: 100, ..ServerLimits::default() };
        let (mut tally, begun) = (Tally::new(PaceLimits::from(&limits)), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        tally.wait(begun);
        tally.advance(100_000, at(4));
        assert_eq!(tally.wait(at(4)), at(10));
        assert_eq!((tally.judge(at(10)), tally.wait(at(10))), (Ok(()), at(14)));
        assert_eq!(tally.judge(at(14)), Err(TooSlow));
    }
}
