//! Delivery over a WebSocket: one thread writes, another one reads.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trace::limits::WireLimits;
use tungstenite::handshake::HandshakeError;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message as WsMessage, WebSocket};
use wire::{Decoder, Goodbye, Message};

use super::client::{Client, Outcome, encode_batch};
use super::state::{ConnectionState, SharedState};
use super::stream::Stream;

/// The most bytes of a WebSocket message. The protocol's messages may be cut anywhere, and a proxy may have a bound.
const MESSAGE_BYTES: usize = 256 << 10;
/// The most bytes of a message from the server, which only sends numbers and sentences.
const ANSWER_BYTES: usize = 64 << 10;

/// The reader's half of a connection. tungstenite answers pings and closes by itself; after the handshake those
/// answers are discarded, because the writer may be in the middle of a message.
struct ReadHalf {
    stream: Stream,
    is_read_only: bool,
}

impl Read for ReadHalf {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for ReadHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_read_only { Ok(bytes.len()) } else { self.stream.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to the server and delivers batches until the connection ends.
pub(super) fn run(client: &Client) -> Outcome {
    let open = || -> io::Result<[TcpStream; 2]> {
        let socket = client.connect()?;
        socket.set_nodelay(true)?;
        Ok([socket.try_clone()?, socket])
    };
    let [outer, socket] = match open() {
        Ok(sockets) => sockets,
        Err(error) => return client.lost(error),
    };
    let generation = client.shared.lock().begin_connection(Some(outer));
    let secured = client.secure(socket);
    let halves = secured.and_then(|stream| match stream.try_clone() {
        Ok(read_half) => Ok((read_half, stream)),
        Err(error) => Err(client.lost(error)),
    });
    let (read_half, stream) = match halves {
        Ok(halves) => halves,
        Err(outcome) => return outcome,
    };
    // Whatever the scheme, the stream is used as it is.
    let url = format!("ws://{}{}", client.destination.authority(), client.destination.ingest_path());
    let config = WebSocketConfig::default()
        .max_message_size(Some(ANSWER_BYTES))
        .max_frame_size(Some(ANSWER_BYTES))
        .read_buffer_size(4 << 10);
    let read_half = ReadHalf { stream: read_half, is_read_only: false };
    let reader = match tungstenite::client::client_with_config(url, read_half, Some(config)) {
        Ok((reader, _)) => reader,
        Err(HandshakeError::Failure(Error::Http(response))) => {
            let asks_for_tls = |value: &str| value.split(',').any(|name| name.trim().starts_with("TLS/"));
            let upgrade = response.headers().get("upgrade").and_then(|value| value.to_str().ok());
            if !client.destination.is_secure && upgrade.is_some_and(asks_for_tls) {
                // A request would fail too, and carry the token unencrypted.
                return client.lost(client.destination.explain_plain());
            }
            let status = response.status();
            let advice = client.destination.advice(status.as_u16());
            let what = format!("the request for a WebSocket was answered with {status}{advice}");
            return Outcome::NoSocket(client.describe(what));
        }
        // A proxy has handled the upgrade itself, or removed it from the answer.
        Err(HandshakeError::Failure(error @ Error::Protocol(_))) if !is_incomplete(&error) => {
            return Outcome::NoSocket(client.describe(error));
        }
        Err(error) => return client.lost(error),
    };
    let reader = match spawn_reader(&client.shared, reader, generation) {
        Ok(reader) => reader,
        Err(error) => return client.lost(error),
    };
    client.shared.lock().is_post = false;
    let mut writer = WebSocket::from_raw_socket(stream, Role::Client, Some(config));
    let outcome = deliver(client, &mut writer);
    if matches!(outcome, Outcome::Ended) {
        // What is buffered still goes out; the server closes once it has read it.
        let _ = writer.close(None).and_then(|()| writer.flush());
        let _ = writer.get_mut().end_writing();
        if !client.shared.lock().is_ended {
            return outcome;
        }
    }
    client.shared.lock().shut_down();
    // Its socket is shut down, so it ends.
    let _ = reader.join();
    outcome
}

/// Returns whether the connection ended during the handshake.
fn is_incomplete(error: &Error) -> bool {
    matches!(error, Error::Protocol(tungstenite::error::ProtocolError::HandshakeIncomplete))
}

/// Starts the thread that reads the server's messages.
fn spawn_reader(
    shared: &Arc<SharedState>,
    mut reader: WebSocket<ReadHalf>,
    generation: u64,
) -> io::Result<JoinHandle<()>> {
    reader.get_mut().is_read_only = true;
    // The sender decides how long the server may be silent.
    reader.get_mut().stream.set_read_timeout(None)?;
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("vramscope-publisher-acks".to_owned()).spawn(move || {
        let mut decoder = Decoder::new(&WireLimits { frame_bytes: ANSWER_BYTES, ..WireLimits::default() });
        let mut why = None;
        while why.is_none() {
            let message = reader.read();
            let mut state = shared.lock();
            if state.connection.generation != generation {
                return;
            }
            state.connection.last_activity = Some(Instant::now());
            match message {
                Ok(WsMessage::Binary(bytes)) => {
                    why = decoder
                        .push(&bytes, &mut |message| state.handle_message(message))
                        .err()
                        .map(|error| error.to_string());
                }
                Ok(WsMessage::Ping(bytes)) => state.connection.ping = Some(bytes.to_vec()),
                Ok(WsMessage::Pong(_)) => state.note_answer(false),
                Ok(WsMessage::Close(frame)) => {
                    why = Some(
                        frame.map_or_else(|| "the server closed the connection".to_owned(), |frame| frame.to_string()),
                    );
                }
                Ok(_) => {}
                Err(error) => why = Some(error.to_string()),
            }
            state.connection.closed.clone_from(&why);
            drop(state);
            shared.notify();
        }
    })
}

/// The next action of the writer.
enum Next {
    Batch(u64, Arc<Vec<u8>>),
    Goodbye(u64),
    Pong(Vec<u8>),
    Ping,
    Done(Outcome),
}

/// Sends the hello, and then batches, pings, pongs and the goodbye, until the connection ends.
fn deliver(client: &Client, writer: &mut WebSocket<Stream>) -> Outcome {
    if let Err(error) = send(client, writer, client.hello()) {
        let refused = client.shared.lock().connection.refused.take();
        return refused.map_or_else(|| client.lost(error), Outcome::Refused);
    }
    loop {
        let sent = match next(client) {
            Next::Batch(number, chunks) => {
                let mut message = Vec::new();
                encode_batch(number, &chunks, &mut message);
                // The queue may release it while it is being sent.
                drop(chunks);
                send(client, writer, message)
            }
            Next::Goodbye(seq) => send(client, writer, Message::Goodbye(Goodbye { seq }).to_bytes()),
            Next::Pong(bytes) => writer.send(WsMessage::Pong(bytes.into())),
            Next::Ping => writer.send(WsMessage::Ping(Bytes::new())),
            Next::Done(outcome) => return outcome,
        };
        if let Err(error) = sent {
            // A server that refuses gives its reason and closes. The write may fail before that reason is read.
            let end = Instant::now() + Duration::from_millis(200);
            let has_reason = |connection: &ConnectionState| connection.refused.is_some() || connection.closed.is_some();
            client.shared.wait_until(end, |state| has_reason(&state.connection));
            let refused = client.shared.lock().connection.refused.take();
            return refused.map_or_else(|| client.lost(error), Outcome::Refused);
        }
    }
}

/// Waits until there is something to do.
fn next(client: &Client) -> Next {
    let answer_time = client.answer_time();
    let idle_time = Duration::from_millis(client.limits.idle_millis);
    let mut state = client.shared.lock();
    loop {
        let now = Instant::now();
        if let Some(refused) = state.connection.refused.take() {
            return Next::Done(Outcome::Refused(refused));
        }
        if state.is_ended {
            return Next::Done(Outcome::Ended);
        }
        if let Some(why) = state.connection.closed.take() {
            return Next::Done(client.lost(why));
        }
        if let Some(bytes) = state.connection.ping.take() {
            return Next::Pong(bytes);
        }
        let is_ending = state.end.is_some();
        let is_over = state.is_over();
        if state.connection.is_welcome
            && !is_over
            && let Some((number, chunks)) = state.queue.next()
        {
            state.connection.last_activity = Some(now);
            state.connection.awaiting_since.get_or_insert(now);
            return Next::Batch(number, chunks);
        }
        // At the deadline, the goodbye may follow what is sent but not acknowledged.
        let is_complete = state.queue.is_empty() || is_over && state.queue.is_sent();
        if state.connection.is_welcome && is_ending && is_complete && !state.connection.is_goodbye {
            state.connection.is_goodbye = true;
            state.connection.awaiting_since = Some(now);
            return Next::Goodbye(state.queue.last());
        }
        if is_over {
            return Next::Done(Outcome::Ended);
        }
        let answer_due = state.connection.awaiting_since.map(|since| since + answer_time);
        if answer_due.is_some_and(|end| now >= end) {
            return Next::Done(client.lost(format!("no answer for {} s", answer_time.as_secs_f32())));
        }
        let idle = state.connection.last_activity.map_or(now, |since| since + idle_time);
        if state.connection.is_welcome && now >= idle {
            state.connection.last_activity = Some(now);
            state.connection.awaiting_since.get_or_insert(now);
            return Next::Ping;
        }
        let wake = [answer_due, state.end].into_iter().flatten().fold(idle.max(now), Instant::min);
        let wait = wake.saturating_duration_since(now).max(Duration::from_millis(1));
        state = client.shared.wait(state, wait);
    }
}

fn send(client: &Client, writer: &mut WebSocket<Stream>, message: Vec<u8>) -> Result<(), Error> {
    let length = message.len();
    let message = Bytes::from(message);
    for start in (0..length).step_by(MESSAGE_BYTES) {
        let end = (start + MESSAGE_BYTES).min(length);
        writer.write(WsMessage::Binary(message.slice(start..end)))?;
    }
    writer.flush()?;
    client.shared.lock().bytes += length as u64;
    Ok(())
}
