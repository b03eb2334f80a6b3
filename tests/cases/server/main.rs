//! What the server answers, to whom, and what it logs.

mod log;

use anyhow::Result;
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
    for path in ["/", "/healthz", "/sample.pickle", "/nowhere", "/../../etc/passwd", "/%00"] {
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

#[test]
fn an_unchanged_page_is_not_sent_again() -> Result<()> {
    let server = Server::start()?;
    let first = server.get("/")?;
    if first.status == 503 {
        assert!(first.text().contains("has no page"), "{}", first.text());
        return Ok(());
    }
    assert_eq!((first.status, first.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(first.header("cache-control"), "no-cache");
    let again = http::get(server.address(), "/", &[("If-None-Match", first.header("etag"))])?;
    assert_eq!((again.status, again.body.len()), (304, 0));

    let module = http::get(server.address(), "/web_bg.wasm", &[("Accept-Encoding", "gzip")])?;
    assert_eq!((module.status, module.header("content-type")), (200, "application/wasm"));
    assert_eq!(module.header("content-encoding"), "gzip");
    assert_eq!(module.body[..2], [0x1f, 0x8b]);
    assert_eq!(server.get("/web_bg.wasm")?.body[..4], *b"\0asm");
    Ok(())
}

#[test]
fn a_port_in_use_gets_one_clear_line() -> Result<()> {
    let server = Server::start()?;
    let address = server.address().to_string();
    let output = program::run(&["--listen", &address])?;
    let line = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
    assert!(line.contains("is in use") && line.contains("--listen 127.0.0.1:"), "{line}");
    Ok(())
}

#[test]
fn an_address_that_other_machines_reach_requires_a_token() -> Result<()> {
    for address in ["0.0.0.0:7070", "[::]:7070", "192.0.2.1:7070"] {
        let output = program::run(&["serve", "--listen", address])?;
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(1), 1), "{line}");
        assert!(line.contains("this machine only"), "{line}");
    }
    Ok(())
}
