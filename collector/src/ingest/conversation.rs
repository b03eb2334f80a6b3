//! The protocol with one collector, message by message, whatever transport carries the bytes.
//!
//! Until its hello was accepted, a collector may be anybody. So the first message must be a hello, its length has a limit of
//! its own, and a permit of the collectors is taken only after it has shown the token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trace::limits::WireLimits;
use wire::{Ack, Ask, Batch, Decoder, Goodbye, Hello, Message, PROTOCOL, Welcome};

use tokio::sync::OwnedSemaphorePermit;

use super::pipe::Pipe;
use super::{IngestError, Reply, Session, Sessions};
use crate::access::{Caller, Pauses, Role, Seat, audit};

/// One collector's connection or request, from its hello on.
#[derive(Debug)]
pub struct Conversation {
    sessions: Arc<Sessions>,
    decoder: Decoder,
    /// Who sends it. Its grant is known when the conversation is open.
    caller: Caller,
    /// Its count among the live sessions of its token.
    seat: Option<Seat>,
    /// The session, and its events that were counted for the quota of its token.
    charged: Option<(Arc<Session>, u64)>,
    pauses: Pauses,
    pipe: Option<Pipe>,
    /// Its permit among the collectors, from the hello on.
    permit: Option<Arc<OwnedSemaphorePermit>>,
    /// It has one request, and the collector's next one is another conversation.
    is_request: bool,
}

/// A message that was received, copied out of the decoder's buffer.
enum Incoming {
    Hello(Hello),
    Batch {
        seq: u64,
        sent_us: i64,
        chunks: Vec<u8>,
    },
    Goodbye(u64),
    /// A message of a later version.
    Later,
    /// A message that collectors must not send.
    Other,
}

/// Copies a message out of the decoder's buffer.
fn own(message: Message<'_>) -> Incoming {
    match message {
        Message::Hello(hello) => Incoming::Hello(hello),
        Message::Batch(Batch { seq, sent_us, chunks }) => Incoming::Batch { seq, sent_us, chunks: chunks.to_vec() },
        Message::Goodbye(Goodbye { seq }) => Incoming::Goodbye(seq),
        Message::Unknown(_) => Incoming::Later,
        _ => Incoming::Other,
    }
}

impl Conversation {
    /// Creates a conversation with the sender of a request.
    pub fn new(sessions: Arc<Sessions>, caller: Caller) -> Self {
        let first = WireLimits { frame_bytes: sessions.limits().hello_bytes, ..WireLimits::default() };
        Self {
            sessions,
            decoder: Decoder::new(&first),
            caller,
            seat: None,
            charged: None,
            pauses: Pauses::default(),
            pipe: None,
            permit: None,
            is_request: false,
        }
    }

    /// Makes it that of a single request: between two of them, the collector is not connected.
    #[must_use]
    pub fn of_request(mut self) -> Self {
        self.is_request = true;
        self
    }

    /// Returns the sender.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Counts the events that were stored since the last call. Returns the time to wait before more is read, if the token's
    /// quota of events is exceeded.
    pub fn pause(&mut self) -> Option<Duration> {
        let (Some((session, charged)), Ok(Some(grant))) = (&mut self.charged, &self.caller.grant) else { return None };
        self.pauses.rest(Instant::now(), || {
            let events = session.look(|view| view.totals.events());
            grant.charge_events(events.saturating_sub(std::mem::replace(charged, events)))
        })
    }

    /// Whether the hello was accepted.
    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads more bytes and appends the messages to answer with at once. Waits while too much is queued for the disk.
    pub async fn push(&mut self, bytes: &[u8], answer: &mut Vec<u8>) -> Result<(), IngestError> {
        let mut bytes = bytes;
        // One at a time: the next one is not even decoded before this one was dealt with.
        loop {
            let incoming = match self.decoder.read(&mut bytes) {
                Ok(Some(message)) => own(message),
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.refused(IngestError::Malformed(error.to_string()))),
            };
            self.receive(incoming, answer).await?;
        }
    }

    async fn receive(&mut self, message: Incoming, answer: &mut Vec<u8>) -> Result<(), IngestError> {
        if let (Some(_), Ok(Some(grant))) = (&self.pipe, &self.caller.grant) {
            grant.check(Role::Ingest)?;
        }
        match (message, &mut self.pipe) {
            (Incoming::Hello(hello), None) => self.hello(hello, answer).await,
            (Incoming::Batch { seq, sent_us, chunks }, Some(pipe)) => {
                pipe.batch((seq, sent_us), chunks).await;
                self.pauses.note_batch();
                Ok(())
            }
            (Incoming::Goodbye(seq), Some(pipe)) => {
                pipe.goodbye(seq);
                if let Some(seat) = &mut self.seat {
                    seat.end();
                }
                Ok(())
            }
            (Incoming::Hello(_), Some(_)) => Err(self.malformed("only the first message may be a hello")),
            (_, None) => Err(self.malformed("the first message must be a hello")),
            // The protocol allows to ignore it.
            (Incoming::Later, _) => Ok(()),
            (Incoming::Other, _) => Err(self.malformed("collectors must not send this kind of message")),
        }
    }

    async fn hello(&mut self, hello: Hello, answer: &mut Vec<u8>) -> Result<(), IngestError> {
        let mut permit = None;
        // A collector of another version learns that first, whatever its token.
        if hello.protocol == PROTOCOL {
            let identified = self.sessions.access().identify(&self.caller, &hello.token);
            let grant = identified.map_err(|denied| self.refused(denied.into()))?;
            if grant.check(Role::Ingest).is_ok() {
                let free = Arc::clone(&self.sessions.collectors).try_acquire_owned();
                let busy = |_| self.refused(IngestError::Busy("this server has as many collectors as it allows"));
                permit = Some(Arc::new(free.map_err(busy)?));
            }
            self.caller = Caller::with(self.caller.peer, grant);
        }
        let (sessions, caller) = (Arc::clone(&self.sessions), self.caller.clone());
        // If this is dropped meanwhile, the permit and the connection are given back when the collector was admitted.
        let joined = tokio::task::spawn_blocking(move || (sessions.join(&hello, &caller), permit)).await;
        let (joined, permit) = joined.unwrap_or((Err(IngestError::Restart), None));
        let mut joined = joined?;
        self.permit.clone_from(&permit);
        self.decoder.set_limit(WireLimits::default().frame_bytes);
        self.seat = joined.seat.take();
        joined.session.note_transport(self.is_request);
        let events = joined.session.look(|view| view.totals.events());
        self.charged = Some((Arc::clone(&joined.session), events));
        Message::Welcome(Welcome { protocol: PROTOCOL, next: joined.next }).encode(answer);
        self.pipe = Some(Pipe::new(&self.sessions, joined, permit)?);
        Ok(())
    }

    fn malformed(&self, what: &str) -> IngestError {
        self.refused(IngestError::Malformed(what.to_owned()))
    }

    /// Logs that the collector is refused.
    fn refused(&self, error: IngestError) -> IngestError {
        error.log_refusal(self.pipe.as_ref().map_or("", |pipe| pipe.session.id()));
        error
    }

    /// Ends the conversation. Returns its permit among the collectors, to be held for as long as the connection exists.
    pub(crate) fn into_permit(self) -> Option<Arc<OwnedSemaphorePermit>> {
        self.permit
    }

    /// Waits for something to send to the collector. Never resolves before the hello.
    pub async fn next(&mut self) -> Outgoing {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let session = Arc::clone(&pipe.session);
        let replaced = pipe.replaced();
        let grant = self.caller.grant.clone().ok().flatten();
        let ended = async {
            match &grant {
                Some(grant) => grant.ended(Role::Ingest).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            reply = pipe.reply() => reply.map_or(Outgoing::Last(None), |reply| encode_reply(&reply)),
            () = session.asked.notified() => Outgoing::Messages(encode_asks(session.drain_asks())),
            () = replaced => {
                Outgoing::Last(Some(Message::Refused(IngestError::Replaced.refused()).to_bytes()))
            }
            denied = ended => {
                audit::denied(&self.caller, session.id(), &denied);
                Outgoing::Last(Some(Message::Refused(IngestError::from(denied).refused()).to_bytes()))
            }
        }
    }

    /// Ends the input: waits until everything received is stored, and returns the last messages to send.
    pub async fn finish(&mut self) -> Vec<u8> {
        let Some(mut pipe) = self.pipe.take() else { return Vec::new() };
        pipe.close();
        let mut last = Reply::default();
        while let Some(reply) = pipe.reply().await {
            last = reply;
        }
        let mut messages = encode_asks(pipe.session.drain_asks());
        if let Outgoing::Messages(more) | Outgoing::Last(Some(more)) = encode_reply(&last) {
            messages.extend(more);
        }
        messages
    }
}

/// Encoded messages for a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// Messages to send; more may follow.
    Messages(Vec<u8>),
    /// The last messages, if any; the conversation is over.
    Last(Option<Vec<u8>>),
}

fn encode_reply(reply: &Reply) -> Outgoing {
    let mut messages = Vec::new();
    if let Some(seq) = reply.acked {
        Message::Ack(Ack { seq }).encode(&mut messages);
    }
    match &reply.refused {
        None => Outgoing::Messages(messages),
        Some(refused) => {
            Message::Refused(refused.clone()).encode(&mut messages);
            Outgoing::Last(Some(messages))
        }
    }
}

fn encode_asks(asks: Vec<String>) -> Vec<u8> {
    let mut messages = Vec::new();
    for what in asks {
        Message::Ask(Ask { what }).encode(&mut messages);
    }
    messages
}
