//! The other end of a server's sockets: a collector or viewer that says what a test wants said, in the order that it wants.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use shared::limits::WireLimits;
use shared::wire::{Batch, Code, Decoder, Goodbye, Hello, Message, PROTOCOL, Refused, Status, Watch, Welcome};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::{HeaderName, HeaderValue};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, HandshakeError, Message as WsMessage, WebSocket};

/// A frame that came. The bytes of a batch are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// A batch.
    Batch {
        /// Its number.
        seq: u64,
        /// When it was sent.
        sent_us: i64,
        /// Its chunks.
        chunks: Vec<u8>,
    },
    /// Any other.
    Message(Message<'static>),
}

/// Batches: the number and the chunks of each.
pub type Numbered = Vec<(u64, Vec<u8>)>;

/// When a batch is sent, by the clock of a [`Peer`]: another time for each, and the same in each run.
pub fn sent_us(seq: u64) -> i64 {
    1_700_000_000_000_000 + seq as i64
}

/// A socket of a collector or a viewer.
#[derive(Debug)]
pub struct Peer {
    socket: WebSocket<TcpStream>,
    decoder: Decoder,
    came: VecDeque<Came>,
}

/// Time that a server has to answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl Peer {
    /// Connects to `path`; a server that upgrades nothing gives its status.
    pub fn connect(server: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Result<Self, u16>> {
        let mut request = format!("ws://{server}{path}").into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        match tungstenite::client::client_with_config(request, stream, Some(config)) {
            Ok((socket, _)) => {
                Ok(Ok(Self { socket, decoder: Decoder::new(&WireLimits::default()), came: VecDeque::new() }))
            }
            Err(HandshakeError::Failure(Error::Http(response))) => Ok(Err(response.status().as_u16())),
            Err(error) => bail!("no socket: {error}"),
        }
    }

    /// A collector's socket, before its hello.
    pub fn collector(server: SocketAddr) -> Result<Self> {
        Self::connect(server, "/api/v1/ingest", &[])?.map_err(|status| anyhow::anyhow!("refused with {status}"))
    }

    /// A collector that has said hello; gives the batch that is wanted next.
    pub fn hello(server: SocketAddr, hello: &Hello) -> Result<(Self, u64)> {
        let mut peer = Self::collector(server)?;
        peer.say(&Message::Hello(hello.clone()))?;
        match peer.frame()? {
            Message::Welcome(Welcome { protocol: PROTOCOL, next }) => Ok((peer, next)),
            other => bail!("no welcome but {other:?}"),
        }
    }

    /// A viewer of a session that has said from where it wants it.
    pub fn viewer(server: SocketAddr, session: &str, after: u64) -> Result<Self> {
        Self::watch(server, session, Watch { protocol: PROTOCOL, after, ..Watch::default() })
    }

    /// One from the start on that can hold so many events.
    pub fn viewer_of(server: SocketAddr, session: &str, events: u64) -> Result<Self> {
        Self::watch(server, session, Watch { protocol: PROTOCOL, events, ..Watch::default() })
    }

    /// One that has shown a token.
    pub fn viewer_with(server: SocketAddr, session: &str, token: &str) -> Result<Self> {
        Self::watch(server, session, Watch { protocol: PROTOCOL, token: token.to_owned(), ..Watch::default() })
    }

    fn watch(server: SocketAddr, session: &str, watch: Watch) -> Result<Self> {
        let connected = Self::connect(server, &format!("/api/v1/sessions/{session}/live"), &[])?;
        let mut peer = connected.map_err(|status| anyhow::anyhow!("refused with {status}"))?;
        peer.say(&Message::Watch(watch))?;
        Ok(peer)
    }

    /// Sends a frame.
    pub fn say(&mut self, frame: &Message<'_>) -> Result<()> {
        self.send(frame.to_bytes())
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        Ok(self.socket.send(WsMessage::Binary(bytes.into()))?)
    }

    /// Sends a batch, at the time that [`sent_us`] says.
    pub fn batch(&mut self, seq: u64, chunks: &[u8]) -> Result<()> {
        self.say(&Message::Batch(Batch { seq, sent_us: sent_us(seq), chunks }))
    }

    /// Sends the end of a session.
    pub fn goodbye(&mut self, seq: u64) -> Result<()> {
        self.say(&Message::Goodbye(Goodbye { seq }))
    }

    /// The next frame; an error where the socket ends before one.
    pub fn came(&mut self) -> Result<Came> {
        loop {
            if let Some(came) = self.came.pop_front() {
                return Ok(came);
            }
            let message = self.socket.read().context("the socket ended")?;
            let WsMessage::Binary(bytes) = message else { continue };
            let came = &mut self.came;
            self.decoder.push(&bytes, &mut |frame| came.push_back(own(frame)))?;
        }
    }

    /// The next frame that is no batch.
    pub fn frame(&mut self) -> Result<Message<'static>> {
        loop {
            if let Came::Message(frame) = self.came()? {
                return Ok(frame);
            }
        }
    }

    /// Waits until everything up to a batch is acknowledged.
    pub fn acked(&mut self, seq: u64) -> Result<()> {
        loop {
            match self.frame()? {
                Message::Ack(ack) if ack.seq >= seq => return Ok(()),
                Message::Ack(_) => {}
                other => bail!("no ack but {other:?}"),
            }
        }
    }

    /// Waits for a refusal; gives its code and whether it may be tried again.
    pub fn refused(&mut self) -> Result<(Code, bool)> {
        loop {
            match self.frame()? {
                Message::Refused(Refused { code, message, retry }) => {
                    ensure!(!message.is_empty() && !message.contains('\n'), "no sentence: {message:?}");
                    return Ok((code, retry));
                }
                Message::Ack(_) | Message::Status(_) => {}
                other => bail!("not refused but {other:?}"),
            }
        }
    }

    /// Waits for a status that a test wants.
    pub fn status(&mut self, is_wanted: impl Fn(&Status) -> bool) -> Result<Status> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Message::Status(status) = self.frame()?
                && is_wanted(&status)
            {
                return Ok(status);
            }
        }
        bail!("no such status came")
    }

    /// All batches up to one, in the order in which they come; and the gaps between, as `(from, to)`.
    pub fn batches(&mut self, last: u64) -> Result<(Numbered, Vec<(u64, u64)>)> {
        let (mut batches, mut gaps) = (Vec::new(), Vec::new());
        loop {
            match self.came()? {
                Came::Batch { seq, chunks, .. } => {
                    batches.push((seq, chunks));
                    if seq >= last {
                        return Ok((batches, gaps));
                    }
                }
                Came::Message(Message::Skipped(gap)) => gaps.push((gap.from, gap.to)),
                Came::Message(_) => {}
            }
        }
    }

    /// Closes it as one should.
    pub fn close(mut self) {
        let _ = self.socket.close(None);
        while self.socket.read().is_ok() {}
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        self.socket.get_ref()
    }
}

fn own(frame: Message<'_>) -> Came {
    Came::Message(match frame {
        Message::Batch(Batch { seq, sent_us, chunks }) => return Came::Batch { seq, sent_us, chunks: chunks.to_vec() },
        Message::Hello(frame) => Message::Hello(frame),
        Message::Goodbye(frame) => Message::Goodbye(frame),
        Message::Welcome(frame) => Message::Welcome(frame),
        Message::Ack(frame) => Message::Ack(frame),
        Message::Refused(frame) => Message::Refused(frame),
        Message::Ask(frame) => Message::Ask(frame),
        Message::Watch(frame) => Message::Watch(frame),
        Message::Status(frame) => Message::Status(frame),
        Message::Skipped(frame) => Message::Skipped(frame),
        Message::Unknown(kind) => Message::Unknown(kind),
    })
}
