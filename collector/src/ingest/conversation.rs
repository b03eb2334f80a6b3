//! What a collector says, frame by frame, whatever carries the bytes.

use std::sync::Arc;

use shared::limits::WireLimits;
use shared::wire::{Ack, Ask, Batch, Decoder, Goodbye, Hello, Message, PROTOCOL, Welcome};

use super::pipe::Pipe;
use super::{IngestError, Reply, Sessions};

/// See the module.
#[derive(Debug)]
pub struct Conversation {
    sessions: Arc<Sessions>,
    decoder: Decoder,
    /// The request had the token.
    is_known: bool,
    pipe: Option<Pipe>,
}

/// A frame that came whole, for as long as the next ones are read.
enum Said {
    Hello(Hello),
    Batch {
        seq: u64,
        sent_us: i64,
        chunks: Vec<u8>,
    },
    Goodbye(u64),
    /// A frame that is not a collector's.
    Other,
}

impl Conversation {
    /// At its start. `is_known` where the request that began it had the token.
    pub fn new(sessions: Arc<Sessions>, is_known: bool) -> Self {
        Self { sessions, decoder: Decoder::new(&WireLimits::default()), is_known, pipe: None }
    }

    /// Whether the hello was taken.
    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Takes more bytes; gives the frames to answer with at once. Waits while too much is on its way to the disk.
    pub async fn push(&mut self, bytes: &[u8], answer: &mut Vec<u8>) -> Result<(), IngestError> {
        let mut said = Vec::new();
        let read = self.decoder.push(bytes, &mut |frame| {
            said.push(match frame {
                Message::Hello(hello) => Said::Hello(hello),
                Message::Batch(Batch { seq, sent_us, chunks }) => Said::Batch { seq, sent_us, chunks: chunks.to_vec() },
                Message::Goodbye(Goodbye { seq }) => Said::Goodbye(seq),
                // Of a later version; the protocol says that it can do without.
                Message::Unknown(_) => return,
                _ => Said::Other,
            });
        });
        for said in said {
            self.take(said, answer).await?;
        }
        read.map_err(|error| IngestError::Malformed(error.to_string()))
    }

    async fn take(&mut self, said: Said, answer: &mut Vec<u8>) -> Result<(), IngestError> {
        match (said, &self.pipe) {
            (Said::Hello(hello), None) => self.hello(hello, answer).await,
            (Said::Batch { seq, sent_us, chunks }, Some(pipe)) => {
                pipe.batch((seq, sent_us), chunks).await;
                Ok(())
            }
            (Said::Goodbye(seq), Some(pipe)) => {
                pipe.goodbye(seq);
                Ok(())
            }
            (Said::Hello(_), Some(_)) => Err(IngestError::Malformed("a hello comes once".to_owned())),
            (_, None) => Err(IngestError::Malformed("the first frame is a hello".to_owned())),
            (Said::Other, _) => Err(IngestError::Malformed("this frame is not for a collector to send".to_owned())),
        }
    }

    async fn hello(&mut self, hello: Hello, answer: &mut Vec<u8>) -> Result<(), IngestError> {
        let (sessions, is_known) = (Arc::clone(&self.sessions), self.is_known);
        let joined = tokio::task::spawn_blocking(move || sessions.join(&hello, is_known)).await;
        let joined = joined.unwrap_or(Err(IngestError::Restart))?;
        Message::Welcome(Welcome { protocol: PROTOCOL, next: joined.next }).encode(answer);
        self.pipe = Some(Pipe::new(&self.sessions, joined)?);
        Ok(())
    }

    /// Waits for something to tell the collector. Never resolves before the hello.
    pub async fn next(&mut self) -> News {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let session = Arc::clone(&pipe.session);
        let replaced = pipe.replaced();
        tokio::select! {
            reply = pipe.reply() => reply.map_or(News::Over(None), |reply| tell(&reply)),
            () = session.asked.notified() => News::Frames(asks(session.take_asks())),
            () = replaced => News::Over(Some(Message::Refused(IngestError::Replaced.refused()).to_bytes())),
        }
    }

    /// No more will come: waits until what came is stored, and gives what there is to tell.
    pub async fn finish(&mut self) -> Vec<u8> {
        let Some(mut pipe) = self.pipe.take() else { return Vec::new() };
        pipe.close();
        let mut last = Reply::default();
        while let Some(reply) = pipe.reply().await {
            last = reply;
        }
        let mut frames = asks(pipe.session.take_asks());
        if let News::Frames(told) | News::Over(Some(told)) = tell(&last) {
            frames.extend(told);
        }
        frames
    }
}

/// What there is to tell a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// These frames.
    Frames(Vec<u8>),
    /// These, if any, and no more.
    Over(Option<Vec<u8>>),
}

fn tell(reply: &Reply) -> News {
    let mut frames = Vec::new();
    if let Some(seq) = reply.acked {
        Message::Ack(Ack { seq }).encode(&mut frames);
    }
    match &reply.refused {
        None => News::Frames(frames),
        Some(refused) => {
            Message::Refused(refused.clone()).encode(&mut frames);
            News::Over(Some(frames))
        }
    }
}

fn asks(asks: Vec<String>) -> Vec<u8> {
    let mut frames = Vec::new();
    for what in asks {
        Message::Ask(Ask { what }).encode(&mut frames);
    }
    frames
}
