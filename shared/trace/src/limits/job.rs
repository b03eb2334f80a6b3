//! Limits of a recorded job, and of what it sends.

/// Limits of one recorder in the job that it records.
#[derive(Clone, Copy, Debug)]
pub struct RecorderLimits {
    /// Events of one device that wait for the writer, 56 bytes each: a tenth of a second at a million events a second.
    pub queue_events: usize,
    /// Marks and samples of statistics that wait for the writer.
    pub queue_marks: usize,
    /// Milliseconds after which events are written, however few. Later ones are lost if the job is killed.
    pub flush_millis: u64,
    /// Milliseconds that a waiting writer waits for a full output. After that it drops events until the output accepts
    /// more.
    pub room_millis: u64,
    /// Length of one text in bytes; longer ones are cut.
    pub string_bytes: usize,
    /// Total bytes of all distinct texts.
    pub strings_total_bytes: usize,
    /// Distinct frames, twelve bytes each.
    pub frames: usize,
    /// Frames of one stack; deeper stacks lose their outermost frames.
    pub stack_frames: usize,
    /// Total frames of all distinct stacks, four bytes each.
    pub stacks_total_frames: usize,
}

impl Default for RecorderLimits {
    fn default() -> Self {
        Self {
            queue_events: 1 << 17,
            queue_marks: 1 << 12,
            flush_millis: 250,
            room_millis: 60_000,
            string_bytes: 1 << 16,
            strings_total_bytes: 256 << 20,
            frames: 1 << 22,
            stack_frames: 4_096,
            stacks_total_frames: 1 << 25,
        }
    }
}

impl RecorderLimits {
    /// Returns the limits for an output that a person watches. An event waits 25 ms on average until it is written, a
    /// tenth of the time that it may take to the page; at 50,000 events a second chunks have 2,500 events, which still
    /// pack well.
    pub fn live() -> Self {
        Self { flush_millis: 50, ..Self::default() }
    }
}

/// Milliseconds after which a full disk is tried again, by recordings and by what waits for a server: soon for a person
/// who has just made room, and no load for a disk that stays full.
pub const FULL_DISK_MILLIS: u64 = 1_000;

/// Bytes of a recording that wait for room on its disk: the chunks that did not fit, and what makes the rest readable.
/// Beyond them no events are kept, and beyond twice as many the file ends. A few hours of marks and samples.
pub const FULL_DISK_BYTES: usize = 8 << 20;

/// Limits and timeouts of one publisher in its job.
#[derive(Clone, Copy, Debug)]
pub struct PublishLimits {
    /// Bytes of unacknowledged batches in memory. A few seconds of a busy job (three million events at ten bytes each),
    /// and little compared with the memory of a training job.
    pub memory_bytes: u64,
    /// Bytes of batches in files, once memory is full: some three hours without the server at 10,000 events a second.
    pub spool_bytes: u64,
    /// Bytes of one such file, which is deleted once it was read.
    pub spool_file_bytes: u64,
    /// Bytes beyond the limits above for the data that makes the rest readable: names, marks, losses.
    pub reserve_bytes: u64,
    /// Bytes up to which chunks are gathered into a batch ([`WireLimits::batch_bytes`]).
    pub batch_bytes: usize,
    /// Bytes of batches in one POST request, if sockets can't connect; a larger batch is sent alone.
    pub post_bytes: usize,
    /// Milliseconds between two such requests, so that a busy job does not send one every 50 ms.
    pub post_millis: u64,
    /// Milliseconds after which a socket is tried again if one could not connect.
    pub socket_millis: u64,
    /// Milliseconds to establish a connection.
    pub connect_millis: u64,
    /// Milliseconds without an answer that the server owes, after which the connection is closed.
    pub answer_millis: u64,
    /// Milliseconds without traffic after which the server is pinged. Proxies close connections that are silent for a
    /// minute.
    pub idle_millis: u64,
    /// The most milliseconds to the next connection after the first failure; doubled with each further one. The time is
    /// drawn between 0 and this, so that the ranks of a job do not reconnect all at once.
    pub backoff_millis: u64,
    /// The most milliseconds to the next connection after any number of failures: a server that is back is found within
    /// four seconds, and one that is away gets an attempt every two seconds from each job.
    pub backoff_cap_millis: u64,
    /// Unread requests of the server; further ones are dropped.
    pub asks: usize,
    /// Milliseconds to deliver the rest when a publisher is dropped without being finished.
    pub drop_millis: u64,
    /// Milliseconds to deliver the rest at the end of `run`.
    pub finish_millis: u64,
}

impl Default for PublishLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 32 << 20,
            spool_bytes: 1 << 30,
            spool_file_bytes: 16 << 20,
            reserve_bytes: 8 << 20,
            batch_bytes: 1 << 20,
            post_bytes: 4 << 20,
            post_millis: 100,
            socket_millis: 60_000,
            connect_millis: 10_000,
            answer_millis: 15_000,
            idle_millis: 10_000,
            backoff_millis: 500,
            backoff_cap_millis: 4_000,
            asks: 64,
            drop_millis: 500,
            finish_millis: 10_000,
        }
    }
}

/// Events in the trace of one run of a workload: 1.7 GB at 33 bytes each. The built-in workloads make a hundredth of
/// that.
pub const RUN_EVENTS: usize = 50_000_000;

/// Values of a parameter that one sweep runs: more than a table or a plot shows apart, and minutes of work.
pub const SWEEP_VALUES: u64 = 256;

/// Events that a published run keeps for its report: it may last for days, and the server has its trace.
pub const LIVE_RUN_EVENTS: usize = 2_000_000;

/// Limits of messages.
#[derive(Clone, Copy, Debug)]
pub struct WireLimits {
    /// Bytes of one message's body: one chunk of the largest size ([`super::ImportLimits::chunk_bytes`]), with its envelope.
    pub frame_bytes: usize,
    /// Bytes up to which chunks are gathered into a batch; a larger chunk is sent alone.
    pub batch_bytes: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self { frame_bytes: (16 << 20) + (64 << 10), batch_bytes: 1 << 20 }
    }
}
