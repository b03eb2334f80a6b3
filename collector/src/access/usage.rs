//! The current usage of one token: live sessions and rates.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trace::limits::AccessLimits;

use super::allowance::{Allowance, Rate};
use super::{Denied, Quotas};

/// The live sessions of a token, and its rates.
#[derive(Debug, Default)]
pub(super) struct Usage(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    live: HashMap<String, LiveSession>,
    begun: Allowance,
    events: Allowance,
}

/// A session that counts as live.
#[derive(Debug, Default)]
struct LiveSession {
    connections: usize,
    /// Until when it counts without a connection.
    until: Option<Instant>,
}

impl Usage {
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more connection of a session, if the quota permits that it is live.
    pub(super) fn enter(&self, session: &str, quotas: Quotas, now: Instant) -> Result<(), Denied> {
        let mut used = self.lock();
        used.live.retain(|_, live| live.connections > 0 || live.until.is_some_and(|until| now < until));
        match quotas.sessions {
            // A session that is live already only gets another connection.
            Some(most) if used.live.len() >= most && !used.live.contains_key(session) => Err(Denied::Sessions(most)),
            _ => {
                used.live.entry(session.to_owned()).or_default().connections += 1;
                Ok(())
            }
        }
    }

    /// Counts one connection less. The session stays live until a moment; `None` if it has ended.
    pub(super) fn leave(&self, session: &str, until: Option<Instant>) {
        let mut used = self.lock();
        let Some(live) = used.live.get_mut(session) else { return };
        live.connections = live.connections.saturating_sub(1);
        live.until = until;
        if live.connections == 0 && until.is_none() {
            used.live.remove(session);
        }
    }

    /// Counts a session that begins, if the rate permits it.
    pub(super) fn begin(&self, limits: &AccessLimits, now: Instant) -> Result<(), Denied> {
        let rate = Rate { burst: limits.new_sessions as f64, per_second: limits.new_sessions_per_second };
        let taken = self.lock().begun.take(rate, now);
        taken.map_err(|wait| Denied::SessionRate(whole_seconds(wait)))
    }

    /// Counts events that arrived. Returns the time to wait before more are read.
    pub(super) fn charge(&self, events: u64, quotas: Quotas, now: Instant) -> Option<Duration> {
        let rate = quotas.events_per_second? as f64;
        self.lock().events.charge(events as f64, Rate { burst: rate, per_second: rate }, now)
    }
}

/// Returns a wait in whole seconds, at least one.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs_f64().ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_live_while_it_is_connected_and_shortly_after() {
        let usage = Usage::default();
        let quotas = Quotas { sessions: Some(2), ..Quotas::default() };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let full = Err(Denied::Sessions(2));
        assert_eq!(usage.enter("a", quotas, at(0)), Ok(()));
        assert_eq!(usage.enter("b", quotas, at(0)), Ok(()));
        assert_eq!(usage.enter("c", quotas, at(0)), full);
        // The same session again.
        assert_eq!(usage.enter("b", quotas, at(0)), Ok(()));
        usage.leave("a", Some(at(10)));
        assert_eq!(usage.enter("c", quotas, at(9)), full);
        assert_eq!(usage.enter("c", quotas, at(10)), Ok(()));
        // One of two connections.
        usage.leave("b", None);
        assert_eq!(usage.enter("d", quotas, at(10)), full);
        usage.leave("b", None);
        assert_eq!(usage.enter("d", quotas, at(10)), Ok(()));
        assert_eq!(usage.enter("e", Quotas::default(), at(10)), Ok(()));
    }

    #[test]
    fn many_sessions_may_begin_at_once_and_few_after_that() {
        let usage = Usage::default();
        let limits = AccessLimits { new_sessions: 3, new_sessions_per_second: 0.5, ..AccessLimits::default() };
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(usage.begin(&limits, start), Ok(()));
        }
        assert_eq!(usage.begin(&limits, start), Err(Denied::SessionRate(2)));
        assert_eq!(usage.begin(&limits, start + Duration::from_secs(2)), Ok(()));
    }

    #[test]
    fn events_beyond_the_quota_take_time() {
        let usage = Usage::default();
        let quotas = Quotas { events_per_second: Some(1_000), ..Quotas::default() };
        let now = Instant::now();
        assert_eq!(usage.charge(1_000, quotas, now), None);
        assert_eq!(usage.charge(500, quotas, now), Some(Duration::from_millis(500)));
        assert_eq!(usage.charge(500, Quotas::default(), now), None);
    }
}
