//! The other end of a server's sockets: a collector or viewer whose every message is chosen by the test.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use trace::limits::{ServerLimits, WireLimits};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::{HeaderName, HeaderValue};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, HandshakeError, Message as WsMessage, WebSocket};
use wire::{Batch, Code, Decoder, Goodbye, Hello, Message, PROTOCOL, Refused, Status, Watch, Welcome};

/// A received message. It owns the bytes of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A batch.
    Batch {
        /// The number.
        seq: u64,
        /// When the batch was sent.
        sent_us: i64,
        /// The chunks.
        chunks: Vec<u8>,
    },
    /// Any other.
    Message(Message<'static>),
}

/// Batches: number and chunks.
pub type Numbered = Vec<(u64, Vec<u8>)>;

/// Returns the time at which a [`Peer`] says that it sent a batch: different for each batch, the same in every run.
pub fn sent_us(seq: u64) -> i64 {
    1_700_000_000_000_000 + seq as i64
}

/// A socket of a collector or a viewer.
#[derive(Debug)]
pub struct Peer {
    socket: WebSocket<TcpStream>,
    decoder: Decoder,
    received: VecDeque<Received>,
    /// The last batch that is known to be acknowledged; 0 before the first.
    acked: u64,
}

/// The longest wait for the server.
const PATIENCE: Duration = Duration::from_secs(30);

impl Peer {
    /// Connects to `path`. Returns the status if the server refuses the upgrade.
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
            Ok((socket, _)) => Ok(Ok(Self {
                socket,
                decoder: Decoder::new(&WireLimits::default()),
                received: VecDeque::new(),
                acked: 0,
            })),
            Err(HandshakeError::Failure(Error::Http(response))) => Ok(Err(response.status().as_u16())),
            Err(error) => bail!("no socket: {error}"),
        }
    }

    /// Opens a collector's socket without sending a hello.
    pub fn collector(server: SocketAddr) -> Result<Self> {
        Self::connect(server, "/api/v1/ingest", &[])?.map_err(|status| anyhow::anyhow!("refused with {status}"))
    }

    /// Opens a collector's socket and sends a hello. Also returns the number of the next batch that the server expects.
    pub fn hello(server: SocketAddr, hello: &Hello) -> Result<(Self, u64)> {
        let mut peer = Self::collector(server)?;
        peer.say(&Message::Hello(hello.clone()))?;
        match peer.frame()? {
            Message::Welcome(Welcome { protocol: PROTOCOL, next }) => {
                peer.acked = next.saturating_sub(1);
                Ok((peer, next))
            }
            other => bail!("no welcome but {other:?}"),
        }
    }

    /// Opens a viewer's socket that wants the batches after a number.
    pub fn viewer(server: SocketAddr, session: &str, after: u64) -> Result<Self> {
        Self::watch(server, session, Watch { protocol: PROTOCOL, after, ..Watch::default() })
    }

    /// Opens a viewer's socket that wants every batch and can hold so many events.
    pub fn viewer_of(server: SocketAddr, session: &str, events: u64) -> Result<Self> {
        Self::watch(server, session, Watch { protocol: PROTOCOL, events, ..Watch::default() })
    }

    /// Opens a viewer's socket with a token.
    pub fn viewer_with(server: SocketAddr, session: &str, token: &str) -> Result<Self> {
        Self::watch(server, session, Watch { protocol: PROTOCOL, token: token.to_owned(), ..Watch::default() })
    }

    fn watch(server: SocketAddr, session: &str, watch: Watch) -> Result<Self> {
        let connected = Self::connect(server, &format!("/api/v1/sessions/{session}/live"), &[])?;
        let mut peer = connected.map_err(|status| anyhow::anyhow!("refused with {status}"))?;
        peer.say(&Message::Watch(watch))?;
        Ok(peer)
    }

    /// Sends a message.
    pub fn say(&mut self, frame: &Message<'_>) -> Result<()> {
        self.send(frame.to_bytes())
    }

    /// Sends bytes, in pieces of the length that the server takes from strangers.
    pub fn send(&mut self, bytes: Vec<u8>) -> Result<()> {
        let bytes = tungstenite::Bytes::from(bytes);
        let most = ServerLimits::default().socket_bytes;
        (0..bytes.len()).step_by(most).try_for_each(|from| {
            let piece = bytes.slice(from..bytes.len().min(from + most));
            Ok(self.socket.send(WsMessage::Binary(piece))?)
        })
    }

    /// Sends bytes as one message of the WebSocket.
    pub fn send_whole(&mut self, bytes: Vec<u8>) -> Result<()> {
        Ok(self.socket.send(WsMessage::Binary(bytes.into()))?)
    }

    /// Sends a batch with the time [`sent_us`].
    pub fn batch(&mut self, seq: u64, chunks: &[u8]) -> Result<()> {
        self.say(&Message::Batch(Batch { seq, sent_us: sent_us(seq), chunks }))
    }

    /// Ends a session after the batch `seq`, and waits until the server has noted it: the acknowledgement of the batch is
    /// taken first, since that of the goodbye has the same number.
    pub fn end(&mut self, seq: u64) -> Result<()> {
        if self.acked < seq {
            self.acked(seq)?;
        }
        self.goodbye(seq)?;
        self.acked(seq)
    }

    /// Sends the end of a session.
    pub fn goodbye(&mut self, seq: u64) -> Result<()> {
        self.say(&Message::Goodbye(Goodbye { seq }))
    }

    /// Returns the next message. Fails if the socket ends first.
    pub fn receive(&mut self) -> Result<Received> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Ok(message);
            }
            let message = self.socket.read().context("the socket ended")?;
            let WsMessage::Binary(bytes) = message else { continue };
            let received = &mut self.received;
            self.decoder.push(&bytes, &mut |frame| received.push_back(own(frame)))?;
        }
    }

    /// Returns the next message that is not a batch.
    pub fn frame(&mut self) -> Result<Message<'static>> {
        loop {
            if let Received::Message(frame) = self.receive()? {
                return Ok(frame);
            }
        }
    }

    /// Waits until everything up to a batch is acknowledged.
    pub fn acked(&mut self, seq: u64) -> Result<()> {
        loop {
            match self.frame()? {
                Message::Ack(ack) => {
                    self.acked = ack.seq;
                    if ack.seq >= seq {
                        return Ok(());
                    }
                }
                other => bail!("no ack but {other:?}"),
            }
        }
    }

    /// Waits for a refusal. Returns its code and whether the peer may try again.
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

    /// Waits for a status with a property.
    pub fn status(&mut self, is_wanted: impl Fn(&Status) -> bool) -> Result<Status> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Message::Status(status) = self.frame()?
                && is_wanted(&status)
            {
                return Ok(status);
            }
        }
        bail!("no such status arrived")
    }

    /// Returns all batches up to a number in the order of their arrival, and the skipped ranges between them as
    /// `(from, to)`.
    pub fn batches(&mut self, last: u64) -> Result<(Numbered, Vec<(u64, u64)>)> {
        let (mut batches, mut gaps) = (Vec::new(), Vec::new());
        loop {
            match self.receive()? {
                Received::Batch { seq, chunks, .. } => {
                    batches.push((seq, chunks));
                    if seq >= last {
                        return Ok((batches, gaps));
                    }
                }
                Received::Message(Message::Skipped(gap)) => gaps.push((gap.from, gap.to)),
                Received::Message(_) => {}
            }
        }
    }

    /// Closes the socket in order.
    pub fn close(mut self) {
        let _ = self.socket.close(None);
        while self.socket.read().is_ok() {}
    }

    /// Returns the connection.
    pub fn stream(&self) -> &TcpStream {
        self.socket.get_ref()
    }
}

fn own(frame: Message<'_>) -> Received {
    Received::Message(match frame {
        Message::Batch(Batch { seq, sent_us, chunks }) => {
            return Received::Batch { seq, sent_us, chunks: chunks.to_vec() };
        }
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
