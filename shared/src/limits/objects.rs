//! Limits of what is asked of an object store.

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
    /// Bytes of a part that are handed to a connection at once. What moves is counted in these, so a line is taken to stand
    /// still below 2 KiB a second.
    pub piece_bytes: usize,
    /// Seconds in which a part has to move: the connection takes another piece of it, or the answer comes. A line may be slow
    /// for hours, but one that carries nothing for so long does not come back by itself.
    pub stall_seconds: u64,
    /// Bytes a second at which what was taken of a part reaches the object store at least. A system or a proxy may take a whole
    /// part at once, and nobody tells how much of it is on its way: an answer is awaited for as long as this takes, or for as
    /// long again as the connection took. Four parts at this rate are 2 Mbit/s; on a slower line the connection takes longer.
    pub least_bytes_per_second: u64,
    /// Seconds after which a failed request is not repeated as it is. Longer than a stall, so that a connection that was
    /// dropped in silence costs one repetition.
    pub repeat_seconds: u64,
    /// Times that a part is begun before its upload fails. Each time a connection may be new, and the signature is.
    pub attempts: usize,
    /// Seconds for a request that moves little: a page of a listing, a small object, a deletion, the end of an upload. With its
    /// repetitions, and less than a browser, a proxy or a command waits for an answer.
    pub request_seconds: u64,
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
            stop_seconds: 2,
        }
    }
}
