//! Limits of a server's use of an object store.

use std::time::Duration;

/// Limits of a server's use of an object store.
#[derive(Clone, Copy, Debug)]
pub struct ObjectLimits {
    /// Time for one request, its repetitions included: far more than a store that works needs, and short enough that whoever
    /// waits for it, a collector or a person, learns that something is wrong.
    pub request: Duration,
    /// How often a request that failed is repeated, with growing pauses: a store that is restarted answers again by then.
    pub retries: usize,
    /// Time between two renewals of the lease: three may fail before it ends.
    pub renewal: Duration,
    /// Time without a renewal after which another server may take a lease over. A server that could not renew it for so long
    /// changes nothing any more.
    pub lease: Duration,
    /// The shortest and the longest pause of a segment after its upload failed.
    pub upload_pauses: (Duration, Duration),
    /// Time for the lease to be given back when the server ends.
    pub release: Duration,
}

impl Default for ObjectLimits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(30),
            retries: 4,
            renewal: Duration::from_secs(10),
            lease: Duration::from_secs(35),
            upload_pauses: (Duration::from_secs(1), Duration::from_secs(60)),
            release: Duration::from_secs(2),
        }
    }
}
