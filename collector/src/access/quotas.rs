//! Quotas: how much one token may use.

/// The most that the sessions of one token may use together; `None` for no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Bytes in the store. Retention deletes the token's oldest sessions beyond this limit.
    pub bytes: Option<u64>,
    /// Live sessions at once. Further ones are refused.
    pub sessions: Option<usize>,
    /// Events a second. The server reads more slowly from collectors that send more; one batch of
    /// each is read at least every [`pause_seconds`](trace::limits::AccessLimits::pause_seconds).
    pub events_per_second: Option<u64>,
}
