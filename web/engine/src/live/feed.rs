//! What a server says of a session: frames in, chunks of the trace out, each once and in order, whatever becomes of the
//! connection in between.

use std::collections::VecDeque;

use shared::limits::{LiveLimits, WireLimits};
use shared::wire::{Batch, Code, Decoder, Message, PROTOCOL, Refused, SessionState, Skipped, Status, Watch};

/// Reports of the server that the rate of events is taken from: some seconds.
const REPORTS: usize = 4;

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What comes is no stream of frames, or leaves something out: a new connection goes on from what is here.
    Broken,
    /// The server says no.
    Refused {
        /// Why: a sentence.
        message: String,
        /// Whether the same may be tried later.
        retry: bool,
        /// Whether a token would help.
        wants_token: bool,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Feed {
    decoder: Decoder,
    /// The last batch that came.
    after: u64,
    /// The last batch that the server had when it was first asked; `None` before it told.
    target: Option<u64>,
    status: Status,
    /// The server's clock and its count of events, of the last reports.
    reports: VecDeque<(i64, u64)>,
    missed: Option<(u64, String)>,
    /// Whether what comes begins later than the session did.
    is_late: bool,
    /// Whether batches are let pass: what they hold is asked for later.
    is_held: bool,
    /// Events that the server had when it told for the first time since then.
    held_at: Option<u64>,
    fault: Option<Fault>,
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
            is_held: false,
            held_at: None,
            fault: None,
        }
    }
}

impl Feed {
    /// Begins a connection; gives what is to be sent first.
    pub fn begin(&mut self, token: &str) -> Vec<u8> {
        self.decoder = Decoder::new(&WireLimits::default());
        self.fault = None;
        if std::mem::take(&mut self.is_held) {
            // What was let pass comes first.
            self.target = None;
        }
        let events = LiveLimits::default().events as u64;
        Watch { protocol: PROTOCOL, token: token.to_owned(), after: self.after, events }.to_bytes()
    }

    /// Reads what came; `take` gets the chunks of each batch that is new, and when it was sent by the collector's clock,
    /// where that is known.
    pub fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8], Option<i64>)) -> Result<(), Fault> {
        let mut decoder = std::mem::replace(&mut self.decoder, Decoder::new(&WireLimits::default()));
        let read = decoder.push(bytes, &mut |frame| {
            // After a fault nothing is believed any more.
            if self.fault.is_none() {
                self.fault = self.hear(frame, take).err();
            }
        });
        self.decoder = decoder;
        match self.fault.clone() {
            Some(fault) => Err(fault),
            None => read.map_err(|_| Fault::Broken),
        }
    }

    fn hear(&mut self, frame: Message<'_>, take: &mut dyn FnMut(&[u8], Option<i64>)) -> Result<(), Fault> {
        match frame {
            Message::Batch(_) | Message::Skipped(_) if self.is_held => {}
            Message::Batch(Batch { seq, sent_us, chunks }) => {
                let next = self.after.saturating_add(1);
                if seq > next {
                    return Err(Fault::Broken);
                }
                // What came twice counts once. Large names and states come by themselves, before the first batch.
                if seq == next || seq == 0 {
                    self.after = self.after.max(seq);
                    take(chunks, Some(sent_us).filter(|&sent_us| sent_us > 0));
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
                self.held_at.get_or_insert(status.events);
                self.status = status;
                self.reports.push_back((status.now_us, status.events));
                if self.reports.len() > REPORTS {
                    self.reports.pop_front();
                }
            }
            Message::Refused(Refused { code, message, retry }) => {
                return Err(Fault::Refused { message, retry, wants_token: code == Code::Token });
            }
            // Of a later build, or not for a viewer.
            _ => {}
        }
        Ok(())
    }

    /// How the session is, as the server last said.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Batches that will not come, and why.
    pub fn missed(&self) -> Option<&(u64, String)> {
        self.missed.as_ref()
    }

    /// Whether the first batches are not sent, because the viewer could not hold all, or because they are kept no longer.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// From now on nothing is taken of what comes: what it is, the server still tells. A new connection goes on from here.
    pub fn hold(&mut self) {
        if !std::mem::replace(&mut self.is_held, true) {
            self.held_at = None;
        }
    }

    /// Events that came to the server while nothing was taken, at least.
    pub fn waiting_events(&self) -> u64 {
        self.held_at.filter(|_| self.is_held).map_or(0, |at| self.status.events.saturating_sub(at))
    }

    /// Whether nothing is taken.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Whether all has come that the server had when it was first asked.
    pub fn is_caught_up(&self) -> bool {
        self.target.is_some_and(|target| self.after >= target)
    }

    /// Whether all has come that ever will.
    pub fn is_done(&self) -> bool {
        self.target.is_some() && self.status.state == SessionState::Ended && self.after >= self.status.last
    }

    /// Events per second by the server's own count; 0 unless the session is live.
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

    fn gap(from: u64, to: u64) -> Message<'static> {
        Message::Skipped(Skipped { from, to, reason: "kept no longer".to_owned() })
    }

    fn bytes(frames: &[Message<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut out));
        out
    }

    /// What a feed makes of frames: the chunks, and how it ended.
    fn hear(feed: &mut Feed, frames: &[Message<'_>]) -> (String, Result<(), Fault>) {
        let mut taken = String::new();
        let result = feed.push(&bytes(frames), &mut |chunks, _| taken += std::str::from_utf8(chunks).unwrap());
        (taken, result)
    }

    /// From which batch a feed goes on.
    fn asks_after(feed: &mut Feed) -> u64 {
        let hello = feed.begin("secret");
        let mut after = None;
        Decoder::new(&WireLimits::default())
            .push(&hello, &mut |frame| {
                let Message::Watch(watch) = frame else { panic!("{frame:?}") };
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
            (vec![batch(1, b"a"), batch(3, b"c"), batch(2, b"b")], "a", Err(Fault::Broken), 1),
            (vec![batch(1, b"a"), gap(2, 5), batch(5, b"e")], "ae", Ok(()), 5),
            (vec![gap(1, 7), batch(7, b"g"), batch(4, b"d")], "g", Ok(()), 7),
            (vec![gap(1, 7), batch(0, b"h"), batch(0, b"i"), batch(7, b"g")], "hig", Ok(()), 7),
        ];
        for (frames, taken, result, after) in cases {
            let mut feed = Feed::default();
            assert_eq!(hear(&mut feed, &frames), (taken.to_owned(), result), "{frames:?}");
            assert_eq!(asks_after(&mut feed), after, "{frames:?}");
        }
    }

    #[test]
    fn when_a_batch_was_sent_is_told_where_it_is_known() {
        let sent = |seq, sent_us| Message::Batch(Batch { seq, sent_us, chunks: b"" });
        let mut taken = Vec::new();
        let frames = bytes(&[sent(0, 0), sent(1, 0), sent(2, 1_700_000_000_000_000)]);
        Feed::default().push(&frames, &mut |_, sent_us| taken.push(sent_us)).unwrap();
        assert_eq!(taken, [None, None, Some(1_700_000_000_000_000)]);
    }

    #[test]
    fn a_new_connection_goes_on_where_the_last_one_broke() {
        let mut feed = Feed::default();
        assert_eq!(asks_after(&mut feed), 0);
        let whole = bytes(&[batch(1, b"a"), batch(2, b"b")]);
        let mut taken = Vec::new();
        feed.push(&whole[..whole.len() - 1], &mut |chunks, _| taken.extend_from_slice(chunks)).unwrap();
        assert_eq!(asks_after(&mut feed), 1);
        feed.push(&bytes(&[batch(2, b"b")]), &mut |chunks, _| taken.extend_from_slice(chunks)).unwrap();
        assert_eq!(taken, b"ab");
        assert_eq!(feed.push(b"\xff\xff\xff\xff\0\0\0\0", &mut |_, _| {}), Err(Fault::Broken));
        assert_eq!(asks_after(&mut feed), 2, "and that is how it goes on");
        assert_eq!(hear(&mut feed, &[batch(3, b"c")]), ("c".to_owned(), Ok(())));
    }

    #[test]
    fn what_is_refused_is_said() {
        let refused = |code, retry| Message::Refused(Refused { code, message: "No.".to_owned(), retry });
        let fault = |retry, wants_token| Err(Fault::Refused { message: "No.".to_owned(), retry, wants_token });
        for (frame, want) in [
            (refused(Code::Token, false), fault(false, true)),
            (refused(Code::Session, false), fault(false, false)),
            (refused(Code::Busy, true), fault(true, false)),
        ] {
            assert_eq!(hear(&mut Feed::default(), &[frame]).1, want);
        }
    }

    #[test]
    fn it_knows_when_it_has_caught_up_and_when_all_is_there() {
        let mut feed = Feed::default();
        assert!(!feed.is_caught_up());
        hear(&mut feed, &[status(SessionState::Live, 2, 0, 0), batch(1, b"a")]).1.unwrap();
        assert!(!feed.is_caught_up());
        hear(&mut feed, &[batch(2, b"b")]).1.unwrap();
        assert!(feed.is_caught_up() && !feed.is_done());
        hear(&mut feed, &[status(SessionState::Ended, 3, 0, 0)]).1.unwrap();
        assert!(feed.is_caught_up() && !feed.is_done());
        hear(&mut feed, &[batch(3, b"c")]).1.unwrap();
        assert!(feed.is_done());
        assert_eq!(feed.missed(), None);
        hear(&mut feed, &[gap(4, 6), gap(6, 7)]).1.unwrap();
        assert_eq!(feed.missed(), Some(&(3, "kept no longer".to_owned())));
    }

    #[test]
    fn who_begins_late_misses_nothing_in_between() {
        let mut feed = Feed::default();
        assert_eq!(hear(&mut feed, &[gap(1, 7), batch(7, b"g")]), ("g".to_owned(), Ok(())));
        assert!(feed.is_late());
        assert_eq!(feed.missed(), None);
    }

    #[test]
    fn what_is_held_is_let_pass_and_asked_for_later() {
        let mut feed = Feed::default();
        hear(&mut feed, &[status(SessionState::Live, 1, 0, 100), batch(1, b"a")]).1.unwrap();
        feed.hold();
        let later =
            [status(SessionState::Live, 2, 0, 150), batch(2, b"b"), gap(3, 9), status(SessionState::Live, 9, 0, 950)];
        assert_eq!(hear(&mut feed, &later), (String::new(), Ok(())));
        assert!(feed.is_held());
        assert_eq!((feed.waiting_events(), asks_after(&mut feed)), (800, 1));
        assert!(!feed.is_held(), "a new connection goes on from there");
        assert_eq!(feed.waiting_events(), 0);
        assert_eq!(hear(&mut feed, &[batch(2, b"b")]), ("b".to_owned(), Ok(())));
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut feed = Feed::default();
        for (second, events) in [(0, 0), (1, 9_000), (2, 10_000), (3, 11_000), (4, 12_000)] {
            hear(&mut feed, &[status(SessionState::Live, 0, second * 1_000_000, events)]).1.unwrap();
        }
        assert_eq!(feed.events_per_second(), 1_000.0);
        hear(&mut feed, &[status(SessionState::Ended, 0, 5_000_000, 12_000)]).1.unwrap();
        assert_eq!(feed.events_per_second(), 0.0);
    }
}
