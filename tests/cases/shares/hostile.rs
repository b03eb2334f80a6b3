//! Strangers: bombs, wrong lengths, paths, other sites, slow senders, a full disk.

use std::io::Write;
use std::net::TcpStream;

use anyhow::Result;
use format::{PRELUDE_BYTES, prelude, seal};
use serde_json::json;
use tests::Folder;
use tests::http;
use tests::server::Server;

use super::{Client, code, read, recording, text};

#[test]
fn what_is_no_recording_is_refused_and_leaves_nothing() -> Result<()> {
    let folder = Folder::new("strangers")?;
    let server = Server::start_in(&folder, &[])?;
    let client = Client::new(server.address());
    let good = recording();
    // A megabyte of zeros packs well; a hundred of them are a bomb.
    let zeros = seal(2, &vec![0; 1 << 20]);
    let header = &good[PRELUDE_BYTES..PRELUDE_BYTES + format::chunk_bytes(&good[PRELUDE_BYTES..]).unwrap_or(0)];
    let bomb = [&prelude()[..], header, &zeros.repeat(200)].concat();
    let mut changed = good.clone();
    changed[good.len() / 2] ^= 4;
    for (name, bytes) in [
        ("a pickle", b"\x80\x04cos\nsystem\n.".to_vec()),
        ("text", b"<script>alert(1)</script>".to_vec()),
        ("a bomb", bomb),
        ("changed", changed),
        ("cut off", good[..good.len() - 1].to_vec()),
        ("gzip", b"\x1f\x8b\x08\0\0\0\0\0".to_vec()),
    ] {
        let refused = client.send("POST", "", &[], &bytes)?;
        assert_eq!((refused.status, &*code(&refused)), (422, "trace"), "{name}: {}", refused.text());
        assert!(!refused.text().contains("script"), "{name}");
    }
    let left = |name: &str| std::fs::read_dir(folder.join("shares").join(name)).map_or(0, Iterator::count);
    assert_eq!((left("uploads"), left("traces"), left("links")), (0, 0, 0));
    // The same bytes as they should be.
    let link = read(&client.send("POST", "?name=a%20run&expires_seconds=never", &[], &good)?, 201)?;
    assert_eq!((text(&link, "name"), link["expires_us"].is_null()), ("a run", true));
    Ok(())
}

#[test]
fn requests_that_make_no_sense_are_refused() -> Result<()> {
    let server = Server::start()?;
    let client = Client::new(server.address());
    let recording = recording();
    let begun = client.begin(recording.len(), &json!({}))?;
    let (id, token) = (text(&begun, "id").to_owned(), text(&begun, "token").to_owned());
    let upload = format!("/uploads/{id}");
    let too_long = vec![0; recording.len() + 1];
    let cases: [(&str, String, &[u8], u16, &str); 16] = [
        ("GET", "/..%2f..%2flock".to_owned(), b"", 404, "share"),
        ("GET", format!("/{}", token.to_uppercase()), b"", 404, "share"),
        ("GET", format!("/{token}x/trace"), b"", 404, "share"),
        ("GET", format!("/{token}"), b"", 404, "share"),
        ("GET", "/uploads/..%2f..".to_owned(), b"", 404, "upload"),
        ("DELETE", "/uploads/%2e%2e".to_owned(), b"", 404, "upload"),
        ("PUT", upload.clone(), b"x", 400, "malformed"),
        ("PUT", format!("{upload}?from=-1"), b"x", 400, "malformed"),
        ("PUT", format!("{upload}?from=5"), b"x", 409, "offset"),
        ("PUT", format!("{upload}?from=0"), &too_long, 413, "too_large"),
        ("POST", format!("{upload}/finish"), b"", 409, "incomplete"),
        ("POST", "/uploads".to_owned(), b"not json", 400, "malformed"),
        ("POST", "?expires_seconds=soon".to_owned(), b"x", 400, "malformed"),
        ("POST", "".to_owned(), b"", 400, "malformed"),
        ("POST", format!("/{token}/open"), b"{}", 400, "malformed"),
        ("PATCH", upload.clone(), b"", 405, "method"),
    ];
    for (method, path, body, status, word) in cases {
        let refused = client.send(method, &path, &[], body)?;
        assert_eq!((refused.status, &*code(&refused)), (status, word), "{method} {path}: {}", refused.text());
        assert!(!refused.text().contains(&token), "{method} {path} repeats the token");
    }
    // None of this has touched the upload.
    client.finish(&id, &recording, 1 << 20)?;
    let range = |range: &str| client.send("GET", &format!("/{token}/trace"), &[("Range", range)], b"");
    let part = range("bytes=5-9")?;
    assert_eq!((part.status, part.header("content-range")), (206, &*format!("bytes 5-9/{}", recording.len())));
    assert_eq!(part.body, recording[5..10]);
    let beyond = range("bytes=999999999-")?;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, &*format!("bytes */{}", recording.len())));
    let whole = range("bytes=0-1,3-4")?;
    assert!(whole.status == 200 && whole.body == recording);
    for (name, want) in
        [("content-disposition", "attachment"), ("cache-control", "no-store"), ("x-content-type-options", "nosniff")]
    {
        assert!(whole.header(name).contains(want), "{name}: {}", whole.header(name));
    }
    Ok(())
}

#[test]
fn pages_of_other_sites_change_nothing() -> Result<()> {
    let server = Server::start()?;
    let client = Client::new(server.address());
    let recording = recording();
    let (token, delete) = client.share(&recording, &json!({}))?;
    let origin = ("Origin", "https://evil.example");
    for (method, path, headers) in [
        ("POST", "/uploads".to_owned(), vec![origin, ("Content-Type", "application/json")]),
        ("POST", String::new(), vec![origin]),
        ("DELETE", format!("/{token}"), vec![origin, ("x-vramscope-delete-token", &delete)]),
        ("POST", format!("/{token}/open"), vec![origin]),
    ] {
        let refused = client.send(method, &path, &headers, b"{\"bytes\":9}")?;
        assert_eq!((refused.status, &*code(&refused)), (403, "origin"), "{method} {path}");
    }
    // A name that another site points here.
    let request = format!("GET /api/v1/traces/{token} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(http::send(server.address(), &request)?.status, 421);
    let link = client.get(&format!("/{token}"))?;
    assert!(link.header("access-control-allow-origin").is_empty(), "another site may read it");
    Ok(())
}

#[test]
fn a_full_disk_refuses_politely_and_the_server_keeps_serving() -> Result<()> {
    let Some(folder) = Folder::disk("full", 4)? else {
        eprintln!("skipped: this user may not mount a disk");
        return Ok(());
    };
    let server = Server::start_in(&folder, &[])?;
    let client = Client::new(server.address());
    let recording = recording();
    let (token, _) = client.share(&recording, &json!({}))?;
    let filler = std::fs::File::create(folder.join("filler"))?;
    let mut room = 4 << 20;
    while room > 0 {
        match (&filler).write(&vec![1; room]) {
            Ok(written) if written > 0 => {}
            _ => room /= 2,
        }
    }
    let refused = client.json("POST", "/uploads", &json!({ "bytes": recording.len() }))?;
    assert_eq!((refused.status, &*code(&refused)), (507, "full"), "{}", refused.text());
    assert!(client.get(&format!("/{token}/trace"))?.body == recording);
    // A process that another test is about to start may have the file open, too: removing it would not empty the disk.
    filler.set_len(0)?;
    client.share(&recording, &json!({}))?;
    Ok(())
}

#[test]
fn a_slow_sender_is_cut_off_and_costs_the_others_nothing() -> Result<()> {
    let server = Server::start()?;
    let client = Client::new(server.address());
    let recording = recording();
    let mut slow = Vec::new();
    for _ in 0..20 {
        let begun = client.begin(recording.len(), &json!({}))?;
        let path = format!("/api/v1/traces/uploads/{}?from=0", text(&begun, "id"));
        let length = recording.len().to_string();
        let mut stream = TcpStream::connect(server.address())?;
        stream.write_all(http::head("PUT", server.address(), &path, &[("Content-Length", &length)]).as_bytes())?;
        stream.write_all(b"\x89")?;
        slow.push(stream);
    }
    let (token, _) = client.share(&recording, &json!({}))?;
    assert!(client.get(&format!("/{token}/trace"))?.body == recording);
    Ok(())
}
