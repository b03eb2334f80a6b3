//! A server that treats each connection as a script says, and stores what it receives by the protocol's rules.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use trace::limits::WireLimits;
use tungstenite::{Message as WsMessage, WebSocket};
use wire::{Ack, Ask, Code, Decoder, Hello, Message, PROTOCOL, Refused, Welcome, is_session};

/// What the server does with one connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Serves it, with these deviations.
    Serve(Serve),
    /// Refuses the hello.
    Refuse(Code, bool),
    /// Answers the upgrade with a status.
    Status(u16),
    /// Accepts it and never answers.
    Hang,
    /// Closes it at once.
    Drop,
}

/// How a connection is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serve {
    /// How long an answer takes.
    pub(crate) delay: Duration,
    /// After reading this many bytes, the connection breaks.
    pub(crate) cut_after: Option<usize>,
    /// After storing this many batches, the connection is closed without an answer.
    pub(crate) close_after: Option<usize>,
    /// After storing this many batches, the server reads and answers nothing more.
    pub(crate) hang_after: Option<usize>,
    /// Sends half an answer and nothing more.
    pub(crate) torn_answer: bool,
    /// Does not answer the goodbye.
    pub(crate) no_goodbye: bool,
    /// The number of batches for each answer; 0 means 1.
    pub(crate) ack_every: usize,
}

/// What the server has received.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) script: VecDeque<Act>,
    /// The first hello: session and key, mode, token, header.
    pub(crate) hello: Option<Hello>,
    pub(crate) batches: Vec<Vec<u8>>,
    pub(crate) ended: Option<u64>,
    /// A request for the first connection, followed by a ping.
    pub(crate) ask: Option<String>,
    /// The contents of pongs.
    pub(crate) pongs: Vec<Vec<u8>>,
    pub(crate) connections: usize,
    pub(crate) posts: usize,
    /// When each connection was opened.
    pub(crate) times: Vec<Instant>,
    /// Violations of the protocol by the collector.
    pub(crate) faults: Vec<String>,
}

/// The server, until it is dropped.
pub(crate) struct Scripted {
    pub(crate) store: Arc<Mutex<Store>>,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Scripted {
    /// Listens on a free port.
    pub(crate) fn start(script: impl IntoIterator<Item = Act>) -> Result<Self> {
        Self::start_at("127.0.0.1:0".parse()?, Store { script: script.into_iter().collect(), ..Store::default() })
    }

    /// Listens at an address, with the store of an earlier server.
    pub(crate) fn start_at(address: SocketAddr, store: Store) -> Result<Self> {
        let listener = TcpListener::bind(address).context("listening")?;
        let address = listener.local_addr()?;
        let (store, stop) = (Arc::new(Mutex::new(store)), Arc::new(AtomicBool::new(false)));
        let (shared, stopped) = (Arc::clone(&store), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (store, stopped) = (Arc::clone(&shared), Arc::clone(&stopped));
                std::thread::spawn(move || {
                    // Connections break on purpose.
                    let _ = connection(stream, &store, &stopped);
                });
            }
        });
        Ok(Self { store, address, stop })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until a condition holds for the store.
    pub(crate) fn until(&self, what: &str, condition: impl Fn(&Store) -> bool) {
        let start = Instant::now();
        while !condition(&self.store.lock().unwrap()) {
            assert!(start.elapsed() < Duration::from_secs(30), "timed out waiting for {what}: {:?}", self.summary());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn summary(&self) -> (usize, usize, Vec<String>) {
        let store = self.store.lock().unwrap();
        (store.batches.len(), store.connections, store.faults.clone())
    }

    /// Returns everything received, as a file.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut file = format::prelude().to_vec();
        self.store.lock().unwrap().batches.iter().for_each(|batch| file.extend(batch));
        file
    }

    /// Stops listening and breaks all connections. Returns the address and the store.
    pub(crate) fn go_away(self) -> (SocketAddr, Store) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener, which closes.
        drop(TcpStream::connect(self.address));
        std::thread::sleep(Duration::from_millis(20));
        (self.address, std::mem::take(&mut *self.store.lock().unwrap()))
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

/// A stream that breaks after a number of bytes.
struct BreakingStream {
    stream: TcpStream,
    left: Option<usize>,
    stop: Arc<AtomicBool>,
}

impl Read for BreakingStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let most = self.left.unwrap_or(usize::MAX).min(buffer.len());
            if most == 0 || self.stop.load(Ordering::SeqCst) {
                self.stream.shutdown(std::net::Shutdown::Both)?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            match self.stream.read(&mut buffer[..most]) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Ok(read) => {
                    self.left = self.left.map(|left| left - read);
                    return Ok(read);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Write for BreakingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn connection(stream: TcpStream, store: &Mutex<Store>, stop: &Arc<AtomicBool>) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(10)))?;
    let act = {
        let mut store = store.lock().unwrap();
        store.connections += 1;
        store.times.push(Instant::now());
        store.script.pop_front().unwrap_or_else(|| Act::Serve(Serve::default()))
    };
    let serve = match &act {
        Act::Serve(serve) => serve.clone(),
        _ => Serve::default(),
    };
    let mut stream = BreakingStream { stream, left: serve.cut_after, stop: Arc::clone(stop) };
    match act {
        Act::Drop => return Ok(()),
        Act::Hang => {
            // Until the other side gives up.
            while stream.read(&mut [0; 1024])? > 0 {}
            return Ok(());
        }
        _ => {}
    }
    let mut first = [0; 4];
    stream.read_exact(&mut first)?;
    // The bytes that were read are read again.
    let mut stream = Rewound { first: first.to_vec(), stream };
    if let Act::Status(status) = act {
        read_head(&mut stream)?;
        let answer = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: 5\r\nConnection: close\r\n\r\nproxy");
        stream.write_all(answer.as_bytes())?;
        return Ok(());
    }
    let refusal = match act {
        Act::Refuse(code, retry) => Some(Refused { code, message: format!("No: {code:?}."), retry }),
        _ => None,
    };
    if &first == b"POST" {
        return post(stream, store, &serve, refusal);
    }
    let mut socket = tungstenite::accept(stream).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut decoder = Decoder::new(&WireLimits::default());
    let (mut stored, mut unanswered) = (0, 0);
    loop {
        let bytes = match socket.read()? {
            WsMessage::Binary(bytes) => bytes,
            WsMessage::Pong(bytes) => {
                store.lock().unwrap().pongs.push(bytes.to_vec());
                continue;
            }
            _ => continue,
        };
        let mut answers = Vec::new();
        let mut is_end = false;
        decoder.push(&bytes, &mut |message| {
            if is_end || serve.hang_after.is_some_and(|most| stored >= most) {
                return;
            }
            if let (Message::Hello(_), Some(refused)) = (&message, &refusal) {
                answers.push(Message::Refused(refused.clone()));
                is_end = true;
                return;
            }
            let is_batch = matches!(message, Message::Batch(_));
            let is_goodbye = matches!(message, Message::Goodbye(_));
            let answer = handle(message, &mut store.lock().unwrap());
            stored += usize::from(is_batch);
            unanswered += usize::from(is_batch);
            is_end |= serve.close_after.is_some_and(|most| stored >= most);
            if is_batch && unanswered < serve.ack_every || is_goodbye && serve.no_goodbye {
                return;
            }
            unanswered = 0;
            answers.extend(answer);
            if let (1, Some(what)) = (answers.len(), store.lock().unwrap().ask.take()) {
                answers.push(Message::Ask(Ask { what }));
            }
        })?;
        std::thread::sleep(serve.delay);
        if is_end && serve.close_after.is_some() {
            return Ok(());
        }
        answer(&mut socket, &answers, serve.torn_answer)?;
        if answers.iter().any(|answer| matches!(answer, Message::Ask(_))) {
            socket.send(WsMessage::Ping(vec![7; 5].into()))?;
        }
        if is_end || serve.no_goodbye && store.lock().unwrap().ended.is_some() {
            // Gives the collector time to read the refusal.
            std::thread::sleep(Duration::from_millis(20));
            return Ok(());
        }
    }
}

fn answer(socket: &mut WebSocket<Rewound>, answers: &[Message<'_>], is_torn: bool) -> Result<()> {
    let bytes: Vec<u8> = answers.iter().flat_map(Message::to_bytes).collect();
    if is_torn && bytes.len() > 1 {
        socket.send(WsMessage::binary(bytes[..bytes.len() / 2].to_vec()))?;
        anyhow::bail!("torn");
    }
    // In small pieces: the protocol's messages may be cut anywhere.
    for piece in bytes.chunks(7) {
        socket.send(WsMessage::binary(piece.to_vec()))?;
    }
    Ok(())
}

/// Applies a message to the store, and returns the answer.
fn handle(message: Message<'_>, store: &mut Store) -> Option<Message<'static>> {
    match message {
        Message::Hello(hello) => {
            // It may have missed acknowledgements, and never knows of more than were sent.
            let first = hello.first;
            if first == 0 || first > store.batches.len() as u64 + 1 {
                store.faults.push(format!("a hello from batch {first}, after {}", store.batches.len()));
            }
            let hello = Hello { first: 1, ..hello };
            if hello.protocol != PROTOCOL || !is_session(&hello.session) || !is_session(&hello.key) {
                store.faults.push(format!("a hello of {hello:?}"));
            }
            match &store.hello {
                Some(known) if *known != hello => store.faults.push("another hello".to_owned()),
                _ => store.hello = Some(hello),
            }
            Some(Message::Welcome(Welcome { protocol: PROTOCOL, next: store.batches.len() as u64 + 1 }))
        }
        Message::Batch(batch) => {
            let have = store.batches.len() as u64;
            if store.ended.is_some() {
                store.faults.push("a batch after the goodbye".to_owned());
            }
            match batch.seq.cmp(&(have + 1)) {
                std::cmp::Ordering::Less => {
                    // A batch that is sent again must be the same.
                    if store.batches[batch.seq as usize - 1] != batch.chunks {
                        store.faults.push(format!("batch {} was another before", batch.seq));
                    }
                }
                std::cmp::Ordering::Equal => store.batches.push(batch.chunks.to_vec()),
                std::cmp::Ordering::Greater => store.faults.push(format!("batch {} after {have}", batch.seq)),
            }
            Some(Message::Ack(Ack { seq: store.batches.len() as u64 }))
        }
        Message::Goodbye(goodbye) => {
            if goodbye.seq != store.batches.len() as u64 {
                store.faults.push(format!("a goodbye after {} of {}", goodbye.seq, store.batches.len()));
            }
            store.ended = Some(goodbye.seq);
            Some(Message::Ack(Ack { seq: goodbye.seq }))
        }
        message => {
            store.faults.push(format!("{message:?}"));
            None
        }
    }
}

fn post(mut stream: Rewound, store: &Mutex<Store>, serve: &Serve, refusal: Option<Refused>) -> Result<()> {
    let head = read_head(&mut stream)?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).context("no length")?;
    let mut body = vec![0; length.parse()?];
    stream.read_exact(&mut body)?;
    let mut answers = Vec::new();
    let mut store = store.lock().unwrap();
    store.posts += 1;
    match refusal {
        Some(refused) => answers.push(Message::Refused(refused)),
        None => {
            Decoder::new(&WireLimits::default())
                .push(&body, &mut |message| answers.extend(handle(message, &mut store)))?;
        }
    }
    drop(store);
    std::thread::sleep(serve.delay);
    let body: Vec<u8> = answers.iter().flat_map(Message::to_bytes).collect();
    stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes())?;
    stream.write_all(&body)?;
    Ok(())
}

fn read_head(stream: &mut impl Read) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8(head)?)
}

/// A stream whose first bytes are read again.
struct Rewound {
    first: Vec<u8>,
    stream: BreakingStream,
}

impl Read for Rewound {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.first.is_empty() {
            return self.stream.read(buffer);
        }
        let count = self.first.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.first[..count]);
        self.first.drain(..count);
        Ok(count)
    }
}

impl Write for Rewound {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
