//! A connection by WebSocket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shared::limits::WireLimits;
use shared::wire::{Decoder, Goodbye, Message};
use tungstenite::handshake::HandshakeError;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Bytes, Error, Message as WsMessage, WebSocket};

use super::destination::Destination;
use super::sender::{Outcome, Sender, batch};
use super::state::Shared;

/// Bytes of one message: frames may be cut anywhere, and what is in between may have bounds of its own.
const MESSAGE_BYTES: usize = 256 << 10;
/// Bytes of one frame or message of the server's: it sends numbers and sentences.
const ANSWER_BYTES: usize = 64 << 10;

/// The end of a connection that the reader has. It hears the server; whatever it would answer by itself goes nowhere,
/// because the sender may be in the middle of a message.
struct Ear {
    stream: TcpStream,
    is_mute: bool,
}

impl Read for Ear {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Ear {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_mute { Ok(bytes.len()) } else { self.stream.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a connection. The system's time for each of the name's addresses may be long: it gets `time`.
pub(super) fn connect(destination: &Destination, time: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let host = destination.host.trim_start_matches('[').trim_end_matches(']');
    for address in (host, destination.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, time) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Speaks with the server by a socket for as long as that goes well.
pub(super) fn speak(sender: &Sender) -> Outcome {
    let answer = Duration::from_millis(sender.limits.answer_millis);
    let open = || -> io::Result<[TcpStream; 3]> {
        let stream = connect(&sender.destination, Duration::from_millis(sender.limits.connect_millis))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(answer))?;
        stream.set_write_timeout(Some(answer))?;
        Ok([stream.try_clone()?, stream.try_clone()?, stream])
    };
    let [outer, ear, stream] = match open() {
        Ok(streams) => streams,
        Err(error) => return Outcome::Lost(sender.trouble(error)),
    };
    let generation = sender.shared.lock().begin(Some(outer));
    let url = format!("ws://{}{}", sender.destination.authority(), sender.destination.ingest());
    let config = WebSocketConfig::default()
        .max_message_size(Some(ANSWER_BYTES))
        .max_frame_size(Some(ANSWER_BYTES))
        .read_buffer_size(4 << 10);
    let reader = match tungstenite::client::client_with_config(url, Ear { stream: ear, is_mute: false }, Some(config)) {
        Ok((reader, _)) => reader,
        Err(HandshakeError::Failure(Error::Http(response))) => {
            let status = response.status();
            let advice = sender.destination.advice(status.as_u16());
            return Outcome::NoSocket(sender.trouble(format!("a socket was answered with {status}{advice}")));
        }
        // What is in between has taken the upgrade for itself, or out of the answer.
        Err(HandshakeError::Failure(error @ Error::Protocol(_))) if !is_cut(&error) => {
            return Outcome::NoSocket(sender.trouble(error));
        }
        Err(error) => return Outcome::Lost(sender.trouble(error)),
    };
    let listening = listen(&sender.shared, reader, generation);
    let reader = match listening {
        Ok(reader) => reader,
        Err(error) => return Outcome::Lost(sender.trouble(error)),
    };
    sender.shared.lock().is_post = false;
    let mut writer = WebSocket::from_raw_socket(stream, Role::Client, Some(config));
    let outcome = converse(sender, &mut writer);
    if matches!(outcome, Outcome::Ended) {
        // The last words still go out; the server closes when it has read them.
        let _ = writer.close(None).and_then(|()| writer.flush());
        let _ = writer.get_ref().shutdown(Shutdown::Write);
        if !sender.shared.lock().is_ended {
            return outcome;
        }
    }
    sender.shared.lock().cut();
    // Its socket is shut, so it ends.
    let _ = reader.join();
    outcome
}

/// Whether the connection ended in the middle of the handshake.
fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Protocol(tungstenite::error::ProtocolError::HandshakeIncomplete))
}

/// Starts the thread that hears the server.
fn listen(shared: &Arc<Shared>, mut reader: WebSocket<Ear>, generation: u64) -> io::Result<JoinHandle<()>> {
    reader.get_mut().is_mute = true;
    // How long the server may be silent is the sender's to decide.
    reader.get_mut().stream.set_read_timeout(None)?;
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("vramscope-publisher-acks".to_owned()).spawn(move || {
        let mut decoder = Decoder::new(&WireLimits { frame_bytes: ANSWER_BYTES, ..WireLimits::default() });
        let mut why = None;
        while why.is_none() {
            let message = reader.read();
            let mut state = shared.lock();
            if state.link.generation != generation {
                return;
            }
            state.link.active = Some(Instant::now());
            match message {
                Ok(WsMessage::Binary(bytes)) => {
                    why = decoder.push(&bytes, &mut |frame| state.hear(frame)).err().map(|error| error.to_string());
                }
                Ok(WsMessage::Ping(bytes)) => state.link.ping = Some(bytes.to_vec()),
                Ok(WsMessage::Pong(_)) => state.settle(false),
                Ok(WsMessage::Close(frame)) => {
                    why = Some(frame.map_or_else(|| "it closed the connection".to_owned(), |frame| frame.to_string()));
                }
                Ok(_) => {}
                Err(error) => why = Some(error.to_string()),
            }
            state.link.closed.clone_from(&why);
            drop(state);
            shared.ring();
        }
    })
}

/// What there is to do next.
enum Next {
    Batch(u64, Arc<Vec<u8>>),
    Goodbye(u64),
    Pong(Vec<u8>),
    Ping,
    Done(Outcome),
}

/// Says hello, and then what there is to say.
fn converse(sender: &Sender, writer: &mut WebSocket<TcpStream>) -> Outcome {
    if let Err(error) = send(sender, writer, sender.hello()) {
        return sender.shared.lock().link.refused.take().map_or(Outcome::Lost(sender.trouble(error)), Outcome::Refused);
    }
    loop {
        let sent = match next(sender) {
            Next::Batch(number, chunks) => {
                let mut frame = Vec::new();
                batch(number, &chunks, &mut frame);
                // The queue may let go of it while it is on its way.
                drop(chunks);
                send(sender, writer, frame)
            }
            Next::Goodbye(seq) => send(sender, writer, Message::Goodbye(Goodbye { seq }).to_bytes()),
            Next::Pong(bytes) => writer.send(WsMessage::Pong(bytes.into())),
            Next::Ping => writer.send(WsMessage::Ping(Bytes::new())),
            Next::Done(outcome) => return outcome,
        };
        if let Err(error) = sent {
            // A server that refuses says why, and closes: writing may fail before that is read.
            let end = Instant::now() + Duration::from_millis(200);
            sender.shared.wait_until(end, |state| state.link.refused.is_some() || state.link.closed.is_some());
            let refused = sender.shared.lock().link.refused.take();
            return refused.map_or_else(|| Outcome::Lost(sender.trouble(error)), Outcome::Refused);
        }
    }
}

/// Waits until there is something to do.
fn next(sender: &Sender) -> Next {
    let answer = Duration::from_millis(sender.limits.answer_millis);
    let idle = Duration::from_millis(sender.limits.idle_millis);
    let mut state = sender.shared.lock();
    loop {
        let now = Instant::now();
        if let Some(refused) = state.link.refused.take() {
            return Next::Done(Outcome::Refused(refused));
        }
        if state.is_ended {
            return Next::Done(Outcome::Ended);
        }
        if let Some(why) = state.link.closed.take() {
            return Next::Done(Outcome::Lost(sender.trouble(why)));
        }
        if let Some(bytes) = state.link.ping.take() {
            return Next::Pong(bytes);
        }
        let is_ending = state.end.is_some();
        let is_over = state.is_over();
        if state.link.is_welcome
            && !is_over
            && let Some((number, chunks)) = state.queue.next()
        {
            state.link.active = Some(now);
            state.link.owed.get_or_insert(now);
            return Next::Batch(number, chunks);
        }
        // When time is over and all is on its way, the server may hear that this was all.
        let is_told = state.queue.is_empty() || is_over && state.queue.is_sent();
        if state.link.is_welcome && is_ending && is_told && !state.link.is_goodbye {
            state.link.is_goodbye = true;
            state.link.owed = Some(now);
            return Next::Goodbye(state.queue.last());
        }
        if is_over {
            return Next::Done(Outcome::Ended);
        }
        let owed = state.link.owed.map(|since| since + answer);
        if owed.is_some_and(|end| now >= end) {
            let what = format!("no answer for {} s", answer.as_secs_f32());
            return Next::Done(Outcome::Lost(sender.trouble(what)));
        }
        let silent = state.link.active.map_or(now, |since| since + idle);
        if state.link.is_welcome && now >= silent {
            state.link.active = Some(now);
            state.link.owed.get_or_insert(now);
            return Next::Ping;
        }
        let wake = [owed, state.end].into_iter().flatten().fold(silent.max(now), Instant::min);
        let wait = wake.saturating_duration_since(now).max(Duration::from_millis(1));
        state = sender.shared.wait(state, wait);
    }
}

fn send(sender: &Sender, writer: &mut WebSocket<TcpStream>, frame: Vec<u8>) -> Result<(), Error> {
    let length = frame.len();
    let frame = Bytes::from(frame);
    for at in (0..length).step_by(MESSAGE_BYTES) {
        let end = (at + MESSAGE_BYTES).min(length);
        writer.write(WsMessage::Binary(frame.slice(at..end)))?;
    }
    writer.flush()?;
    sender.shared.lock().bytes += length as u64;
    Ok(())
}
