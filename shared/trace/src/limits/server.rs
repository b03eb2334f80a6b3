//! Limits of a server.

use super::{ImportLimits, LiveLimits};

/// The default of [`ServerLimits::state_bytes`].
pub(super) const STATE_BYTES: usize = 256 << 20;

/// Limits of one server.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Concurrent connections of clients that are not admitted collectors or viewers; a browser opens six. Further ones are
    /// refused. With [`Self::live_sessions`] (a socket and a file each) and [`Self::viewers`] they stay below the 1,024 files
    /// that a system lets a program open by default.
    pub connections: usize,
    /// Concurrent connections of those from one address, so that none takes all of them: as many as a job with 64 ranks and
    /// some browsers need at once. Trusted proxies may have all.
    pub connections_of_address: usize,
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
    /// Sessions, above which the oldest make room: each takes a few KiB of memory, whether it runs or not.
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
    /// Bytes of a hello, and so of what is held of a client before its hello was accepted. The longest part is the
    /// header of a recording: names, devices and settings, a few KiB.
    pub hello_bytes: usize,
    /// Bytes of one WebSocket message of a client whose request carried no token. Collectors cut their messages into pieces
    /// of this length.
    pub socket_bytes: usize,
    /// Bytes a second that a client must send or read on average while the server waits for it: a hundredth of the slowest
    /// mobile connection.
    pub least_bytes_per_second: u64,
    /// Downloads of sessions at once, each with a thread and a few MiB of memory.
    pub downloads: usize,
    /// Seconds without a byte read after which a download is ended in favour of another one if there are too many.
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
    /// Bytes of memory for what is tracked of a session's devices: a few million blocks, including the parts of states
    /// that have not all come. Checked before a batch is stored.
    pub state_bytes: usize,
    /// Bytes of memory for what is tracked of all sessions that are being recorded. When they need more, those that use more
    /// than an equal share are refused.
    pub states_bytes: usize,
    /// Unpacked bytes of one batch: 255 times [`WireLimits::batch_bytes`], which LZ4 can't exceed.
    pub batch_plain_bytes: u64,
    /// Bytes of batches that wait for one viewer. A viewer that lags further behind reads from the store.
    pub viewer_bytes: usize,
    /// Bytes of history for a late viewer: what a page holds with ease.
    pub history_bytes: u64,
    /// Bytes behind the newest batch from which on a viewer skips batches instead of reading all.
    pub behind_bytes: u64,
    /// Bytes of all sessions together that are exported as pickles at once, which takes roughly 20 times as much memory. A
    /// larger session can't be exported.
    pub pickle_bytes: u64,
    /// Devices of live sessions that have gauges of their own, the newest sessions first: about ten lines each, of
    /// which a Prometheus server keeps the history.
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
            connections_of_address: 128,
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
    pub(super) const fn tracked_bytes(state_bytes: usize) -> usize {
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
    /// Links, a few hundred bytes of memory each.
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
    /// Parts for which an upload takes room before they arrive: the next one, and one more, so that parts that are sent without
    /// a pause don't ask for room each.
    pub parts_ahead: u64,
    /// The divisor of the room for what unfinished uploads of one token may take: half of it, so that no token can keep
    /// the others out. It bounds one upload, too.
    pub unfinished_share: u64,
    /// Milliseconds that a request waits for another one to end that writes to the same upload: what a cut connection has sent
    /// is stored within this time.
    pub turn_millis: u64,
    /// Seconds without a byte after which an upload that has received nothing is given up: a client that begins one
    /// sends at once.
    pub empty_seconds: u64,
    /// Seconds without a byte after which an upload is dropped if there is no room for others: longer than a change of
    /// networks or a restart of a server takes.
    pub yield_seconds: u64,
    /// Seconds without a byte after which any upload is given up: a day, as a laptop may be closed overnight.
    pub idle_seconds: u64,
    /// Seconds without a byte after which the time since then is noted on the disk, so that a restart does not count
    /// from 0 again.
    pub note_seconds: u64,
    /// Seconds for which a trace without a link is kept: far more than it takes to make the link.
    pub orphan_seconds: u64,
    /// Seconds for which it is remembered that a link was deleted, or expired: 90 days.
    pub gone_seconds: u64,
    /// Uploads that are checked at once. Each one takes the memory for the names in its trace, and for one chunk.
    pub checks: usize,
    /// Traces that are sent to the object store at once, a thread each. They share the parts in flight.
    pub sends: usize,
    /// Seconds that a page waits for the preview of its link: a page that comes late is worse than one without.
    pub preview_seconds: u64,
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
            parts_ahead: 2,
            unfinished_share: 2,
            turn_millis: 1_000,
            empty_seconds: 600,
            yield_seconds: 900,
            idle_seconds: 86_400,
            note_seconds: 60,
            orphan_seconds: 3_600,
            gone_seconds: 90 * 86_400,
            checks: 2,
            sends: 16,
            preview_seconds: 3,
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
    /// Addresses of which failures are remembered, a few KiB each; the one that was seen the longest ago is forgotten.
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
