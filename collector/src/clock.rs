//! The server's clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the microseconds since the epoch; 0 if the clock is set before it.
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
