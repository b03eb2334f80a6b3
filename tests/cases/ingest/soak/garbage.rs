//! Random bytes as a WebSocket's frames and as messages of the protocol: refused, with bounded memory, and without a panic.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Result, ensure};
use tests::Folder;
use tests::peer::Peer;
use tests::server::Server;
use tests::soak;
use tests::stream::{Random, Stream};
use wire::Message;

/// Connections in a round.
const CONNECTIONS: u64 = 40;

/// Upgrades a connection to a WebSocket.
fn upgrade(server: SocketAddr, path: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {server}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    ensure!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    Ok(stream)
}

/// Returns a frame of a WebSocket, masked with zeros.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | opcode, 0x80 | 127];
    bytes.extend((payload.len() as u64).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns a message of the protocol with a right checksum, and this body.
fn message(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], &crc32fast::hash(body).to_le_bytes(), body].concat()
}

fn noise(random: &mut Random, most: u64) -> Vec<u8> {
    (0..random.below(most)).map(|_| random.below(256) as u8).collect()
}

/// Changes some bytes.
fn changed(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.below(256) as u8;
    }
    bytes
}

/// Returns what one hostile client sends.
fn garbage(random: &mut Random, hello: &[u8]) -> Vec<u8> {
    match random.below(8) {
        // No frames.
        0 => noise(random, 4_000),
        // Any opcode and any flags, not masked.
        1 => [&[random.below(256) as u8, random.below(126) as u8][..], &noise(random, 200)].concat(),
        // A length that no memory holds.
        2 => [&[0x82, 0xff][..], &(u64::MAX - random.below(1 << 62)).to_be_bytes(), &[0; 4], &noise(random, 500)]
            .concat(),
        // A control frame that is long, or in pieces.
        3 => [frame(9, &vec![7; 100 + random.below(5_000) as usize]), vec![0x09, 0x80, 0, 0, 0, 0]].concat(),
        // Pieces that never end.
        4 => [0x02, 0x81, 0, 0, 0, 0, 7].repeat(1 + random.below(2_000) as usize),
        // A changed hello, whole as a frame.
        5 => frame(2, &changed(hello.to_vec(), random)),
        // Valid messages with any body.
        6 => frame(2, &message(&[&[0x92, random.below(16) as u8][..], &noise(random, 300)].concat())),
        // The hello's own body, changed, with the right sum.
        _ => frame(2, &message(&changed(hello[8..].to_vec(), random))),
    }
}

/// Returns the most memory that a process has used, in MiB.
fn peak_mib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() >> 10
}

#[test]
fn garbage_of_strangers_is_refused_and_disturbs_nobody() -> Result<()> {
    let folder = Folder::new("garbage")?;
    let server = Server::start_logging(&folder, &["--log", "info"], &[])?;
    let honest = Stream::new(1, 100_000, 10);
    let (mut peer, _) = Peer::hello(server.address(), &honest.hello)?;
    let hello = Message::Hello(Stream::new(2, 1, 10).hello).to_bytes();
    let before = peak_mib(&server);
    let mut seq = 0;
    for seed in soak::rounds(2) {
        let mut random = Random::new(seed);
        for connection in 0..CONNECTIONS {
            let is_viewer = random.below(2) == 0;
            let watch = format!("/api/v1/sessions/{}/live", honest.session());
            let mut stream = upgrade(server.address(), if is_viewer { &watch } else { "/api/v1/ingest" })?;
            // The server may close the connection before it has everything.
            let _ = stream.write_all(&garbage(&mut random, &hello));
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = Vec::new();
            let ended = stream.read_to_end(&mut rest);
            let is_late = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            ensure!(!is_late, "seed {seed}, connection {connection}: the server holds it");
        }
        seq = (seq + 1).min(honest.last());
        peer.batch(seq, honest.batch(seq))?;
        peer.acked(seq)?;
        ensure!(server.get("/healthz")?.status == 200);
    }
    let peak = peak_mib(&server);
    ensure!(peak < before + 100, "{before} MiB before, {peak} MiB at the peak");
    drop(peer);
    let log = server.log(&folder)?;
    ensure!(!log.contains("panic"), "{log}");
    Ok(())
}
