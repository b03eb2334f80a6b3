//! Slow, stalled and vanished peers: of uploads, of downloads, and of who finishes an upload.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use format::{EventColumns, Header, Writer};
use serde_json::json;
use tests::server::Server;
use tests::{Folder, http, program, s3};
use trace::limits::{ServerLimits, ShareLimits};

use super::inside::Inside;
use super::{Client, code, read, recording, sample, text};

const PATIENCE: Duration = Duration::from_secs(30);

/// A server that gives a silent client up after two seconds, as a machine may be busy for one.
fn impatient() -> Result<Inside> {
    let limits = ServerLimits {
        idle_seconds: 2,
        least_bytes_per_second: 100,
        downloads: 1,
        stall_seconds: 60,
        turn_seconds: 60,
        ..ServerLimits::default()
    };
    Inside::start(limits, ShareLimits { turn_millis: 5_000, ..ShareLimits::default() })
}

/// A recording of so many chunks that do not pack, some 200 KiB each.
fn long(chunks: u64) -> Vec<u8> {
    let (mut out, mut random) = (Vec::new(), 1_u64);
    let mut writer = Writer::new(&Header { name: "long".to_owned(), ..Header::default() }, &mut out);
    for chunk in 0..chunks {
        let mut columns = EventColumns::default();
        for event in 0..16_384_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            columns.push(trace::Event {
                action: trace::event::Action::Alloc,
                address: trace::units::Address(random & !0x1ff),
                size: (random >> 20) & !0x1ff,
                time_us: (chunk * 16_384 + event) as i64,
                tag: trace::TagId(0),
                stack: trace::frames::StackId(0),
            });
        }
        writer.events(0, chunk * 16_384, &columns, &mut out);
    }
    writer.end(&format::End { events: chunks * 16_384, ..Default::default() }, &mut out);
    out
}

fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Asks for a path with a small window, so that the system takes little of the answer from the server.
fn ask(server: SocketAddr, path: &str) -> Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let socket = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4_096)?;
        socket.connect(server).await?.into_std()
    })?;
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    (&socket).write_all(format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n").as_bytes())?;
    Ok(socket)
}

/// Begins a request and sends some bytes of its body.
fn begin(server: SocketAddr, method: &str, path: &str, length: usize, body: &[u8]) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(http::head(method, server, path, &[("Content-Length", &length.to_string())]).as_bytes())?;
    stream.write_all(body)?;
    Ok(stream)
}

#[test]
fn a_download_goes_as_fast_as_its_reader_and_one_that_is_not_read_ends() -> Result<()> {
    let server = impatient()?;
    let (client, long) = (Client::new(server.address), long(70));
    ensure!(long.len() > 8 << 20, "{} bytes fit the buffers of systems", long.len());
    let (token, _) = client.share(&long, &json!({}))?;
    let folder = Folder::new("local")?;
    let path = folder.join("long.vramscope");
    std::fs::write(&path, &long)?;
    let local = server.local_files.offer(Path::new(&path)).map_err(anyhow::Error::msg)?;
    let length = client.get(&format!("/{token}/trace"))?.body.len();
    for path in [format!("/api/v1/traces/{token}/trace"), format!("/{}", local.trim_start_matches('/'))] {
        // Stalled: it ends, and gives the only place of a download free.
        let mut stalled = ask(server.address, &path)?;
        until("the connection stayed open", || match stalled.write_all(b"\r\n") {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Ok(true),
            _ => Ok(false),
        })?;
        // Slow: it takes as long as it takes, and all arrives.
        let mut slow = ask(server.address, &path)?;
        let (mut bytes, begun) = (Vec::new(), Instant::now());
        while (&mut slow).take(64 << 10).read_to_end(&mut bytes).with_context(|| path.clone())? > 0 {
            thread::sleep(Duration::from_millis(20));
        }
        let response = http::read(&mut &*bytes)?;
        let said = (response.status, response.body.len());
        assert!(said.0 == 200 && [length, long.len()].contains(&said.1), "{path}: {said:?}");
        ensure!(begun.elapsed() < PATIENCE, "{path}: {:?}", begun.elapsed());
    }
    Ok(())
}

#[test]
fn a_body_that_stalls_ends_and_what_arrived_of_a_part_is_kept() -> Result<()> {
    let server = impatient()?;
    let (client, recording) = (Client::new(server.address), recording());
    let begun = client.begin(recording.len(), &json!({}))?;
    let id = text(&begun, "id");
    let path = format!("/api/v1/traces/uploads/{id}?from=0");
    let stalled = begin(server.address, "PUT", &path, recording.len(), &recording[..1_000])?;
    let refused = http::receive(stalled)?;
    assert_eq!((refused.status, &*code(&refused)), (408, "slow"), "{}", refused.text());
    let progress = read(&client.get(&format!("/uploads/{id}"))?, 200)?;
    assert_eq!((progress["received"].as_u64(), progress["is_finishing"].as_bool()), (Some(1_000), Some(false)));
    // One that is slow, but not too slow, arrives.
    let rest = &recording[1_000..];
    let path = format!("/api/v1/traces/uploads/{id}?from=1000");
    let mut slow = begin(server.address, "PUT", &path, rest.len(), b"")?;
    for piece in rest.chunks(rest.len() / 20 + 1) {
        slow.write_all(piece)?;
        thread::sleep(Duration::from_millis(100));
    }
    read(&http::receive(slow)?, 200)?;
    client.finish(id, &recording, 1 << 20)?;
    Ok(())
}

#[test]
fn an_upload_in_one_request_that_stalls_or_is_cut_keeps_no_room() -> Result<()> {
    let server = impatient()?;
    let uploads = || server.files.paths().iter().filter(|path| path.contains("uploads/")).count();
    let recording = recording();
    let one = || begin(server.address, "POST", "/api/v1/traces", recording.len(), &recording[..1_000]);
    let stalled = http::receive(one()?)?;
    assert_eq!((stalled.status, &*code(&stalled)), (408, "slow"), "{}", stalled.text());
    assert_eq!(uploads(), 0);
    let cut = one()?;
    until("the upload does not begin", || Ok(uploads() > 0))?;
    cut.shutdown(Shutdown::Both)?;
    drop(cut);
    until("the upload stays", || Ok(uploads() == 0))
}

#[test]
fn who_asks_again_while_an_upload_is_stored_gets_its_link_and_others_do_not_wait() -> Result<()> {
    let server = impatient()?;
    let client = Client::new(server.address);
    let named = |name: &str| format::write(&Header { name: name.to_owned(), ..Header::default() }, &sample());
    let recording = named("first");
    let begun = client.begin(recording.len(), &json!({}))?;
    let id = text(&begun, "id");
    read(&client.send("PUT", &format!("/uploads/{id}?from=0"), &[], &recording)?, 200)?;
    server.gate.set_closed(true);
    let finish = format!("/api/v1/traces/uploads/{id}/finish");
    // The first one is cut, as by a proxy that waits no longer.
    let first = begin(server.address, "POST", &finish, 0, b"")?;
    server.gate.held(1);
    drop(first);
    let second = begin(server.address, "POST", &finish, 0, b"")?;
    let progress = read(&client.get(&format!("/uploads/{id}"))?, 200)?;
    assert_eq!(progress["is_finishing"].as_bool(), Some(true));
    thread::scope(|scope| -> Result<()> {
        // More traces are checked than may be at once, since each makes room while it is stored.
        let others: Vec<_> = (0..4)
            .map(|other| {
                scope.spawn(move || client.share(&named(&format!("other {other}")), &json!({ "password": "x" })))
            })
            .collect();
        server.gate.held(5);
        server.gate.set_closed(false);
        others.into_iter().try_for_each(|other| other.join().expect("no panic").map(drop))
    })?;
    let link = http::receive(second)?;
    assert!(matches!(link.status, 200 | 201), "{}", link.text());
    assert!(client.get(&format!("/{}/trace", text(&begun, "token")))?.body == recording);
    Ok(())
}

#[test]
fn a_push_waits_as_long_as_the_server_stores_the_trace() -> Result<()> {
    // A server behind a proxy that cuts each request to finish, more often than a push tries again by itself.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = thread::spawn(move || -> Result<usize> {
        let mut cuts = 0;
        let mut bytes = 0;
        for stream in listener.incoming() {
            let mut stream = stream?;
            let (head, body) = request(&mut stream)?;
            let answer = match head.split(' ').collect::<Vec<_>>()[..2] {
                ["POST", path] if path.ends_with("/uploads") => {
                    json!({ "id": "x", "token": "t", "delete_token": "d", "received": 0, "part_bytes": 4 << 20 })
                }
                ["PUT", _] => {
                    bytes = body.len();
                    json!({ "received": bytes, "bytes": bytes })
                }
                ["GET", _] => json!({ "received": bytes, "bytes": bytes, "is_finishing": true }),
                ["POST", _] if cuts < 8 => {
                    cuts += 1;
                    continue;
                }
                ["POST", _] => json!({
                    "name": "x", "bytes": bytes, "hash": "", "expires_us": null, "has_password": false, "is_public": false
                }),
                _ => anyhow::bail!("{head}"),
            };
            let answer = answer.to_string();
            let length = answer.len();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}")?;
            if head.contains("/finish") {
                break;
            }
        }
        Ok(cuts)
    });
    let pushed = program::run(&["push", &super::fixture().display().to_string(), "--to", &url])?;
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    assert_eq!(server.join().expect("no panic")?, 8);
    Ok(())
}

/// Reads a request: its head and its body.
fn request(stream: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok((head, body))
}

/// Returns a figure of a process's memory in MiB.
#[cfg(target_os = "linux")]
fn mib(pid: u32, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).context("no figure")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? >> 10)
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_on_its_way_to_an_object_store_takes_bounded_memory() -> Result<()> {
    let (objects, folder) = (Folder::new("objects")?, Folder::new("sends")?);
    let variables = s3::serve(&objects)?;
    let variables: Vec<_> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let server = Server::start_logging(&folder, &["--store", "s3://traces/team"], &variables)?.loaded()?;
    let client = Client::new(server.address());
    let long = long(420);
    ensure!(long.len() > 80 << 20, "{} bytes", long.len());
    let before = mib(server.pid(), "VmRSS")?;
    let begun = client.begin(long.len(), &json!({}))?;
    let (id, token) = (text(&begun, "id"), text(&begun, "token"));
    let mut at = 0;
    for part in long.chunks(4 << 20) {
        read(&client.send("PUT", &format!("/uploads/{id}?from={at}"), &[], part)?, 200)?;
        at += part.len();
    }
    let mut stream = begin(server.address(), "POST", &format!("/api/v1/traces/uploads/{id}/finish"), 0, b"")?;
    // A debug build on a busy machine takes long to read it.
    stream.set_read_timeout(Some(10 * PATIENCE))?;
    read(&http::read(&mut stream)?, 201)?;
    let peak = mib(server.pid(), "VmHWM")?;
    assert!(peak < before + 64, "{before} MiB before, {peak} MiB at most");
    let last = client.send("GET", &format!("/{token}/trace"), &[("Range", "bytes=-9")], b"")?;
    assert_eq!((last.status, last.body.len()), (206, 9));
    Ok(())
}
