//! Every bound in the program, with its default and its reason.

/// Bounds on one import. All are far above what real files hold, and low enough that a hostile file is refused
/// before it hurts.
#[derive(Clone, Copy, Debug)]
pub struct ImportLimits {
    /// Decompressed bytes of one file. The largest snapshots seen are a few GiB.
    pub plain_bytes: u64,
    /// Decompressed over compressed bytes, looked at once [`Self::ratio_grace_bytes`] have come out. Real snapshots
    /// compress 15 to 40 times; a deflate bomb reaches 1,030, a zstd bomb 30,000.
    pub ratio: u64,
    /// Decompressed bytes below which no ratio is looked at: short files of one repeated entry are harmless.
    pub ratio_grace_bytes: u64,
    /// Length of one string. Frame names of C++ templates reach some tens of KiB.
    pub string_bytes: usize,
    /// Bytes of all distinct strings together.
    pub strings_total_bytes: usize,
    /// Memo slots, containers and distinct values: one trace entry makes up to three. Below 2^28, so that a slot
    /// stays four bytes.
    pub items: usize,
    /// Values on the machine's stack at once, 16 bytes each. Python's pickler fills lists by the thousand; the C++ one
    /// in one go, and then the whole trace of a device stands there.
    pub stack_items: usize,
    /// Open marks at once. A real snapshot nests six deep.
    pub depth: usize,
    /// Values kept outside the trace, 16 bytes each: a block has about 13, an annotation 9. Enough for a million
    /// blocks.
    pub kept_values: usize,
    /// Bytes of the integer opcodes that carry a length: 2^63 needs 9, and nothing in a snapshot is larger.
    pub integer_bytes: usize,
    /// Frames of one stack. PyTorch itself gathers some hundreds.
    pub stack_frames: usize,
    /// Frames of all distinct stacks together, four bytes each. The largest files seen have some hundred thousand.
    pub stacks_total_frames: usize,
    /// Bytes of the memory in which lists of frames are remembered as they stand in a pickle, to know them again.
    pub remembered_bytes: usize,
    /// Bytes of one chunk of a recording, packed and unpacked. Writers begin another at about 1 MiB; only the state of a
    /// segment with some hundred thousand blocks needs more.
    pub chunk_bytes: usize,
    /// Unpacked over packed bytes of a recording, looked at once [`Self::ratio_grace_bytes`] have come out. Writers keep
    /// below it, however regular the events: see [`RECORDING_RATIO`].
    pub recording_ratio: u64,
    /// Names (strings, frames, stacks, tags) of a recording whose chunks are damaged: each leaves four bytes.
    pub lost_symbols: usize,
}

impl Default for ImportLimits {
    fn default() -> Self {
        Self {
            plain_bytes: 64 << 30,
            ratio: 500,
            ratio_grace_bytes: 64 << 20,
            string_bytes: 1 << 20,
            strings_total_bytes: 1 << 30,
            items: (1 << 28) - 1,
            stack_items: 1 << 25,
            depth: 1_000,
            kept_values: 1 << 24,
            integer_bytes: 256,
            stack_frames: 65_536,
            stacks_total_frames: 1 << 26,
            remembered_bytes: 32 << 20,
            chunk_bytes: 16 << 20,
            recording_ratio: 64,
            lost_symbols: 1 << 22,
        }
    }
}

/// Unpacked over packed bytes that a writer of recordings allows itself: below [`ImportLimits::recording_ratio`], so that
/// no reader takes its file for a bomb. A chunk that would pass it is stored as it is.
pub const RECORDING_RATIO: u64 = 48;

/// Events in one chunk of a recording: some hundred KiB, unpacked in a millisecond.
pub const CHUNK_EVENTS: usize = 1 << 14;

/// Bounds on what one recorder holds in the job that it records.
#[derive(Clone, Copy, Debug)]
pub struct RecorderLimits {
    /// Events of one device on their way to the writer, 56 bytes each: at a million events a second, what comes in a
    /// tenth of a second.
    pub queue_events: usize,
    /// Marks and samples of statistics on their way.
    pub queue_marks: usize,
    /// Milliseconds after which what came is written, however little: so much is lost when the job is killed.
    pub flush_millis: u64,
    /// Milliseconds that a writer which would rather wait than lose waits for an output that has no room. After that it
    /// loses, until there was room again.
    pub room_millis: u64,
    /// Length of one text, in bytes; longer ones are cut.
    pub string_bytes: usize,
    /// Bytes of all distinct texts together.
    pub strings_total_bytes: usize,
    /// Distinct frames, twelve bytes each.
    pub frames: usize,
    /// Frames of one stack; deeper ones lose their outermost.
    pub stack_frames: usize,
    /// Frames of all distinct stacks together, four bytes each.
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

/// Bounds on what a page holds of a job that it watches.
#[derive(Clone, Copy, Debug)]
pub struct LiveLimits {
    /// Events of all devices together, some 65 bytes each with all that is found of them: a quarter of a GiB. Beyond it
    /// the older half is given up; the other one is held twice until then, from three quarters of the bound on.
    pub events: usize,
    /// Marks of one device, 16 bytes each, and samples of its statistics, 32 bytes each. Beyond it the older half of either
    /// is given up.
    pub marks: usize,
    /// Those on chunks and names. Names are never given up, so these bound them.
    pub import: ImportLimits,
}

impl Default for LiveLimits {
    fn default() -> Self {
        Self { events: 4_000_000, marks: 1 << 18, import: ImportLimits::default() }
    }
}

impl RecorderLimits {
    /// For an output that somebody watches. An event waits 25 ms on average until it is written, a tenth of what it may
    /// take to the page; at 50,000 events a second that makes chunks of 2,500, which still pack well.
    pub fn live() -> Self {
        Self { flush_millis: 50, ..Self::default() }
    }
}

/// Bounds on what one publisher holds in the job that it speaks for, and on its patience.
#[derive(Clone, Copy, Debug)]
pub struct PublishLimits {
    /// Bytes of batches in memory, acknowledged ones not counted. Some seconds of a busy job (at ten bytes an event three
    /// million events), and little beside what a training job has.
    pub memory_bytes: u64,
    /// Bytes of batches in files, once memory is full: at 10,000 events a second some three hours without the server.
    pub spool_bytes: u64,
    /// Bytes of one such file; it goes when all of it was read.
    pub spool_file_bytes: u64,
    /// Bytes that are kept beyond the bounds above, of what makes the rest readable: names, marks, what was lost.
    pub reserve_bytes: u64,
    /// Chunks are gathered into a batch up to so many bytes ([`WireLimits::batch_bytes`]).
    pub batch_bytes: usize,
    /// Bytes of batches in one request where sockets can't pass; a larger batch goes alone.
    pub post_bytes: usize,
    /// Milliseconds between two such requests, so that a busy job doesn't make one of every 50 ms.
    pub post_millis: u64,
    /// Milliseconds after which a socket is tried again where one couldn't pass.
    pub socket_millis: u64,
    /// Milliseconds that a connection may take to come about.
    pub connect_millis: u64,
    /// Milliseconds without a word from a server that owes one, after which the connection is given up.
    pub answer_millis: u64,
    /// Milliseconds without traffic after which the server is asked whether it is there. Proxies close what is silent for
    /// a minute.
    pub idle_millis: u64,
    /// The most milliseconds to the next connection after a first failure; doubled with each further one. The time is
    /// drawn from 0 on, so that the ranks of a job don't come back all at once.
    pub backoff_millis: u64,
    /// The most milliseconds to the next connection after any number of failures: a server that comes back is seen within
    /// half a minute.
    pub backoff_cap_millis: u64,
    /// Questions of the server that nobody has taken yet; further ones are forgotten.
    pub asks: usize,
    /// Milliseconds that a publisher which is dropped, not finished, takes to deliver the rest.
    pub drop_millis: u64,
    /// Milliseconds that `run` takes at its end to deliver the rest.
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
            backoff_cap_millis: 30_000,
            asks: 64,
            drop_millis: 500,
            finish_millis: 10_000,
        }
    }
}

/// Bounds on what one server holds for its clients.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Connections at once that speak HTTP; a browser opens six. When all are taken, the one that has been idle for
    /// longest makes room. With [`Self::live_sessions`] (a socket and a file each) and [`Self::viewers`] they stay below
    /// the 1,024 files that a system lets a program open by default.
    pub connections: usize,
    /// Bytes of a request's line and headers together. A browser sends about one KiB.
    pub head_bytes: usize,
    /// Seconds within which a request's head must have come, idle waiting between requests included.
    pub head_seconds: u64,
    /// Seconds that open connections are given to end when the server is told to stop.
    pub drain_seconds: u64,
    /// Sessions that are kept. Each takes some KiB of memory, whether it runs or not.
    pub sessions: usize,
    /// Characters of each text in a header that are kept beside the recording, for lists: more than a line of a job's
    /// arguments. The recording itself keeps them whole.
    pub text_chars: usize,
    /// Devices of one session: PyTorch is built for 120 at most.
    pub devices: usize,
    /// Sessions with a collector at once: the ranks of a large job on one server.
    pub live_sessions: usize,
    /// Viewers at once, each a socket.
    pub viewers: usize,
    /// Seconds within which a socket must have said who it is.
    pub hello_seconds: u64,
    /// Seconds between two pings of the server.
    pub ping_seconds: u64,
    /// Seconds without a byte from the other side, answers to pings included, after which a socket is closed; and that
    /// one may take to accept what is sent.
    pub idle_seconds: u64,
    /// Seconds without a collector after which a session counts as lost.
    pub lost_seconds: u64,
    /// Bytes of a request's body: some batches of a collector that can't use sockets.
    pub body_bytes: usize,
    /// Seconds within which a body must have come.
    pub body_seconds: u64,
    /// Bytes of a collector's batches that wait to be written. A tenth of a second of the fastest.
    pub queue_bytes: usize,
    /// Bytes that are written before they are made durable: about what a disk writes in ten milliseconds.
    pub sync_bytes: u64,
    /// Milliseconds that what came waits for being made durable, while more comes.
    pub sync_millis: u64,
    /// Bytes after which another segment is begun: what is read at a restart, and the grain in which history is dropped.
    /// A session whose names are large has larger ones, since each segment repeats them.
    pub segment_bytes: u64,
    /// Events after which another is begun, however few bytes they take: who comes late begins with a whole segment, and
    /// reads no more than a page holds, or little more.
    pub segment_events: u64,
    /// Bytes of a session's names (strings, frames, stacks, tags), packed. As many as a recorder makes at its own bounds.
    pub symbols_bytes: u64,
    /// Bytes of memory for what a session's allocator holds now: some million blocks.
    pub state_bytes: usize,
    /// Batches on their way to one viewer, in bytes. One that is further behind reads from the store.
    pub viewer_bytes: usize,
    /// Bytes of history that a viewer gets who comes late: what a page holds with ease.
    pub history_bytes: u64,
    /// Bytes behind the newest batch from which a viewer is set forward instead of reading all of them.
    pub behind_bytes: u64,
    /// Bytes of a session that are made into a pickle at once; it takes about 20 times as much memory.
    pub pickle_bytes: u64,
    /// Seconds between two looks at what is kept for too long.
    pub janitor_seconds: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            head_bytes: 16 << 10,
            head_seconds: 30,
            drain_seconds: 2,
            sessions: 10_000,
            text_chars: 1_000,
            devices: 128,
            live_sessions: 256,
            viewers: 128,
            hello_seconds: 10,
            ping_seconds: 10,
            idle_seconds: 30,
            lost_seconds: 10,
            body_bytes: 64 << 20,
            body_seconds: 60,
            queue_bytes: 32 << 20,
            sync_bytes: 4 << 20,
            sync_millis: 20,
            segment_bytes: 16 << 20,
            segment_events: LiveLimits::default().events as u64,
            symbols_bytes: 256 << 20,
            state_bytes: 512 << 20,
            viewer_bytes: 4 << 20,
            history_bytes: 48 << 20,
            behind_bytes: 192 << 20,
            pickle_bytes: 256 << 20,
            janitor_seconds: 30,
        }
    }
}

/// Bytes of a link's fragment. Browsers and chat programs cut longer addresses anyway.
pub const LINK_BYTES: usize = 16 << 10;

/// Terms of one kind in a link: more chips than a person puts up.
pub const LINK_TERMS: usize = 64;

/// Entries in the trace of one run of a workload: at 33 bytes each, 1.7 GB. The stories that ship make a hundredth of
/// that.
pub const RUN_EVENTS: usize = 50_000_000;

/// Entries that a run keeps for its report while it is published: it may go on for days, and its trace is at the server.
pub const LIVE_RUN_EVENTS: usize = 2_000_000;

/// Bounds on what travels.
#[derive(Clone, Copy, Debug)]
pub struct WireLimits {
    /// Bytes of one frame's body: one chunk at its bound ([`ImportLimits::chunk_bytes`]), and what stands around it.
    pub frame_bytes: usize,
    /// Chunks are gathered into a batch up to so many bytes; a larger one travels alone.
    pub batch_bytes: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self { frame_bytes: (16 << 20) + (64 << 10), batch_bytes: 1 << 20 }
    }
}
