//! The common data of both transports, WebSockets and POST requests: one session's identity, its server, and the shared
//! state.

use std::fmt::Display;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use trace::limits::PublishLimits;
use wire::{Batch, Hello, Message, PROTOCOL, Refused};

use super::destination::Destination;
use super::state::SharedState;
use super::stream::Stream;
use super::trust::{self, unwrap};

/// The longest header of a recording that is sent in a hello: half of
/// [`ServerLimits::hello_bytes`](trace::limits::ServerLimits), as there are other fields.
const HEADER_BYTES: usize = 32 << 10;

/// One session, as its server sees it.
pub(super) struct Client {
    pub(super) shared: Arc<SharedState>,
    pub(super) destination: Destination,
    pub(super) session: String,
    /// Proves to the server that later connections belong to the session.
    pub(super) key: String,
    pub(super) limits: PublishLimits,
    /// How connections are encrypted, if they are.
    pub(super) tls: Option<ClientTls>,
}

/// The configuration of a TLS handshake.
pub(super) struct ClientTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl ClientTls {
    /// Returns what a destination needs: nothing, unless its scheme is https. The error is a sentence for a person.
    pub(super) fn of(destination: &Destination) -> Result<Option<Self>, String> {
        if !destination.is_secure {
            return Ok(None);
        }
        let name = trust::server_name(&destination.host)?;
        Ok(Some(Self { config: destination.trust.config()?, name }))
    }
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Everything is delivered, or the time for that is over.
    Ended,
    /// It failed in a way that may not happen again.
    Lost(String),
    /// The server's certificate is not trusted. A person can change that while the job runs.
    Untrusted(String),
    /// The server refused, with a reason.
    Refused(Refused),
    /// Something on the way blocks WebSockets.
    NoSocket(String),
    /// Requests succeeded; it is time to try a WebSocket again.
    TrySocket,
}

impl Client {
    /// Opens a TCP connection to the server, trying each of its addresses for at most `connect_millis`: the system's
    /// own limit may be minutes.
    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let timeout = Duration::from_millis(self.limits.connect_millis);
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
        let host = self.destination.host.trim_start_matches('[').trim_end_matches(']');
        for address in (host, self.destination.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    let answer_time = Some(self.answer_time());
                    stream.set_read_timeout(answer_time)?;
                    stream.set_write_timeout(answer_time)?;
                    return Ok(stream);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Encrypts a connection if the destination demands it. Errors say what is wrong with the server's certificate.
    pub(super) fn secure(&self, socket: TcpStream) -> Result<Stream, Outcome> {
        let Some(tls) = &self.tls else { return Ok(Stream::plain(socket)) };
        let stream = Stream::secure(socket, Arc::clone(&tls.config), tls.name.clone(), self.answer_time());
        let explain = |error: io::Error| match unwrap(&error) {
            Some(cause @ rustls::Error::InvalidCertificate(_)) => {
                Outcome::Untrusted(self.describe(self.destination.explain(cause)))
            }
            Some(cause) => self.lost(self.destination.explain(cause)),
            None => self.lost(error),
        };
        let stream = stream.map_err(explain)?;
        let answer_time = Some(self.answer_time());
        let timed = stream.set_read_timeout(answer_time).and_then(|()| stream.set_write_timeout(answer_time));
        timed.map(|()| stream).map_err(|error| self.lost(error))
    }

    /// Returns how long the server may take to answer.
    pub(super) fn answer_time(&self) -> Duration {
        Duration::from_millis(self.limits.answer_millis)
    }

    /// Encodes the first message of every connection.
    pub(super) fn hello(&self) -> Vec<u8> {
        let state = self.shared.lock();
        let (mut header, first) = (state.header.clone(), state.queue.acked() + 1);
        drop(state);
        // The first batch has it, too. A server refuses a hello that is much longer.
        if header.len() > HEADER_BYTES {
            header.clear();
        }
        let hello = Hello {
            protocol: PROTOCOL,
            session: self.session.clone(),
            key: self.key.clone(),
            token: self.destination.token.clone().unwrap_or_default(),
            mode: self.destination.mode.clone(),
            header,
            first,
        };
        Message::Hello(hello).to_bytes()
    }

    /// Returns an error's text with the server's address before it.
    pub(super) fn describe(&self, error: impl Display) -> String {
        format!("{}: {error}", self.destination.address())
    }

    /// Ends a connection for an error that may not happen again.
    pub(super) fn lost(&self, error: impl Display) -> Outcome {
        Outcome::Lost(self.describe(error))
    }
}

/// Encodes a batch as a message with the present time.
pub(super) fn encode_batch(seq: u64, chunks: &[u8], out: &mut Vec<u8>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let sent_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    // The message's own fields need fewer than 64 bytes.
    out.reserve(chunks.len() + 64);
    Message::Batch(Batch { seq, sent_us, chunks }).encode(out);
}
