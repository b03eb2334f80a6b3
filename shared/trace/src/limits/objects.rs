//! Limits of what is asked of an object store.

use std::time::Duration;

/// Limits of the requests to an object store.
#[derive(Clone, Copy, Debug)]
pub struct ObjectLimits {
    /// Bytes of one part of an upload. Object stores take at least 5 MiB and 10,000 parts, so this allows 80 GB.
    pub part_bytes: usize,
    /// Parts in flight at once, of all uploads together: they fill a line of 10 Gbit/s at 25 ms, and are all that uploads hold
    /// in memory.
    pub parts: usize,
    /// Bytes that are read from the disk at once, so that no part takes more memory than it has bytes.
    pub read_bytes: usize,
    /// Bytes of a part that are handed to a connection at once. Progress is counted in these, so a connection counts as
    /// stalled below 2 KiB a second.
    pub piece_bytes: usize,
    /// Seconds within which a part must make progress: the connection takes another piece of it, or the answer comes. A
    /// connection may be slow for hours, but one without progress for this long does not recover by itself.
    pub stall_seconds: u64,
    /// The least rate in bytes a second at which buffered bytes of a part are taken to reach the object store. A system
    /// or a proxy may buffer a whole part at once, and how much of it is on its way is unknown: an answer is awaited
    /// for as long as the part takes at this rate, or for as long again as the connection took. Four parts at this rate
    /// are 2 Mbit/s; on a slower line the connection takes longer.
    pub least_bytes_per_second: u64,
    /// Seconds after which a failed request is not repeated unchanged. Longer than a stall, so that a connection that
    /// was dropped in silence costs one repetition.
    pub repeat_seconds: u64,
    /// Times that a part is begun before its upload fails. Each attempt has a new signature, and may have a new
    /// connection.
    pub attempts: usize,
    /// Seconds for a request that moves little: a page of a listing, a small object, a deletion, the end of an upload. With its
    /// repetitions, and less than a browser, a proxy or a command waits for an answer.
    pub request_seconds: u64,
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
    /// Seconds for what an upload leaves behind to be deleted when the server stops, which must not wait longer.
    pub stop_seconds: u64,
}

impl Default for ObjectLimits {
    fn default() -> Self {
        Self {
            part_bytes: 8 << 20,
            parts: 4,
            read_bytes: 1 << 20,
            piece_bytes: 64 << 10,
            stall_seconds: 30,
            least_bytes_per_second: 64 << 10,
            repeat_seconds: 45,
            attempts: 2,
            request_seconds: 30,
            retries: 4,
            renewal: Duration::from_secs(10),
            lease: Duration::from_secs(35),
            upload_pauses: (Duration::from_secs(1), Duration::from_secs(60)),
            release: Duration::from_secs(2),
            stop_seconds: 2,
        }
    }
}
