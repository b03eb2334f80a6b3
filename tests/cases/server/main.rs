//! What the server answers, to whom, and what it logs.

mod access;
mod elsewhere;
mod log;
mod smuggling;
mod strangers;
mod tls;
mod tunnels;

use std::io::Write;
use std::net::TcpStream;

use anyhow::{Context, Result};
use serde_json::Value;
use tests::http::{self, Response};
use tests::program;
use tests::server::Server;

/// Checks the headers of every response, errors included.
fn check_headers(what: &str, response: &Response) {
    let policy = response.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self'",
        "worker-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "object-src 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.split(';').any(|have| have.trim() == part), "{what}: {part} is not in {policy:?}");
    }
    assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{what}: {policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(response.header(name), value, "{what}: {name}");
    }
    assert_eq!(response.header("access-control-allow-origin"), "", "{what}");
}

#[test]
fn every_response_has_the_security_headers() -> Result<()> {
    let server = Server::start()?;
    for path in ["/", "/healthz", "/sample.pickle", "/offline.html", "/nowhere", "/../../etc/passwd", "/%00"] {
        check_headers(path, &server.get(path)?);
    }
    let address = server.address();
    for request in [
        format!("POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        check_headers(&request, &http::send(address, &request)?);
    }
    Ok(())
}

#[test]
fn other_names_for_this_machine_are_refused() -> Result<()> {
    let server = Server::start()?;
    let status = |host: &str| -> Result<u16> {
        let request = format!("GET /healthz HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
        Ok(http::send(server.address(), &request)?.status)
    };
    assert_eq!(status("Host: localhost\r\n")?, 200);
    assert_eq!(status("Host: [::1]:7070\r\n")?, 200);
    assert_eq!(status("Host: rebound.example.org\r\n")?, 421);
    assert_eq!(status("Host: localhost\r\nHost: rebound.example.org\r\n")?, 421);
    assert_eq!(status("")?, 421);
    Ok(())
}

#[test]
fn only_get_and_head_are_answered() -> Result<()> {
    let server = Server::start()?;
    for (method, status) in [("HEAD", 200), ("POST", 405), ("PUT", 405), ("DELETE", 405), ("OPTIONS", 405)] {
        let address = server.address();
        let request = format!("{method} /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        assert_eq!(http::send(address, &request)?.status, status, "{method}");
    }
    Ok(())
}

#[test]
fn the_text_of_an_error_is_explained() -> Result<()> {
    let server = Server::start()?;
    let post = |body: &[u8]| -> Result<Response> {
        let length = body.len().to_string();
        let mut request =
            http::head("POST", server.address(), "/api/v1/explain", &[("Content-Length", &length)]).into_bytes();
        request.extend(body);
        let mut socket = TcpStream::connect(server.address())?;
        // A server that refuses a long body may close the connection before it has all of it.
        let _ = socket.write_all(&request);
        http::receive(socket)
    };
    let error = "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 340.31 MiB is free.";
    for (body, status, known, words) in [
        (error.as_bytes(), 200, Some(true), "512 MiB"),
        (b"a cake recipe", 200, Some(false), "Paste the whole message"),
        (b"", 200, Some(false), "not known"),
        (b"\xff\xfe", 400, None, "UTF-8"),
    ] {
        let answer = post(body)?;
        let json: Value = serde_json::from_slice(&answer.body)?;
        assert_eq!((answer.status, json["is_known"].as_bool()), (status, known), "{}", answer.text());
        assert!(answer.text().contains(words), "{}", answer.text());
    }
    if let Ok(answer) = post(&vec![b'x'; (1 << 20) + 1]) {
        assert_eq!(answer.status, 413, "{}", answer.text());
    }
    Ok(())
}

#[test]
fn an_endless_head_is_refused() -> Result<()> {
    let server = Server::start()?;
    let long = "x".repeat(1 << 20);
    // The server closes the connection; whether the response can still be read depends on the kernel.
    if let Ok(response) = http::get(server.address(), "/", &[("X-Long", &long)]) {
        assert_eq!(response.status, 431);
    }
    assert_eq!(server.get("/healthz")?.status, 200);
    Ok(())
}

/// The page's files as index.html and boot.js name them: the address, and what the file is.
fn modules(server: &Server) -> Result<Option<[String; 3]>> {
    let page = server.get("/")?;
    if page.status == 503 {
        assert!(page.text().contains("has no page"), "{}", page.text());
        return Ok(None);
    }
    let named = |text: &str, start: &str| -> Result<String> {
        let found = text.split('"').find(|part| part.trim_start_matches("./").starts_with(start));
        Ok(format!("/{}", found.with_context(|| format!("{start} is not named"))?.trim_start_matches("./")))
    };
    let boot = named(&page.text(), "boot-")?;
    let script = server.get(&boot)?.text();
    Ok(Some([named(&script, "page_bg-")?, named(&script, "engine_bg-")?, boot]))
}

#[test]
fn an_unchanged_page_is_not_sent_again() -> Result<()> {
    let server = Server::start()?;
    let Some(modules) = modules(&server)? else { return Ok(()) };
    let first = server.get("/")?;
    assert_eq!((first.status, first.header("content-type")), (200, "text/html; charset=utf-8"));
    for (path, control) in [("/", "no-cache"), (&modules[0], "public, max-age=31536000, immutable")] {
        let first = http::get(server.address(), path, &[("Accept-Encoding", "br")])?;
        assert_eq!((first.header("cache-control"), first.header("vary")), (control, "Accept-Encoding"), "{path}");
        let known = [("Accept-Encoding", "br"), ("If-None-Match", first.header("etag"))];
        let again = http::get(server.address(), path, &known)?;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        assert_eq!(again.header("etag"), first.header("etag"), "{path}");
        assert_eq!(again.header("cache-control"), control, "{path}");
        // Debug builds hold no compressed files.
        if first.header("content-encoding") == "br" {
            let other = http::get(server.address(), path, &[("If-None-Match", first.header("etag"))])?;
            assert_eq!(other.status, 200, "{path}: the tag is that of another coding");
        }
    }
    Ok(())
}

#[test]
fn each_browser_gets_the_coding_it_reads() -> Result<()> {
    let server = Server::start()?;
    let Some(modules) = modules(&server)? else { return Ok(()) };
    for path in &modules[..2] {
        let plain = server.get(path)?;
        assert_eq!((plain.header("content-type"), plain.header("content-encoding")), ("application/wasm", ""));
        assert_eq!(plain.body[..4], *b"\0asm");
        let is_debug =
            http::get(server.address(), path, &[("Accept-Encoding", "br")])?.header("content-encoding").is_empty();
        if is_debug && std::env::var_os("VRAMSCOPE_PROGRAM").is_none() {
            // Debug builds hold no compressed files.
            return Ok(());
        }
        let mut sizes = vec![plain.body.len()];
        for (accept, coding) in [("gzip", "gzip"), ("gzip, deflate, br", "br"), ("br;q=0, gzip", "gzip"), ("*", "br")] {
            let packed = http::get(server.address(), path, &[("Accept-Encoding", accept)])?;
            assert_eq!((packed.status, packed.header("content-encoding")), (200, coding), "{path} {accept}");
            assert_eq!(coding == "gzip", packed.body[..2] == [0x1f, 0x8b], "{path} {accept}");
            sizes.push(packed.body.len());

            let address = server.address();
            let head = http::send(
                address,
                &format!(
                    "HEAD {path} HTTP/1.1\r\nHost: {address}\r\nAccept-Encoding: {accept}\r\nConnection: close\r\n\r\n"
                ),
            )?;
            assert_eq!((head.status, head.body.len()), (200, 0), "{path} {accept}");
            assert_eq!(head.header("content-length"), packed.body.len().to_string(), "{path} {accept}");
            assert_eq!(head.header("etag"), packed.header("etag"), "{path} {accept}");
        }
        let [plain, gzip, brotli, ..] = sizes[..] else { unreachable!() };
        assert!(brotli < gzip && gzip < plain, "{path}: {sizes:?}");
    }
    Ok(())
}

#[test]
fn a_port_in_use_gets_one_clear_line() -> Result<()> {
    let server = Server::start()?;
    let address = server.address().to_string();
    let output = program::run(&["serve", "--listen", &address])?;
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains("is in use") && line.contains("--listen 127.0.0.1:"), "{line}");
    Ok(())
}

#[test]
fn an_address_that_other_machines_reach_requires_a_token() -> Result<()> {
    for address in ["0.0.0.0:7070", "[::]:7070", "192.0.2.1:7070"] {
        let output = program::run(&["serve", "--listen", address])?;
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains("this machine only"), "{line}");
    }
    Ok(())
}
