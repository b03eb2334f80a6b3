//! Every limit in the program, with its default and its reason.

/// Limits of one import. They are far above what real files need, and low enough to refuse a hostile file before it
/// does harm.
#[derive(Clone, Copy, Debug)]
pub struct ImportLimits {
    /// Decompressed bytes of one file. The largest known snapshots have a few GiB.
    pub plain_bytes: u64,
    /// The ratio of decompressed to compressed bytes, checked beyond [`Self::ratio_grace_bytes`]. Real snapshots have
    /// 15 to 40; a deflate bomb reaches 1,030, a zstd bomb 30,000.
    pub ratio: u64,
    /// Decompressed bytes below which the ratio is not checked: short files of one repeated entry are harmless.
    pub ratio_grace_bytes: u64,
    /// Length of one string. Frame names of C++ templates reach some tens of KiB.
    pub string_bytes: usize,
    /// Total bytes of all distinct strings.
    pub strings_total_bytes: usize,
    /// Memo slots, containers and distinct values: one trace entry makes up to three. Below 2^28, so that a slot takes
    /// four bytes.
    pub items: usize,
    /// Values on the pickle machine's stack at once, 16 bytes each. Python's pickler appends to lists by the thousand;
    /// the C++ pickler appends all at once, so that the whole trace of a device is on the stack.
    pub stack_items: usize,
    /// Open marks at once. A real snapshot nests six deep.
    pub depth: usize,
    /// Values kept outside the trace, 16 bytes each: a block has roughly 13, an annotation 9. Enough for a million
    /// blocks.
    pub kept_values: usize,
    /// Bytes of integer opcodes with a length: 2^63 needs 9, and no number in a snapshot is larger.
    pub integer_bytes: usize,
    /// Frames of one stack. PyTorch gathers some hundreds.
    pub stack_frames: usize,
    /// Total frames of all distinct stacks, four bytes each. The largest known files have some hundred thousand.
    pub stacks_total_frames: usize,
    /// Bytes of the cache in which a pickle's lists of frames are recognized when they are repeated.
    pub remembered_bytes: usize,
    /// Bytes of one chunk of a recording, packed and unpacked. Writers begin another chunk at roughly 1 MiB; only the
    /// state of a segment with some hundred thousand blocks needs more.
    pub chunk_bytes: usize,
    /// The ratio of unpacked to packed bytes of a recording, checked beyond [`Self::ratio_grace_bytes`]. Writers stay
    /// below it, however regular the events: see [`RECORDING_RATIO`].
    pub recording_ratio: u64,
    /// Names (strings, frames, stacks, tags) of a recording in damaged chunks: each takes four bytes.
    pub lost_symbols: usize,
    /// Devices of one recording, far above what any machine has. Each takes roughly a kilobyte.
    pub devices: usize,
    /// Distinct frames of a recording, some 30 bytes each with the table in which they are looked up. Twice as many as a
    /// recorder writes ([`RecorderLimits::frames`]).
    pub frames: usize,
    /// Tags of a recording, some 80 bytes each with the table in which they are looked up: one for each second of seven
    /// weeks.
    pub tags: usize,
    /// Bytes of memory for the parts of one device's state until all of them have come: four million blocks.
    pub unfinished_device_bytes: usize,
    /// Bytes of memory for all such parts of a recording. A writer completes the state of one device before that of the
    /// next.
    pub unfinished_bytes: usize,
    /// Samples of the memory beside the allocators of all devices together, 72 bytes each. Beyond this limit the samples
    /// of the device that gets more are merged in pairs: see [`OUTSIDE_SAMPLES`].
    pub outside_samples: usize,
    /// Bytes of memory for everything that a [`crate::tracker::Tracker`] keeps. It reads nothing more that would exceed
    /// them.
    pub tracked_bytes: usize,
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
            devices: 1_024,
            frames: 1 << 23,
            tags: 1 << 22,
            unfinished_device_bytes: 128 << 20,
            unfinished_bytes: 256 << 20,
            outside_samples: 1 << 22,
            tracked_bytes: ServerLimits::tracked_bytes(STATE_BYTES),
        }
    }
}

/// The largest ratio of unpacked to packed bytes that a writer of recordings produces: below
/// [`ImportLimits::recording_ratio`], so that no reader refuses its file. A chunk that would exceed it is stored
/// unpacked.
pub const RECORDING_RATIO: u64 = 48;

/// Bytes of a URL that a link asks the page to open. Signed URLs of object stores have some two thousand.
pub const ADDRESS_BYTES: usize = 8_192;

/// Bytes of a trace that another site hands to the page in a message. It is in the memory of both pages at once.
pub const MESSAGE_BYTES: u64 = 2 << 30;

/// Characters of the name of a trace that another site hands to the page.
pub const NAME_CHARS: usize = 200;

/// Sites that may hand traces to the page without asking again. The oldest is forgotten.
pub const TRUSTED_SITES: usize = 64;

/// Bytes of a file of which the page keeps a copy in the browser for a later visit. Larger ones are opened from where they
/// are, if the browser hands out a handle for them.
pub const RECENT_COPY_BYTES: u64 = 512 << 20;

/// Bytes of all such copies. The oldest are forgotten.
pub const RECENT_COPIES_BYTES: u64 = 2 << 30;

/// Files that the page lists as opened lately.
pub const RECENT_FILES: usize = 20;

/// Steps that Back goes through in the page. A browser keeps fewer entries of its own: Chromium some fifty.
pub const HISTORY_STEPS: usize = 100;

/// The most names and values of settings that a header may hold. PyTorch has some twenty settings.
pub const HEADER_SETTINGS: u32 = 1_024;

/// The most faults of the file that it is a copy of that a header may hold.
pub const HEADER_FAULTS: u32 = 16;

/// The most devices that a header may name.
pub const HEADER_DEVICES: u32 = 1_024;

/// The default of [`ServerLimits::state_bytes`].
const STATE_BYTES: usize = 256 << 20;

/// Samples of the memory beside the allocator in one chunk of a recording. A writer that follows a job writes some ten.
pub const CHUNK_OUTSIDE_SAMPLES: usize = 1 << 16;

/// Samples of the memory beside one device's allocator, 72 bytes each: twelve days at one a second. Beyond this limit,
/// samples are merged in pairs.
pub const OUTSIDE_SAMPLES: usize = 1 << 20;

/// Events in one chunk of a recording: some hundred KiB, which unpack in a millisecond.
pub const CHUNK_EVENTS: usize = 1 << 14;

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

/// Limits of a page that watches a job.
#[derive(Clone, Copy, Debug)]
pub struct LiveLimits {
    /// Events of all devices together, some 65 bytes each with all indexes: a quarter of a GiB. Beyond this limit the
    /// older half is removed. From three quarters of it on, the newer half is held twice.
    pub events: usize,
    /// Marks of one device, 16 bytes each, and samples of its statistics, 32 bytes each. Beyond this limit the older
    /// half of the marks is removed, and samples are merged in pairs.
    pub marks: usize,
    /// Bytes that were read and wait to be added to the session: twice what a busy second brings. Beyond this limit they
    /// are added at once and not at the next refresh.
    pub pending_bytes: usize,
    /// Bytes of memory for the whole session: four times what its events take at their limit. A recording that needs
    /// more, as one whose recorded states contradict its events again and again, is no longer read.
    pub bytes: usize,
    /// The limits of chunks and names. Names are never removed, so only these limit them.
    pub import: ImportLimits,
}

impl Default for LiveLimits {
    fn default() -> Self {
        let import = ImportLimits::default();
        Self { events: 4_000_000, marks: 1 << 18, pending_bytes: 64 << 20, bytes: 1 << 30, import }
    }
}

impl RecorderLimits {
    /// Returns the limits for an output that somebody watches. An event waits 25 ms on average until it is written, a
    /// tenth of the time that it may take to the page; at 50,000 events a second chunks have 2,500 events, which still
    /// pack well.
    pub fn live() -> Self {
        Self { flush_millis: 50, ..Self::default() }
    }
}

/// Limits and timeouts of one publisher in its job.
#[derive(Clone, Copy, Debug)]
pub struct PublishLimits {
    /// Bytes of unacknowledged batches in memory. Some seconds of a busy job (three million events at ten bytes each),
    /// and little beside the memory of a training job.
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

/// Limits of one server.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Concurrent connections of clients that are not admitted collectors or viewers; a browser opens six. When all are in
    /// use, one that waits for its client is closed. With [`Self::live_sessions`] (a socket and a file each) and [`Self::viewers`] they stay below the 1,024
    /// files that a system lets a program open by default.
    pub connections: usize,
    /// Connections that the system holds until the server takes them, in tenths of a second if they all come at once.
    pub backlog: u32,
    /// Bytes of each connection that the system holds until the client reads them; Linux doubles the number. Without a limit
    /// it holds up to four MiB of each client that does not read.
    pub send_buffer_bytes: u32,
    /// Bytes of a request's line and headers together. A browser sends roughly one KiB.
    pub head_bytes: usize,
    /// Seconds to receive a request's head, including the idle time between requests.
    pub head_seconds: u64,
    /// Seconds for open connections to end when the server stops.
    pub drain_seconds: u64,
    /// Sessions, above which the oldest make room: each takes some KiB of memory, whether it runs or not.
    pub sessions: usize,
    /// Seconds between two times that the catalogue is saved: it is a cache, and 60 MB long for 100,000 sessions.
    pub catalogue_seconds: u64,
    /// Characters of each text of a header that are kept beside the recording, for lists: more than a line of a job's
    /// arguments. The recording itself has the whole text.
    pub text_chars: usize,
    /// Devices of one session: PyTorch supports at most 120.
    pub devices: usize,
    /// Concurrent sessions with a collector: the ranks of a large job on one server.
    pub live_sessions: usize,
    /// Concurrent viewers, each with a socket.
    pub viewers: usize,
    /// Seconds to receive the hello of a socket or of a request: a strong token or an accepted hello comes within one round
    /// trip of an honest client.
    pub hello_seconds: u64,
    /// Bytes of a hello, and so of what is held of a client before its hello was accepted. The longest part is the header
    /// of a recording: names, devices and settings, some KiB.
    pub hello_bytes: usize,
    /// Bytes of one WebSocket message of a client whose request carried no token. Collectors cut their messages into pieces
    /// of this length.
    pub socket_bytes: usize,
    /// Bytes a second that a client must send or read on average while the server waits for it: a hundredth of the slowest
    /// mobile connection.
    pub least_bytes_per_second: u64,
    /// Downloads of sessions at once, each with a thread and some MiB of memory.
    pub downloads: usize,
    /// Seconds without a byte read after which a download gives way to another one if there are too many.
    pub stall_seconds: u64,
    /// Seconds that a download waits for others to end.
    pub turn_seconds: u64,
    /// Milliseconds for which the store counts as ready after a check.
    pub probe_millis: u64,
    /// Seconds between two pings of the server.
    pub ping_seconds: u64,
    /// Seconds without a byte from the other side, including answers to pings, after which a socket is closed; and
    /// seconds for it to accept what is sent.
    pub idle_seconds: u64,
    /// Seconds without a request after which a session is lost whose collector can't use sockets.
    pub lost_seconds: u64,
    /// Seconds after which a session is lost whose collector's socket has closed without a goodbye: time to reconnect once.
    pub resume_seconds: u64,
    /// Bytes of a request's body: several batches of a collector that can't use sockets.
    pub body_bytes: usize,
    /// Seconds to receive a body.
    pub body_seconds: u64,
    /// Bytes of a collector's batches that wait to be written: a tenth of a second of the fastest collector.
    pub queue_bytes: usize,
    /// Bytes that are written before they are synced: roughly what a disk writes in ten milliseconds.
    pub sync_bytes: u64,
    /// Milliseconds that written bytes wait to be synced, while more arrive.
    pub sync_millis: u64,
    /// Bytes after which another log segment is begun: the amount that is read at a restart, and the unit in which
    /// history is dropped. A session with many names has larger ones, since each log segment repeats them.
    pub segment_bytes: u64,
    /// Events after which another log segment is begun, however few bytes they take: a late viewer begins with a whole
    /// log segment, which should not exceed what a page holds by much.
    pub segment_events: u64,
    /// Packed bytes of a session's names (strings, frames, stacks, tags): as many as a recorder produces at its own
    /// limits.
    pub symbols_bytes: u64,
    /// Bytes of memory for what is tracked of a session's devices: some million blocks, including the parts of states
    /// that have not all come. Checked before a batch is stored.
    pub state_bytes: usize,
    /// Bytes of memory for what is tracked of all sessions that are being recorded. When they need more, those that use more
    /// than an equal share are refused.
    pub states_bytes: usize,
    /// Unpacked bytes of one batch: 255 times [`WireLimits::batch_bytes`], which LZ4 can't exceed.
    pub batch_plain_bytes: u64,
    /// Bytes of batches that wait for one viewer. A viewer that is further behind reads from the store.
    pub viewer_bytes: usize,
    /// Bytes of history for a late viewer: what a page holds with ease.
    pub history_bytes: u64,
    /// Bytes behind the newest batch from which on a viewer skips batches instead of reading all.
    pub behind_bytes: u64,
    /// Bytes of all sessions together that are exported as pickles at once, which takes roughly 20 times as much memory. A
    /// larger session can't be exported.
    pub pickle_bytes: u64,
    /// Devices of live sessions that have gauges of their own, the newest sessions first: some ten lines each, of which
    /// a Prometheus server keeps the history.
    pub gauge_devices: usize,
    /// Characters of each text in a metric's label.
    pub label_chars: usize,
    /// Milliseconds between two looks at the gaps of a session's memory for each millisecond that the last one took:
    /// they use at most 2 % of a core, however often the metrics are read.
    pub gap_pause: u32,
    /// Seconds between two runs of retention.
    pub janitor_seconds: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            backlog: 512,
            send_buffer_bytes: 256 << 10,
            head_bytes: 16 << 10,
            head_seconds: 30,
            drain_seconds: 2,
            sessions: 200_000,
            catalogue_seconds: 300,
            text_chars: 1_000,
            devices: 128,
            live_sessions: 256,
            viewers: 128,
            hello_seconds: 5,
            hello_bytes: 64 << 10,
            socket_bytes: 256 << 10,
            least_bytes_per_second: 4 << 10,
            downloads: 32,
            stall_seconds: 5,
            turn_seconds: 10,
            probe_millis: 500,
            ping_seconds: 10,
            idle_seconds: 30,
            lost_seconds: 10,
            resume_seconds: 1,
            body_bytes: 64 << 20,
            body_seconds: 60,
            queue_bytes: 32 << 20,
            sync_bytes: 4 << 20,
            sync_millis: 20,
            segment_bytes: 16 << 20,
            segment_events: LiveLimits::default().events as u64,
            symbols_bytes: 256 << 20,
            state_bytes: STATE_BYTES,
            states_bytes: 8 * STATE_BYTES,
            batch_plain_bytes: 256 << 20,
            viewer_bytes: 4 << 20,
            history_bytes: 48 << 20,
            behind_bytes: 192 << 20,
            pickle_bytes: 256 << 20,
            gauge_devices: 512,
            label_chars: 100,
            gap_pause: 50,
            janitor_seconds: 30,
        }
    }
}

impl ServerLimits {
    /// Returns the limits for reading the chunks of a session.
    pub fn import(&self) -> ImportLimits {
        ImportLimits { tracked_bytes: Self::tracked_bytes(self.state_bytes), ..ImportLimits::default() }
    }

    /// Returns the bytes at which a tracker stops. A state that was accepted can be read again: its parts take no more
    /// than the state that they lead to.
    const fn tracked_bytes(state_bytes: usize) -> usize {
        state_bytes.saturating_mul(2)
    }
}

/// Limits of traces that are shared by links.
#[derive(Clone, Copy, Debug)]
pub struct ShareLimits {
    /// Bytes of one upload: a hundred million events.
    pub upload_bytes: u64,
    /// Bytes of one part of an upload: what a network that fails every few seconds still gets through.
    pub part_bytes: u64,
    /// Uploads of one token that have begun and not ended.
    pub uploads_of_token: usize,
    /// Uploads of all tokens that have begun and not ended.
    pub uploads: usize,
    /// Uploads that an address may begin at once, and how many more it may begin each second.
    pub begins: (usize, f64),
    /// Links, some hundred bytes of memory each.
    pub links: usize,
    /// Characters of a link's name.
    pub name_chars: usize,
    /// Bytes of a password.
    pub password_bytes: usize,
    /// Wrong passwords that an address may try at once, and how many more it may try each second.
    pub passwords: (usize, f64),
    /// Addresses that are remembered for these rates.
    pub addresses: usize,
    /// Links that were opened with their password, and are remembered.
    pub keys: usize,
    /// Seconds for which they are remembered: a working day.
    pub key_seconds: u64,
    /// Seconds until a link expires, unless its maker says otherwise: 30 days.
    pub expires_seconds: u64,
    /// Seconds without a new part after which an upload is given up: a day, as a laptop may be closed overnight.
    pub idle_seconds: u64,
    /// Seconds for which a trace without a link is kept: far more than it takes to make the link.
    pub orphan_seconds: u64,
    /// Seconds for which it is remembered that a link was deleted, or expired: 90 days.
    pub gone_seconds: u64,
    /// Uploads that are checked at once. Each one takes the memory for the names in its trace, and for one chunk.
    pub checks: usize,
    /// Bytes of a link's file.
    pub link_bytes: usize,
    /// Bytes that one step of a download reads.
    pub piece_bytes: usize,
}

impl Default for ShareLimits {
    fn default() -> Self {
        Self {
            upload_bytes: 1 << 30,
            part_bytes: 4 << 20,
            uploads_of_token: 64,
            uploads: 256,
            begins: (64, 1.0),
            links: 100_000,
            name_chars: 200,
            password_bytes: 1_000,
            passwords: (5, 0.1),
            addresses: 4_096,
            keys: 10_000,
            key_seconds: 12 * 3_600,
            expires_seconds: 30 * 86_400,
            idle_seconds: 86_400,
            orphan_seconds: 3_600,
            gone_seconds: 90 * 86_400,
            checks: 2,
            link_bytes: 16 << 10,
            piece_bytes: 256 << 10,
        }
    }
}

/// Limits of who may use a server: its tokens, and what one client may try.
#[derive(Clone, Copy, Debug)]
pub struct AccessLimits {
    /// Tokens of one server, 1 KiB each. All of them are compared with each one that is shown.
    pub tokens: usize,
    /// Bytes of a tokens file: a thousand long lines.
    pub file_bytes: u64,
    /// Wrong tokens that one address may show at once: more than a person mistypes.
    pub guesses: usize,
    /// Wrong tokens that an address regains each second. At one a second, a token of 64 bits lasts longer than any server.
    pub guesses_per_second: f64,
    /// Wrong tokens that this machine may show at once. Everybody behind a tunnel or a proxy comes from here.
    pub local_guesses: usize,
    /// Wrong tokens that this machine regains each second.
    pub local_guesses_per_second: f64,
    /// Addresses of which failures are remembered, some KiB each; the one that was seen the longest ago is forgotten.
    pub addresses: usize,
    /// Tokens that are remembered of one address, of those that were right and of those that were wrong: as many as
    /// different jobs and people on one machine have.
    pub remembered_tokens: usize,
    /// Sessions that may begin at once with one token: every rank of some large jobs.
    pub new_sessions: usize,
    /// Sessions that may begin each second after that: more than any cluster starts, and too few to fill
    /// [`ServerLimits::sessions`] within minutes.
    pub new_sessions_per_second: f64,
    /// The most seconds for which a collector that exceeds its quota of events is not read. Collectors close a connection
    /// that does not answer for [`PublishLimits::answer_millis`].
    pub pause_seconds: u64,
}

impl Default for AccessLimits {
    fn default() -> Self {
        Self {
            tokens: 1_000,
            file_bytes: 1 << 20,
            guesses: 10,
            guesses_per_second: 1.0,
            local_guesses: 50,
            local_guesses_per_second: 5.0,
            addresses: 4_096,
            remembered_tokens: 32,
            new_sessions: 2_048,
            new_sessions_per_second: 4.0,
            pause_seconds: 10,
        }
    }
}

/// Unpacked bytes of one preview of a recording, which a reader unpacks before it knows the rest: ten times what the writer
/// makes. In memory they take up to twelve times as much.
pub const PREVIEW_PART_BYTES: usize = 2 << 20;

/// Unpacked bytes of all previews of a recording that a reader keeps.
pub const PREVIEWS_BYTES: usize = 32 << 20;

/// Previews that follow the first one: two axes of 24 devices with all levels of detail.
pub const PREVIEW_PLACES: usize = 1_024;

/// Pixel columns of the pictures in a preview: those of a small screen.
pub const PREVIEW_COLUMNS: u32 = 1_024;

/// Pixel rows of the pictures in a preview.
pub const PREVIEW_ROWS: u32 = 512;

/// The first preview of a recording takes at most this part of it, unless [`PREVIEW_LEAST_BYTES`] are more.
pub const PREVIEW_FIRST_SHARE: usize = 32;

/// All previews of a recording take at most this part of it, beside the first.
pub const PREVIEWS_SHARE: usize = 16;

/// Bytes that the first preview may take of any recording, however short: three quarters of a reader's first request.
pub const PREVIEW_LEAST_BYTES: usize = 48 << 10;

/// Bytes of a link's fragment. Browsers and chat programs cut longer addresses.
pub const LINK_BYTES: usize = 16 << 10;

/// Rows of one list of lines: more than a person reads. The rest is summed.
pub const LINE_ROWS: usize = 1_000;

/// Terms of one kind in a link: more than a person uses.
pub const LINK_TERMS: usize = 64;

/// Pins of a view: as many as have room as flags beside each other, and are told apart.
pub const LINK_PINS: usize = 5;

/// Characters of a pin's name: what fits on a flag. Five such names are a fortieth of [`LINK_BYTES`] in ASCII.
pub const LINK_PIN_CHARS: usize = 48;

/// Boxes in the zoom path of a link's flame graph, one for each frame of a stack: deeper than almost any stack, and at
/// most a third of [`LINK_BYTES`].
pub const LINK_ZOOMS: usize = 512;

/// Transforms of a flame graph, in a link too: more than a person keeps track of. Each goes through all stacks.
pub const FLAME_TRANSFORMS: usize = 16;

/// Events in the trace of one run of a workload: 1.7 GB at 33 bytes each. The built-in workloads make a hundredth of
/// that.
pub const RUN_EVENTS: usize = 50_000_000;

/// Values of a parameter that one sweep runs: more than a table or a plot shows apart, and minutes of work.
pub const SWEEP_VALUES: u64 = 256;

/// Bytes of a sweep's document: ten times those of [`SWEEP_VALUES`] runs.
pub const SWEEP_BYTES: usize = 1 << 20;

/// Parameters beside the swept one in a sweep's document: no workload has as many.
pub const SWEEP_CHOICES: usize = 64;

/// Bytes of one text in a sweep's document: longer settings are no help to a reader.
pub const SWEEP_TEXT_BYTES: usize = 4 << 10;

/// Events that a published run keeps for its report: it may last for days, and the server has its trace.
pub const LIVE_RUN_EVENTS: usize = 2_000_000;

/// Bytes of a text that is pasted to be explained: a log around an error is less.
pub const PASTED_BYTES: usize = 1 << 20;

/// Rules that a person adds to those that fold frames. Each is compared with each distinct frame.
pub const FOLDING_PARTS: usize = 64;

/// Bytes of a part of a path in such a rule.
pub const FOLDING_PART_BYTES: usize = 256;
/// Failed requests of a device that are explained one by one: each takes some milliseconds. A program that catches more
/// of them fails for one reason.
pub const EXPLAINED_FAILURES: usize = 256;

/// Blocks and segments that are looked at to explain failed requests, all of them together: some seconds. Programs have some
/// ten thousand at a time.
pub const EXPLAINED_BLOCKS: usize = 1 << 24;

/// The least time between two diagnoses of a running job, in milliseconds: a verdict that changes more often can't be read.
pub const LIVE_DIAGNOSIS_REST_MS: f64 = 2_000.0;

/// A running job is diagnosed at most this share of the time. A diagnosis takes time proportional to the events that are
/// held, so the rest between two of them grows with the session. A request that fails is diagnosed at once.
pub const LIVE_DIAGNOSIS_SHARE: f64 = 0.04;

/// Returns how long to rest after a diagnosis of a running job that took so long, in milliseconds.
pub fn live_diagnosis_rest_ms(took_ms: f64) -> f64 {
    (took_ms / LIVE_DIAGNOSIS_SHARE - took_ms).max(LIVE_DIAGNOSIS_REST_MS)
}

/// Segments of a running job that are reserved where another one is, and after which the state is put in order: each
/// takes time proportional to the live blocks. Events that were lost explain a few of them.
pub const OVERLAPPING_SEGMENTS: u32 = 1_000;

/// Blocks and ranges that are visited for that, all of them together: a second or two, however many blocks are live.
pub const OVERLAP_STEPS: usize = 1 << 24;

/// Steps that may be taken to follow the gaps of a trace whose blocks and segments contradict each other: a second or so.
/// What no contradiction concerns is not counted. Real files with lost events need some thousand.
pub const CONTRADICTION_STEPS: u64 = 1 << 22;

/// Limits of messages.
#[derive(Clone, Copy, Debug)]
pub struct WireLimits {
    /// Bytes of one message's body: one chunk of the largest size ([`ImportLimits::chunk_bytes`]), with its envelope.
    pub frame_bytes: usize,
    /// Bytes up to which chunks are gathered into a batch; a larger chunk is sent alone.
    pub batch_bytes: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self { frame_bytes: (16 << 20) + (64 << 10), batch_bytes: 1 << 20 }
    }
}

/// Steps in one answer: more than a screen has columns, and some MB as a message.
pub const STEPS: usize = 50_000;

/// Rows in each group of a list of matches: a list is looked through, not read to its end.
pub const FOUND_ROWS: u32 = 500;

/// Rules of the user's own that decide categories. Their numbers share a byte with those of the built-in rules.
pub const CATEGORY_RULES: usize = 200;
/// Columns of a heatmap: more than any screen has. Each takes some kilobytes while it is kept.
pub const HEATMAP_COLUMNS: u32 = 1 << 14;

/// Rows of a heatmap: as many as a tall screen has pixels.
pub const HEATMAP_ROWS: u32 = 1 << 12;

/// Cells of a heatmap: 20 MB while they are kept. A view of 2,560 by 1,440 pixels has 1.8 million.
pub const HEATMAP_CELLS: u32 = 1 << 22;

/// Bytes of a model's `config.json`: published ones have some kilobytes.
pub const MODEL_CONFIG_BYTES: usize = 1 << 20;
