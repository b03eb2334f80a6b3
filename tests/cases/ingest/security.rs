//! Authentication, and protection from pages of other sites.

use anyhow::{Context, Result};
use tests::http::{self, Response};
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, program};
use wire::{Code, Message, PROTOCOL, Watch};

const TOKEN: &str = "correct-horse-battery-staple";

fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {}\r\n", server.address());
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    http::send(server.address(), &(request + "\r\n"))
}

#[test]
fn a_page_of_another_origin_changes_nothing_and_opens_no_socket() -> Result<()> {
    let server = Server::start()?;
    let stream = Stream::new(60, 2, 100);
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.batch(2, stream.batch(2))?;
    peer.end(2)?;
    let own = format!("http://{}", server.address());
    let session = format!("/api/v1/sessions/{}", stream.session());
    for origin in ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1"] {
        for (method, path) in [
            ("DELETE", &*session),
            ("POST", "/api/v1/ingest"),
            ("POST", "/api/v1/demo"),
            ("POST", &format!("{session}/ask")),
        ] {
            let response = ask(&server, method, path, &[("Origin", origin)])?;
            assert_eq!((response.status, response.text().contains("origin")), (403, true), "{origin} {method} {path}");
        }
        for path in ["/api/v1/ingest", &format!("{session}/live")] {
            assert_eq!(
                Peer::connect(server.address(), path, &[("Origin", origin)])?.err(),
                Some(403),
                "{origin} {path}"
            );
        }
        // Requests that only read are answered, but a browser hides the response from pages of other origins.
        let read = ask(&server, "GET", &session, &[("Origin", origin)])?;
        assert_eq!((read.status, read.header("access-control-allow-origin")), (200, ""), "{origin}");
        assert_eq!(read.header("cross-origin-resource-policy"), "same-origin");
    }
    assert!(Peer::connect(server.address(), &format!("{session}/live"), &[("Origin", &own)])?.is_ok());
    assert_eq!(ask(&server, "DELETE", &session, &[("Origin", &own)])?.status, 204);
    Ok(())
}

#[test]
fn an_unknown_host_is_refused_on_every_route_and_an_additional_one_is_not() -> Result<()> {
    let server = Server::start_with(&["--host", "box.example"])?;
    for path in ["/api/v1/sessions", "/metrics", "/api/v1/health/live", "/"] {
        assert_eq!(ask(&server, "GET", path, &[("Host", "rebound.example")])?.status, 421, "{path}");
    }
    assert_eq!(ask(&server, "GET", "/api/v1/sessions", &[("Host", "box.example:80")])?.status, 200);
    Ok(())
}

#[test]
fn a_server_with_a_token_refuses_requests_without_it() -> Result<()> {
    let folder = Folder::new("token")?;
    let file = folder.secret("token", &format!("{TOKEN}\n"))?;
    let server = Server::start_with(&["--token-file", &file])?;
    let mut stream = Stream::new(61, 2, 100);
    let session = format!("/api/v1/sessions/{}", stream.session());

    // In the hello, or in the header.
    let mut peer = Peer::collector(server.address())?;
    peer.say(&Message::Hello(stream.hello.clone()))?;
    assert_eq!(peer.refused()?, (Code::Token, false));
    stream.hello.token = TOKEN.to_owned();
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.acked(1)?;
    let bearer = format!("Bearer {TOKEN}");
    let live = format!("{session}/live");
    let mut viewer = Peer::connect(server.address(), &live, &[("Authorization", &bearer)])?.expect("a socket");
    viewer.say(&Message::Watch(Watch { protocol: PROTOCOL, ..Watch::default() }))?;
    assert_eq!(viewer.batches(1)?.0.len(), 1);
    for (token, is_let_in) in [("", false), ("correct-horse-battery-stapl", false), (TOKEN, true)] {
        let mut viewer = Peer::viewer_with(server.address(), stream.session(), token)?;
        match is_let_in {
            true => assert_eq!(viewer.batches(1)?.0.len(), 1),
            false => assert_eq!(viewer.refused()?, (Code::Token, false), "{token}"),
        }
    }
    assert_eq!(Peer::connect(server.address(), &live, &[("Authorization", "Bearer wrong")])?.err(), Some(401));

    let trace = format!("{session}/trace");
    let guarded =
        [("GET", "/api/v1/sessions"), ("GET", &session), ("DELETE", &session), ("GET", &trace), ("GET", "/metrics")];
    for (method, path) in guarded {
        for header in ["", "Bearer", "Bearer wrong", &format!("Basic {TOKEN}"), &format!("Bearer {TOKEN}x")] {
            let response = ask(&server, method, path, &[("Authorization", header)])?;
            assert_eq!(response.status, 401, "{method} {path} {header:?}");
            assert_eq!(response.header("www-authenticate"), "Bearer");
        }
        // A token in an address does not count: addresses get into logs and histories.
        assert_eq!(ask(&server, method, &format!("{path}?token={TOKEN}"), &[])?.status, 401, "{method} {path}");
    }
    assert_eq!(ask(&server, "GET", &trace, &[("Authorization", &bearer)])?.status, 200);
    for path in ["/healthz", "/api/v1/health/live", "/api/v1/health/ready", "/api/v1/", "/api/v1/openapi.json"] {
        assert_eq!(ask(&server, "GET", path, &[])?.status, 200, "{path}");
    }
    let page = ask(&server, "GET", "/", &[])?.status;
    assert!(page == 200 || page == 503, "{page}");
    Ok(())
}

#[test]
fn an_address_for_other_machines_requires_a_valid_token() -> Result<()> {
    let folder = Folder::new("short")?;
    let short = folder.secret("short", "short")?;
    let missing = folder.join("missing");
    let path = |path: &std::path::Path| path.to_str().map(str::to_owned).context("a path");
    let data = path(&folder.join("data"))?;
    let cases = [
        (vec!["serve", "--listen", "0.0.0.0:0"], "--token-file"),
        (vec!["serve", "--listen", "[::]:0"], "VRAMSCOPE_TOKEN"),
        (vec!["serve", "--listen", "127.0.0.1:0", "--token-file", &short], "16 characters"),
        (vec!["serve", "--listen", "127.0.0.1:0", "--token-file", &path(&missing)?], "can't be read"),
    ]
    .map(|(arguments, word)| (arguments.into_iter().map(str::to_owned).collect::<Vec<_>>(), word));
    for (arguments, word) in cases {
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.extend(["--data", &data]);
        let output = program::run(&arguments)?;
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{arguments:?}: {line}");
        assert!(line.contains(word), "{arguments:?}: {line}");
    }
    Ok(())
}

#[test]
fn the_name_of_a_session_is_treated_as_text() -> Result<()> {
    let server = Server::start()?;
    let name = "<script>alert(1)</script>\"\r\nX-Evil: 1";
    let stream = Stream::named(62, name, 1, 50);
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.end(1)?;
    let listed = server.get("/api/v1/sessions")?;
    assert_eq!(
        (listed.header("content-type"), listed.header("x-content-type-options")),
        ("application/json", "nosniff")
    );
    let sessions: serde_json::Value = serde_json::from_slice(&listed.body)?;
    assert_eq!(sessions["sessions"][0]["name"], name);
    let file = server.get(&format!("/api/v1/sessions/{}/trace", stream.session()))?;
    assert_eq!((file.status, file.header("x-evil")), (200, ""));
    let disposition = file.header("content-disposition");
    // The harmless characters of the name, then the start of the session.
    let begin = "attachment; filename=\"script-alert-1---script----X-Evil--1-2";
    assert!(disposition.starts_with(begin) && disposition.ends_with(".vramscope\""), "{disposition}");
    let time = &disposition[begin.len()..disposition.len() - ".vramscope\"".len()];
    assert!(time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'), "{disposition}");
    Ok(())
}
