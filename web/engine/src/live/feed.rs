//! Reads what a server sends of a session: messages in, chunks of the recording out, each once and in order, across lost
//! connections.

use std::collections::VecDeque;

use trace::limits::{LiveLimits, WireLimits};
use wire::{Batch, Code, Decoder, Message, PROTOCOL, Refused, SessionState, Skipped, Status, Watch};

/// The number of status messages that the event rate is computed from: a few seconds.
const REPORTS: usize = 4;

/// Why a connection can't be used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedFault {
    /// The bytes are no stream of messages, or a batch is missing: a new connection continues after the last batch.
    Broken,
    /// The server refuses.
    Refused {
        /// The reason, as a sentence.
        message: String,
        /// Whether a later attempt may succeed.
        retry: bool,
        /// Whether a token would help.
        wants_token: bool,
    },
}

/// The messages of a session, over any number of connections.
#[derive(Debug)]
pub struct Feed {
    decoder: Decoder,
    /// The last batch that arrived.
    after: u64,
    /// The last batch that the server had when it was first asked; `None` before its first status.
    target: Option<u64>,
    status: Status,
    /// The server's clock and its count of events, from its last status messages.
    reports: VecDeque<(i64, u64)>,
    missed: Option<(u64, String)>,
    /// Whether the first batches are missing.
    is_late: bool,
    /// Whether batches are ignored; they are requested again later.
    is_paused: bool,
    /// The server's count of events in its first status since the pause began.
    paused_at: Option<u64>,
    fault: Option<FeedFault>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            decoder: Decoder::new(&WireLimits::default()),
            after: 0,
            target: None,
            status: Status::default(),
            reports: VecDeque::new(),
            missed: None,
            is_late: false,
            is_paused: false,
            paused_at: None,
            fault: None,
        }
    }
}

impl Feed {
    /// Begins a connection. Returns the first message to send.
    pub fn begin(&mut self, token: &str) -> Vec<u8> {
        self.decoder = Decoder::new(&WireLimits::default());
        self.fault = None;
        if std::mem::take(&mut self.is_paused) {
            // The ignored batches come first.
            self.target = None;
        }
        let events = LiveLimits::default().events as u64;
        Watch { protocol: PROTOCOL, token: token.to_owned(), after: self.after, events }.to_bytes()
    }

    /// Reads bytes from the connection. Calls `read` with the chunks of each new batch, and with the time at which it was
    /// sent by the collector's clock, if that is known.
    pub fn push(&mut self, bytes: &[u8], read: &mut dyn FnMut(&[u8], Option<i64>)) -> Result<(), FeedFault> {
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(&WireLimits::default()));
        let result = decoder.push(bytes, &mut |message| {
            // Nothing after a fault is trustworthy.
            if self.fault.is_none() {
                self.fault = self.handle(message, read).err();
            }
        });
        self.decoder = decoder;
        match self.fault.clone() {
            Some(fault) => Err(fault),
            None => result.map_err(|_| FeedFault::Broken),
        }
    }

    fn handle(&mut self, message: Message<'_>, read: &mut dyn FnMut(&[u8], Option<i64>)) -> Result<(), FeedFault> {
        match message {
            Message::Batch(_) | Message::Skipped(_) if self.is_paused => {}
            Message::Batch(Batch { seq, sent_us, chunks }) => {
                let next = self.after.saturating_add(1);
                if seq > next {
                    return Err(FeedFault::Broken);
                }
                // A batch that arrives twice counts once. Long names and states have batches of their own, number 0.
                if seq == next || seq == 0 {
                    self.after = self.after.max(seq);
                    read(chunks, Some(sent_us).filter(|&sent_us| sent_us > 0));
                }
            }
            Message::Skipped(Skipped { to, reason, .. }) => {
                let last = to.saturating_sub(1);
                if last > self.after && self.after == 0 {
                    self.is_late = true;
                    self.after = last;
                } else if last > self.after {
                    let before = self.missed.take().map_or(0, |(count, _)| count);
                    self.missed = Some((before + (last - self.after), reason));
                    self.after = last;
                }
            }
            Message::Status(status) => {
                self.target.get_or_insert(status.last);
                self.paused_at.get_or_insert(status.events);
                self.status = status;
                self.reports.push_back((status.now_us, status.events));
                if self.reports.len() > REPORTS {
                    self.reports.pop_front();
                }
            }
            Message::Refused(Refused { code, message, retry }) => {
                return Err(FeedFault::Refused { message, retry, wants_token: code == Code::Token });
            }
            // From a later build, or not for a viewer.
            _ => {}
        }
        Ok(())
    }

    /// Returns the server's last status message.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the number of batches that were skipped, and why.
    pub fn missed(&self) -> Option<&(u64, String)> {
        self.missed.as_ref()
    }

    /// Returns whether the first batches are missing, because the page can't hold all or the server no longer has them.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// Ignores batches from now on, but not status messages. A new connection continues from here.
    pub fn pause(&mut self) {
        if !std::mem::replace(&mut self.is_paused, true) {
            self.paused_at = None;
        }
    }

    /// Returns the minimum number of events that arrived at the server during the pause.
    pub fn waiting_events(&self) -> u64 {
        self.paused_at.filter(|_| self.is_paused).map_or(0, |at| self.status.events.saturating_sub(at))
    }

    /// Returns whether batches are being ignored.
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Returns whether everything has arrived that the server had when it was first asked.
    pub fn is_caught_up(&self) -> bool {
        self.target.is_some_and(|target| self.after >= target)
    }

    /// Returns whether the session has ended and all of it has arrived.
    pub fn is_done(&self) -> bool {
        self.target.is_some() && self.status.state == SessionState::Ended && self.after >= self.status.last
    }

    /// Returns the events per second by the server's count; 0 unless the session is live.
    pub fn events_per_second(&self) -> f64 {
        let (Some(first), Some(last)) = (self.reports.front(), self.reports.back()) else { return 0.0 };
        let seconds = last.0.saturating_sub(first.0) as f64 / 1e6;
        if self.status.state != SessionState::Live || seconds <= 0.0 {
            return 0.0;
        }
        last.1.saturating_sub(first.1) as f64 / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(seq: u64, chunks: &'static [u8]) -> Message<'static> {
        Message::Batch(Batch { seq, sent_us: 0, chunks })
    }

    fn status(state: SessionState, last: u64, now_us: i64, events: u64) -> Message<'static> {
        Message::Status(Status { state, last, now_us, events, ..Status::default() })
    }

    fn skipped(from: u64, to: u64) -> Message<'static> {
        Message::Skipped(Skipped { from, to, reason: "kept no longer".to_owned() })
    }

    fn bytes(messages: &[Message<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        messages.iter().for_each(|message| message.encode(&mut out));
        out
    }

    /// Pushes messages. Returns the chunks that were read, and the result.
    fn push(feed: &mut Feed, messages: &[Message<'_>]) -> (String, Result<(), FeedFault>) {
        let mut taken = String::new();
        let result = feed.push(&bytes(messages), &mut |chunks, _| taken += std::str::from_utf8(chunks).unwrap());
        (taken, result)
    }

    /// Returns the batch after which a feed asks to continue.
    fn asks_after(feed: &mut Feed) -> u64 {
        let hello = feed.begin("secret");
        let mut after = None;
        Decoder::new(&WireLimits::default())
            .push(&hello, &mut |message| {
                let Message::Watch(watch) = message else { panic!("{message:?}") };
                assert_eq!((watch.protocol, watch.token.as_str()), (PROTOCOL, "secret"));
                after = Some(watch.after);
            })
            .unwrap();
        after.unwrap()
    }

    #[test]
    fn each_batch_counts_once_and_in_order() {
        let cases = [
            (vec![batch(1, b"a"), batch(2, b"b")], "ab", Ok(()), 2),
            (vec![batch(1, b"a"), batch(1, b"a"), batch(2, b"b")], "ab", Ok(()), 2),
            (vec![batch(1, b"a"), batch(3, b"c"), batch(2, b"b")], "a", Err(FeedFault::Broken), 1),
            (vec![batch(1, b"a"), skipped(2, 5), batch(5, b"e")], "ae", Ok(()), 5),
            (vec![skipped(1, 7), batch(7, b"g"), batch(4, b"d")], "g", Ok(()), 7),
            (vec![skipped(1, 7), batch(0, b"h"), batch(0, b"i"), batch(7, b"g")], "hig", Ok(()), 7),
        ];
        for (messages, taken, result, after) in cases {
            let mut feed = Feed::default();
            assert_eq!(push(&mut feed, &messages), (taken.to_owned(), result), "{messages:?}");
            assert_eq!(asks_after(&mut feed), after, "{messages:?}");
        }
    }

    #[test]
    fn the_time_of_sending_is_passed_on_where_it_is_known() {
        let sent = |seq, sent_us| Message::Batch(Batch { seq, sent_us, chunks: b"" });
        let mut taken = Vec::new();
        let messages = bytes(&[sent(0, 0), sent(1, 0), sent(2, 1_700_000_000_000_000)]);
        Feed::default().push(&messages, &mut |_, sent_us| taken.push(sent_us)).unwrap();
        assert_eq!(taken, [None, None, Some(1_700_000_000_000_000)]);
    }

    #[test]
    fn a_new_connection_continues_where_the_last_one_broke() {
        let mut feed = Feed::default();
        assert_eq!(asks_after(&mut feed), 0);
        let whole = bytes(&[batch(1, b"a"), batch(2, b"b")]);
        let mut taken = Vec::new();
        feed.push(&whole[..whole.len() - 1], &mut |chunks, _| taken.extend_from_slice(chunks)).unwrap();
        assert_eq!(asks_after(&mut feed), 1);
        feed.push(&bytes(&[batch(2, b"b")]), &mut |chunks, _| taken.extend_from_slice(chunks)).unwrap();
        assert_eq!(taken, b"ab");
        assert_eq!(feed.push(b"\xff\xff\xff\xff\0\0\0\0", &mut |_, _| {}), Err(FeedFault::Broken));
        assert_eq!(asks_after(&mut feed), 2, "and the next connection continues after it");
        assert_eq!(push(&mut feed, &[batch(3, b"c")]), ("c".to_owned(), Ok(())));
    }

    #[test]
    fn a_refusal_carries_the_reason() {
        let refused = |code, retry| Message::Refused(Refused { code, message: "No.".to_owned(), retry });
        let fault = |retry, wants_token| Err(FeedFault::Refused { message: "No.".to_owned(), retry, wants_token });
        for (message, want) in [
            (refused(Code::Token, false), fault(false, true)),
            (refused(Code::Session, false), fault(false, false)),
            (refused(Code::Busy, true), fault(true, false)),
        ] {
            assert_eq!(push(&mut Feed::default(), &[message]).1, want);
        }
    }

    #[test]
    fn it_knows_when_it_has_caught_up_and_when_it_is_complete() {
        let mut feed = Feed::default();
        assert!(!feed.is_caught_up());
        push(&mut feed, &[status(SessionState::Live, 2, 0, 0), batch(1, b"a")]).1.unwrap();
        assert!(!feed.is_caught_up());
        push(&mut feed, &[batch(2, b"b")]).1.unwrap();
        assert!(feed.is_caught_up() && !feed.is_done());
        push(&mut feed, &[status(SessionState::Ended, 3, 0, 0)]).1.unwrap();
        assert!(feed.is_caught_up() && !feed.is_done());
        push(&mut feed, &[batch(3, b"c")]).1.unwrap();
        assert!(feed.is_done());
        assert_eq!(feed.missed(), None);
        push(&mut feed, &[skipped(4, 6), skipped(6, 7)]).1.unwrap();
        assert_eq!(feed.missed(), Some(&(3, "kept no longer".to_owned())));
    }

    #[test]
    fn a_late_start_is_not_a_missed_batch() {
        let mut feed = Feed::default();
        assert_eq!(push(&mut feed, &[skipped(1, 7), batch(7, b"g")]), ("g".to_owned(), Ok(())));
        assert!(feed.is_late());
        assert_eq!(feed.missed(), None);
    }

    #[test]
    fn a_paused_feed_ignores_batches_and_requests_them_later() {
        let mut feed = Feed::default();
        push(&mut feed, &[status(SessionState::Live, 1, 0, 100), batch(1, b"a")]).1.unwrap();
        feed.pause();
        let later = [
            status(SessionState::Live, 2, 0, 150),
            batch(2, b"b"),
            skipped(3, 9),
            status(SessionState::Live, 9, 0, 950),
        ];
        assert_eq!(push(&mut feed, &later), (String::new(), Ok(())));
        assert!(feed.is_paused());
        assert_eq!((feed.waiting_events(), asks_after(&mut feed)), (800, 1));
        assert!(!feed.is_paused(), "a new connection continues from there");
        assert_eq!(feed.waiting_events(), 0);
        assert_eq!(push(&mut feed, &[batch(2, b"b")]), ("b".to_owned(), Ok(())));
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut feed = Feed::default();
        for (second, events) in [(0, 0), (1, 9_000), (2, 10_000), (3, 11_000), (4, 12_000)] {
            push(&mut feed, &[status(SessionState::Live, 0, second * 1_000_000, events)]).1.unwrap();
        }
        assert_eq!(feed.events_per_second(), 1_000.0);
        push(&mut feed, &[status(SessionState::Ended, 0, 5_000_000, 12_000)]).1.unwrap();
        assert_eq!(feed.events_per_second(), 0.0);
    }
}
