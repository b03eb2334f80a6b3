//! How many events a second a server stores durably while it is watched.
//!
//! `cargo bench -p collector --bench ingest` starts a server as a separate process and sends it encoded streams, from one
//! collector and from eight, with one viewer. It prints the events a second (until the last is acknowledged), the bytes
//! for each event, and the server's peak memory; then the same with TLS. The optional argument is the server's folder.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use format::{Device, EventColumns, Header, PRELUDE_BYTES, Writer};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use trace::event::Action;
use trace::frames::StackId;
use trace::limits::{CHUNK_EVENTS, ServerLimits, WireLimits};
use trace::units::Address;
use trace::{Event, TagId};
use tungstenite::{Message as WsMessage, WebSocket};
use vramscope::bus::LocalBus;
use vramscope::ingest::{Retention, Sessions};
use vramscope::server::{self, App, Hosts, Tls};
use vramscope::store::SegmentStore;
use wire::{Ack, Batch, Decoder, Hello, Message, PROTOCOL, SESSION_CHARS, Watch, session_id};

/// A connection, with or without TLS.
trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// Where the server is, and whom its clients trust if it has TLS.
#[derive(Clone)]
struct Place {
    address: SocketAddr,
    client: Option<Arc<ClientConfig>>,
}

/// Writes a certificate for `localhost` and its key into a folder. Returns a client that trusts it.
fn certify(folder: &Path) -> Result<Arc<ClientConfig>, Failure> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(CERTIFICATE), certificate.pem())?;
    std::fs::write(folder.join(KEY), key.serialize_pem())?;
    #[cfg(unix)]
    std::fs::set_permissions(folder.join(KEY), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone())?;
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    Ok(Arc::new(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth()))
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Set to the server's folder in the server's process.
const SERVER: &str = "VRAMSCOPE_BENCH_SERVER";
/// The names of the certificate and its key in the server's folder; without them the server has no TLS.
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";
/// The number of chunks of a stream.
const CHUNKS: u64 = 300;
/// The most unacknowledged batches of one collector.
const UNACKNOWLEDGED: u64 = 64;

/// Returns the events of a training job as batches of one chunk with 16,384 events.
fn batches() -> Vec<Vec<u8>> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let header = Header { devices: vec![Device { number: 0, ..Device::default() }], ..Header::default() };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&header, &mut bytes);
    let mut batches = Vec::new();
    let (mut live, mut time_us): (Vec<(u64, u64)>, i64) = (Vec::new(), 1_700_000_000_000_000);
    for chunk in 0..CHUNKS {
        let mut columns = EventColumns::default();
        while columns.len() < CHUNK_EVENTS {
            time_us += next(3) as i64;
            let mut push = |action, (address, size)| {
                columns.push(Event {
                    action,
                    address: Address(address),
                    size,
                    time_us,
                    tag: TagId(0),
                    stack: StackId(0),
                });
            };
            if live.len() < 2_000 || next(3) == 0 {
                // Addresses are reused, as by a caching allocator.
                let place = (0x7f00_0000_0000 + (next(4_000) << 21), 512 << next(12));
                live.push(place);
                push(Action::Alloc, place);
            } else {
                let place = live.swap_remove(next(live.len() as u64) as usize);
                push(Action::FreeRequested, place);
                push(Action::FreeCompleted, place);
            }
        }
        writer.events(0, chunk * CHUNK_EVENTS as u64, &columns, &mut bytes);
        let begin = if chunk == 0 { PRELUDE_BYTES } else { 0 };
        batches.push(bytes.split_off(begin));
        bytes.clear();
    }
    batches
}

fn serve(folder: &str) -> Result<(), Failure> {
    let limits = ServerLimits::default();
    let keep = Retention::default();
    let store = Arc::new(SegmentStore::open(folder.as_ref(), keep.bytes)?);
    let sessions = Sessions::open(store, Arc::new(LocalBus::new(limits.viewer_bytes)), limits, keep, Arc::default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        println!("{address}");
        let (certificate, key) = (Path::new(folder).join(CERTIFICATE), Path::new(folder).join(KEY));
        let tls = if key.exists() { Some(Tls::load(&certificate, &key)?) } else { None };
        let app = App::new(sessions, Hosts::new(address, &[])).encrypted(tls);
        let _ = server::run(listener, app, std::future::pending()).await;
        Ok(())
    })
}

struct Peer {
    socket: WebSocket<Box<dyn Connection>>,
    decoder: Decoder,
}

impl Peer {
    fn new(server: &Place, path: &str, first: &Message<'_>) -> Result<Self, Failure> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Connection> = match &server.client {
            None => Box::new(stream),
            Some(config) => {
                let name = ServerName::try_from("localhost")?;
                Box::new(StreamOwned::new(ClientConnection::new(Arc::clone(config), name)?, stream))
            }
        };
        let (socket, _) =
            tungstenite::client(format!("ws://{}{path}", server.address), stream).map_err(|error| error.to_string())?;
        let mut new = Self { socket, decoder: Decoder::new(&WireLimits::default()) };
        new.socket.send(WsMessage::Binary(first.to_bytes().into()))?;
        Ok(new)
    }

    fn read(&mut self, visit: &mut dyn FnMut(Message<'_>)) -> Result<(), Failure> {
        if let WsMessage::Binary(bytes) = self.socket.read()? {
            self.decoder.push(&bytes, visit)?;
        }
        Ok(())
    }
}

fn name(seed: u8) -> String {
    session_id(std::array::from_fn::<u8, SESSION_CHARS, _>(|i| seed.wrapping_mul(31).wrapping_add(i as u8)))
}

/// Sends all batches. Returns when the last is acknowledged.
fn collect(server: &Place, seed: u8, messages: &[Vec<u8>]) -> Result<(), Failure> {
    let hello = Hello { protocol: PROTOCOL, session: name(seed), key: name(seed + 100), ..Hello::default() };
    let mut peer = Peer::new(server, "/api/v1/ingest", &Message::Hello(hello))?;
    let (mut acked, mut sent) = (0, 0);
    while acked < messages.len() as u64 {
        while sent < messages.len() as u64 && sent < acked + UNACKNOWLEDGED {
            // As collectors do: the server takes no longer messages of a client that has shown no token in its request.
            for piece in messages[sent as usize].chunks(ServerLimits::default().socket_bytes) {
                peer.socket.send(WsMessage::Binary(piece.to_vec().into()))?;
            }
            sent += 1;
        }
        let mut refused = None;
        peer.read(&mut |message| match message {
            Message::Ack(Ack { seq }) => acked = seq,
            Message::Refused(message) => refused = Some(message.message),
            _ => {}
        })?;
        if let Some(message) = refused {
            return Err(message.into());
        }
    }
    Ok(())
}

/// Watches a session up to its last batch. Returns the number of received batches.
fn watch(server: &Place, seed: u8, last: u64) -> Result<u64, Failure> {
    let path = format!("/api/v1/sessions/{}/live", name(seed));
    let watch = || Message::Watch(Watch { protocol: PROTOCOL, ..Watch::default() });
    let mut peer = loop {
        match Peer::new(server, &path, &watch()) {
            Ok(peer) => break peer,
            // There is no session before the collector's hello.
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let (mut came, mut newest) = (0, 0);
    while newest < last {
        peer.read(&mut |frame| {
            if let Message::Batch(Batch { seq, .. }) = frame {
                (came, newest) = (came + 1, seq);
            }
        })?;
    }
    Ok(came)
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Its data is not needed any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a process's peak memory in MiB and its processor time in seconds, if the system reports them.
fn used(pid: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(|rest| rest.split_whitespace().next());
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let times = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: f64 = times.filter_map(|time| time.parse::<f64>().ok()).sum();
    (peak.and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1024.0, ticks / 100.0)
}

fn measure(collectors: u8, chunks: &[Vec<u8>], folder: &Path, is_encrypted: bool) -> Result<(), Failure> {
    // The same total from eight collectors as from one.
    let chunks = &chunks[..chunks.len() / usize::from(collectors.div_ceil(2))];
    let frame =
        |(i, chunks): (usize, &Vec<u8>)| Message::Batch(Batch { seq: i as u64 + 1, sent_us: 0, chunks }).to_bytes();
    let frames: Arc<Vec<Vec<u8>>> = Arc::new(chunks.iter().enumerate().map(frame).collect());
    let _ = std::fs::remove_dir_all(folder);
    let client = if is_encrypted { Some(certify(folder)?) } else { None };
    let mut child = Command::new(std::env::current_exe()?).env(SERVER, folder).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let server = Server(child);
    let place = Place { address: line.trim().parse()?, client };

    let begun = Instant::now();
    let last = frames.len() as u64;
    let watched = place.clone();
    let viewer = std::thread::spawn(move || watch(&watched, 0, last));
    let threads: Vec<_> = (0..collectors)
        .map(|seed| {
            let (frames, place) = (Arc::clone(&frames), place.clone());
            std::thread::spawn(move || collect(&place, seed, &frames))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a collector failed")??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let watched = viewer.join().map_err(|_| "the viewer failed")??;
    let (peak, processor) = used(server.0.id());
    drop(server);
    std::fs::remove_dir_all(folder)?;
    let events = (frames.len() * CHUNK_EVENTS * usize::from(collectors)) as f64;
    let bytes: usize = frames.iter().map(Vec::len).sum::<usize>() * usize::from(collectors);
    println!(
        "{collectors} collector{}{}: {:.2} M events/s stored ({:.1} M in {seconds:.2} s), {:.1} bytes per event; \
         the server used {processor:.2} s of processor time and {peak:.0} MiB; the viewer received {watched} of {last} batches",
        if collectors == 1 { "" } else { "s" },
        if is_encrypted { " with TLS" } else { "" },
        events / seconds / 1e6,
        events / 1e6,
        bytes as f64 / events,
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    if let Ok(folder) = std::env::var(SERVER) {
        return serve(&folder);
    }
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder =
        given.map_or_else(std::env::temp_dir, Into::into).join(format!("vramscope-ingest-{}", std::process::id()));
    let chunks = batches();
    for (collectors, is_encrypted) in [(1, false), (8, false), (1, true), (8, true)].repeat(2) {
        measure(collectors, &chunks, &folder, is_encrypted)?;
    }
    Ok(())
}
