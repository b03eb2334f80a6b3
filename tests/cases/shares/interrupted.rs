//! Uploads that are interrupted: killed servers, cut networks, many at once.

use std::fs;
use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use tests::proxy::{Network, Proxy};
use tests::server::Server;
use tests::{Folder, program};

use super::{Client, code, fixture, read, recording, text};

#[test]
fn a_server_that_is_killed_forgets_no_part_and_shows_no_half() -> Result<()> {
    let folder = Folder::new("killed")?;
    let recording = recording();
    let part = recording.len() / 5 + 1;
    let mut server = Server::start_in(&folder, &[])?;
    let begun = Client::new(server.address()).begin(recording.len(), &json!({}))?;
    let (id, token) = (text(&begun, "id"), text(&begun, "token"));
    // Killed after each part, and in the middle of one.
    for round in 0..5 {
        let client = Client::new(server.address());
        let received = read(&client.get(&format!("/uploads/{id}"))?, 200)?["received"].as_u64().unwrap_or(0) as usize;
        assert_eq!(received, (round * part).min(recording.len()), "round {round}");
        assert_eq!(code(&client.get(&format!("/{token}"))?), "share", "half an upload is visible");
        let bytes = &recording[received..recording.len().min(received + part)];
        let sent = client.send("PUT", &format!("/uploads/{id}?from={received}"), &[], bytes)?;
        read(&sent, 200)?;
        server.kill()?;
        server = Server::start_in(&folder, &[])?;
    }
    let client = Client::new(server.address());
    let link = client.finish(id, &recording, part)?;
    assert_eq!(link["bytes"].as_u64(), Some(recording.len() as u64));
    server.kill()?;
    let server = Server::start_in(&folder, &[])?;
    let client = Client::new(server.address());
    assert!(client.get(&format!("/{token}/trace"))?.body == recording);
    assert!(!folder.join("shares/uploads").join(id).exists(), "the upload left something behind");
    Ok(())
}

#[test]
fn a_connection_that_is_cut_in_the_middle_of_a_part_keeps_what_arrived() -> Result<()> {
    let folder = Folder::new("cut")?;
    let server = Server::start_in(&folder, &[])?;
    let client = Client::new(server.address());
    let recording = recording();
    let begun = client.begin(recording.len(), &json!({}))?;
    let id = text(&begun, "id");
    let is_being_written = || {
        let files = fs::read_dir(folder.join("shares/uploads").join(id)).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.path().extension().is_some_and(|end| end == "new"))
    };
    let length = recording.len().to_string();
    let head = tests::http::head(
        "PUT",
        server.address(),
        &format!("/api/v1/traces/uploads/{id}?from=0"),
        &[("Content-Length", &length)],
    );
    let mut stream = std::net::TcpStream::connect(server.address())?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(&recording[..1_000])?;
    let begun_at = Instant::now();
    // Whose connection it is can be told only while it is open.
    while !is_being_written() {
        assert!(begun_at.elapsed().as_secs() < 10, "the part does not begin");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(stream);
    loop {
        let progress = client.get(&format!("/uploads/{id}"))?;
        if read(&progress, 200)?["received"].as_u64() == Some(1_000) {
            break;
        }
        assert!(begun_at.elapsed().as_secs() < 10, "{}", progress.text());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    client.finish(id, &recording, 1 << 20)?;
    Ok(())
}

#[test]
fn a_push_survives_a_network_that_is_cut() -> Result<()> {
    let server = Server::start()?;
    let proxy = Proxy::to(server.address())?;
    proxy.set(Network::Closed);
    let url = format!("http://{}", proxy.address());
    let mut push = std::process::Command::new(program::path()?);
    push.arg("push").arg(fixture()).args(["--to", &url]).stdout(std::process::Stdio::piped());
    let push = push.stderr(std::process::Stdio::null()).spawn()?;
    std::thread::sleep(std::time::Duration::from_millis(300));
    proxy.set(Network::Up);
    let output = push.wait_with_output()?;
    assert!(output.status.success());
    let link = String::from_utf8(output.stdout)?;
    let token = link.trim().rsplit_once("/s-").map(|(_, token)| token.to_owned()).unwrap_or_default();
    assert_eq!(Client::new(server.address()).get(&format!("/{token}"))?.status, 200, "{link}");
    Ok(())
}

/// Returns the most memory that a process has used, in KiB.
fn peak_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

#[cfg(target_os = "linux")]
#[test]
fn many_uploads_at_once_take_bounded_memory() -> Result<()> {
    let server = Server::start()?;
    let client = Client::new(server.address());
    let recording = recording();
    client.share(&recording, &json!({}))?;
    let before = peak_kib(server.pid())?;
    let links = std::thread::scope(|scope| {
        let uploads: Vec<_> = (0..32).map(|_| scope.spawn(|| client.share(&recording, &json!({})))).collect();
        uploads.into_iter().map(|upload| upload.join().expect("no upload panics")).collect::<Result<Vec<_>>>()
    })?;
    let after = peak_kib(server.pid())?;
    assert!(after < before + (64 << 10), "{before} KiB before, {after} KiB after");
    for (token, _) in links {
        assert_eq!(client.get(&format!("/{token}"))?.status, 200);
    }
    Ok(())
}
