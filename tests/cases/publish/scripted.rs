//! A server that does to each connection what a script says, and keeps what it was given as the wire's rules say.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use shared::limits::WireLimits;
use shared::wire::{Ack, Ask, Code, Decoder, Message, PROTOCOL, Refused, Welcome, is_session};
use tungstenite::{Message as WsMessage, WebSocket};

/// What becomes of one connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// It goes as it should, but for these.
    Serve(Serve),
    /// The hello is refused.
    Refuse(Code, bool),
    /// The upgrade is answered with a status.
    Status(u16),
    /// It is taken, and nothing ever comes.
    Hang,
    /// It is closed at once.
    Drop,
}

/// How a connection is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serve {
    /// How long an answer takes.
    pub(crate) delay: Duration,
    /// So many bytes are read; in the middle of whatever comes then, the connection is gone.
    pub(crate) cut_after: Option<usize>,
    /// So many batches are stored; then it is closed without an answer.
    pub(crate) close_after: Option<usize>,
    /// So many batches are stored; then nothing more is read, and nothing said.
    pub(crate) hang_after: Option<usize>,
    /// Half an answer comes, and then nothing more.
    pub(crate) torn_answer: bool,
    /// The goodbye is not answered.
    pub(crate) no_goodbye: bool,
    /// Batches that share an answer; 0 is 1.
    pub(crate) ack_every: usize,
}

/// What it holds.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) script: VecDeque<Act>,
    /// The hello's: session and key, mode, token, header.
    pub(crate) hello: Option<shared::wire::Hello>,
    pub(crate) batches: Vec<Vec<u8>>,
    pub(crate) ended: Option<u64>,
    /// Asked of the first connection that is welcome, with a ping behind it.
    pub(crate) ask: Option<String>,
    /// What came back for pings.
    pub(crate) pongs: Vec<Vec<u8>>,
    pub(crate) connections: usize,
    pub(crate) posts: usize,
    /// When each connection came.
    pub(crate) times: Vec<Instant>,
    /// What a collector may never do.
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

    /// Listens at an address, with what one before it has left.
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
                    // That connections break is what this is about.
                    let _ = connection(stream, &store, &stopped);
                });
            }
        });
        Ok(Self { store, address, stop })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until something is so of what it holds.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Store) -> bool) {
        let start = Instant::now();
        while !is_so(&self.store.lock().unwrap()) {
            assert!(start.elapsed() < Duration::from_secs(30), "{what} never came: {:?}", self.summary());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn summary(&self) -> (usize, usize, Vec<String>) {
        let store = self.store.lock().unwrap();
        (store.batches.len(), store.connections, store.faults.clone())
    }

    /// All that came, as a file.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut file = shared::format::prelude().to_vec();
        self.store.lock().unwrap().batches.iter().for_each(|batch| file.extend(batch));
        file
    }

    /// Goes away: nobody listens any more, and what is open breaks. What it held.
    pub(crate) fn go_away(self) -> (SocketAddr, Store) {
        self.stop.store(true, Ordering::SeqCst);
        // Rouses the listener, which closes.
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

/// A stream that breaks after so many bytes.
struct Brittle {
    stream: TcpStream,
    left: Option<usize>,
    stop: Arc<AtomicBool>,
}

impl Read for Brittle {
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

impl Write for Brittle {
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
    let mut stream = Brittle { stream, left: serve.cut_after, stop: Arc::clone(stop) };
    match act {
        Act::Drop => return Ok(()),
        Act::Hang => {
            // Until the other side has had enough.
            while stream.read(&mut [0; 1024])? > 0 {}
            return Ok(());
        }
        _ => {}
    }
    let mut first = [0; 4];
    stream.read_exact(&mut first)?;
    // What was read is put before the rest again.
    let mut stream = Again { first: first.to_vec(), stream };
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
        decoder.push(&bytes, &mut |frame| {
            if is_end || serve.hang_after.is_some_and(|most| stored >= most) {
                return;
            }
            if let (Message::Hello(_), Some(refused)) = (&frame, &refusal) {
                answers.push(Message::Refused(refused.clone()));
                is_end = true;
                return;
            }
            let is_batch = matches!(frame, Message::Batch(_));
            let is_goodbye = matches!(frame, Message::Goodbye(_));
            let answer = take(frame, &mut store.lock().unwrap());
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
            // A refusal is read before the connection is gone.
            std::thread::sleep(Duration::from_millis(20));
            return Ok(());
        }
    }
}

fn answer(socket: &mut WebSocket<Again>, answers: &[Message<'_>], is_torn: bool) -> Result<()> {
    let bytes: Vec<u8> = answers.iter().flat_map(Message::to_bytes).collect();
    if is_torn && bytes.len() > 1 {
        socket.send(WsMessage::binary(bytes[..bytes.len() / 2].to_vec()))?;
        anyhow::bail!("torn");
    }
    // Cut anywhere: where a message ends says nothing.
    for piece in bytes.chunks(7) {
        socket.send(WsMessage::binary(piece.to_vec()))?;
    }
    Ok(())
}

/// What a server does with a frame; its answer.
fn take(frame: Message<'_>, store: &mut Store) -> Option<Message<'static>> {
    match frame {
        Message::Hello(hello) => {
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
                    // The same again: it may be cut otherwise only if it was never sent before.
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
        frame => {
            store.faults.push(format!("{frame:?}"));
            None
        }
    }
}

fn post(mut stream: Again, store: &Mutex<Store>, serve: &Serve, refusal: Option<Refused>) -> Result<()> {
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
            Decoder::new(&WireLimits::default()).push(&body, &mut |frame| answers.extend(take(frame, &mut store)))?;
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

/// A stream with what was read of it put back.
struct Again {
    first: Vec<u8>,
    stream: Brittle,
}

impl Read for Again {
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

impl Write for Again {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
