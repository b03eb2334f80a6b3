//! What comes through a tunnel, a port forwarder or a proxy of the server's user. The connection is that user's, as with
//! `ssh -R`, and whoever reaches the other end may be anybody: it opens no files, and is no administrator.
#![cfg(unix)]

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::Folder;
use tests::http::{self, Response};
use tests::peer::Peer;
use tests::proxy::Proxy;
use tests::server::Server;
use tests::stream::Stream;
use wire::{Code, Message};

use super::access::error;

/// What a server says of itself to the programs of its user.
fn announced(folder: &Path, server: &Server) -> Result<Value> {
    let servers = folder.join("state/vramscope/servers");
    let file = servers.join(format!("{}.json", server.pid()));
    for (path, wanted) in [(&servers, 0o700), (&file, 0o600)] {
        assert_eq!(fs::metadata(path)?.permissions().mode() & 0o7777, wanted, "{}", path.display());
    }
    Ok(serde_json::from_slice(&fs::read(file)?)?)
}

fn text<'a>(announced: &'a Value, name: &str) -> Result<&'a str> {
    announced[name].as_str().with_context(|| format!("no {name}"))
}

/// Sends a request with headers and a body to the server, or to the entrance of a tunnel to it.
fn send(place: SocketAddr, what: (&str, &str), headers: &[(&str, &str)], body: &str) -> Result<Response> {
    let length = body.len().to_string();
    let all = [&[("Content-Length", &*length)], headers].concat();
    http::send(place, &(http::head(what.0, place, what.1, &all) + body))
}

const OFFER: (&str, &str) = ("POST", "/api/v1/files");
const JSON: (&str, &str) = ("Content-Type", "application/json");

#[cfg(target_os = "linux")]
#[test]
fn through_a_tunnel_nobody_opens_files_or_is_an_administrator() -> Result<()> {
    let folder = Folder::new("tunnel")?;
    let server = Server::start_in(&folder, &[])?;
    let tunnel = Proxy::to(server.address())?.address();
    let key = folder.secret("id_ed25519", "only for my eyes")?;
    let offer = json!({ "path": key }).to_string();
    // As a stranger does who knows nothing but the path.
    assert_eq!(send(tunnel, OFFER, &[JSON], &offer)?.status, 403);
    let announced = announced(&folder, &server)?;
    assert!(announced["token"].is_null(), "connections of the user need none");
    let secret = format!("Bearer {}", text(&announced, "secret")?);
    ensure!(secret.len() == "Bearer ".len() + 64, "not 256 bits");
    let with = |value| [JSON, ("Authorization", value)];

    for place in [tunnel, server.address()] {
        let refused = error(&send(place, OFFER, &[JSON], &offer)?)?;
        assert_eq!(refused.0, "secret");
        assert!(refused.1.contains("run `vramscope FILE`") && refused.1.contains("drop the file"), "{}", refused.1);
        let wrong = send(place, OFFER, &with("Bearer not-the-secret-of-this-server"), &offer)?;
        assert_eq!((wrong.status, error(&wrong)?.0.as_str()), (401, "token"));
        // Neither in the query, nor from a page of another site, nor as a form's text.
        let query = format!("{}?token={}", OFFER.1, text(&announced, "secret")?);
        assert_eq!(send(place, ("POST", &query), &[JSON], &offer)?.status, 403);
        let origin = [JSON, ("Authorization", &*secret), ("Origin", "https://evil.example")];
        assert_eq!(error(&send(place, OFFER, &origin, &offer)?)?.0, "origin");
        let plain = [("Content-Type", "text/plain"), ("Authorization", &*secret)];
        assert_eq!(send(place, OFFER, &plain, &offer)?.status, 400);
        // The user's own program. The address that it gets can't be guessed, and the page shows no secret for it.
        let offered = send(place, OFFER, &with(&secret), &offer)?;
        let address: Value = serde_json::from_slice(&offered.body)?;
        let address = format!("/{}", text(&address, "address")?);
        assert_eq!(send(place, ("GET", &address), &[], "")?.text(), "only for my eyes");
        let (folder, _) = address.rsplit_once('/').context("no name")?;
        assert_eq!(send(place, ("GET", &folder.replace(|c: char| c.is_ascii_digit(), "0")), &[], "")?.status, 404);
    }

    // What a connection of the user gets is the same as ever, and no more.
    let stream = Stream::new(120, 1, 50);
    let (mut peer, _) = Peer::hello(tunnel, &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.end(1)?;
    let session = format!("/api/v1/sessions/{}", stream.session());
    let list: Value = serde_json::from_slice(&send(tunnel, ("GET", "/api/v1/sessions"), &[], "")?.body)?;
    assert_eq!((&list["roles"], &list["may_manage"]), (&json!(["ingest", "read", "share"]), &json!(true)));
    let shared = send(tunnel, ("GET", &format!("{session}/trace?format=vramscope")), &[], "")?.body;
    let upload = json!({ "name": "x", "bytes": shared.len(), "is_public": false }).to_string();
    let begun = send(tunnel, ("POST", "/api/v1/traces/uploads"), &[JSON], &upload)?;
    assert_eq!(begun.status, 201, "{}", begun.text());
    let link: Value = serde_json::from_slice(&begun.body)?;
    let link = format!("/api/v1/traces/{}", text(&link, "token")?);
    for (method, path, body, wanted) in [
        ("GET", "/metrics", "", 200),
        ("GET", "/api/v1/traces/sharing", "", 200),
        ("POST", &*format!("{session}/ask"), "{\"what\":\"history\"}", 409),
        ("PUT", &*format!("{session}/pin"), "{\"pinned\":true}", 204),
        ("DELETE", &*session, "", 204),
        // An administrator deletes any link; everybody else shows the token of their own.
        ("DELETE", &*link, "", 403),
        ("POST", "/api/v1/demo", "", 201),
    ] {
        let answer = send(tunnel, (method, path), &[JSON], body)?;
        assert_eq!(answer.status, wanted, "{method} {path}: {}", answer.text());
    }
    let list: Value = serde_json::from_slice(&send(tunnel, ("GET", "/api/v1/sessions"), &with(&secret), "")?.body)?;
    assert_eq!(list["roles"], json!(["ingest", "read", "share", "admin"]));
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn guesses_of_the_secret_are_slowed_and_the_user_is_not() -> Result<()> {
    let folder = Folder::new("guess")?;
    let server = Server::start_in(&folder, &[])?;
    let tunnel = Proxy::to(server.address())?.address();
    let offer = json!({ "path": folder.secret("file", "x")? }).to_string();
    let announced = announced(&folder, &server)?;
    let status = |secret: &str| -> Result<u16> {
        Ok(send(tunnel, OFFER, &[JSON, ("Authorization", &format!("Bearer {secret}"))], &offer)?.status)
    };
    let secret = text(&announced, "secret")?;
    assert_eq!(status(secret)?, 200);
    let mut compared = 0;
    while status(&format!("guess-number-{compared}"))? == 401 {
        compared += 1;
        ensure!(compared < 1_000, "guesses are never slowed");
    }
    // On a busy machine, a guess may be allowed again by the time it arrives; not each of many.
    let allowed = (0..10).map(|i| status(&format!("another-guess-{i}"))).collect::<Result<Vec<_>>>()?;
    assert!(allowed.contains(&429), "{allowed:?}");
    assert_eq!(status(secret)?, 200, "it was right before");
    // Whoever shows a token for another server is let in as without it.
    let other = [("Authorization", "Bearer the-token-of-another-server")];
    assert_eq!(send(server.address(), ("GET", "/api/v1/sessions"), &other, "")?.status, 200);
    Ok(())
}

#[test]
fn a_server_that_can_not_tell_users_apart_lets_nobody_in_without_its_token() -> Result<()> {
    let folder = Folder::new("blind")?;
    let arguments = ["--log", "debug"];
    let server = Server::start_logging(&folder, &arguments, &[("VRAMSCOPE_USERS_UNKNOWN", "1")])?;
    assert_eq!(server.access(), "opened by a link with a token");
    let announced = announced(&folder, &server)?;
    let (secret, token) = (text(&announced, "secret")?.to_owned(), text(&announced, "token")?.to_owned());
    assert!(secret != token && token.len() == 64);
    let offer = json!({ "path": folder.secret("job.pickle", "content")? }).to_string();
    let ask = |what: (&str, &str), shown: &str, body: &str| {
        let bearer = format!("Bearer {shown}");
        let headers: &[_] = if shown.is_empty() { &[JSON] } else { &[JSON, ("Authorization", &bearer)] };
        send(server.address(), what, headers, body)
    };
    let address: Value = serde_json::from_slice(&ask(OFFER, &secret, &offer)?.body)?;
    let address = format!("/{}", text(&address, "address")?);
    for (method, path, shown, wanted) in [
        ("GET", "/api/v1/sessions", "", 401),
        ("GET", "/api/v1/sessions", "wrong", 401),
        ("GET", "/api/v1/sessions", &*token, 200),
        ("GET", "/metrics", "", 401),
        ("POST", "/api/v1/demo", "", 401),
        ("POST", "/api/v1/files", "", 401),
        ("POST", "/api/v1/files", &token, 403),
        ("POST", "/api/v1/files", &secret, 200),
        ("GET", &address, "", 401),
        ("GET", &address, &token, 200),
        ("GET", "/healthz", "", 200),
    ] {
        let answer = ask((method, path), shown, &offer)?;
        assert_eq!(answer.status, wanted, "{method} {path}: {}", answer.text());
    }
    let list: Value = serde_json::from_slice(&ask(("GET", "/api/v1/sessions"), &token, "")?.body)?;
    assert_eq!((&list["roles"], &list["may_manage"]), (&json!(["ingest", "read", "share"]), &json!(true)));
    let mut stream = Stream::new(121, 1, 50);
    let mut peer = Peer::collector(server.address())?;
    peer.say(&Message::Hello(stream.hello.clone()))?;
    assert_eq!(peer.refused()?, (Code::Token, false));
    stream.hello.token.clone_from(&token);
    let (mut peer, _) = Peer::hello(server.address(), &stream.hello)?;
    peer.batch(1, stream.batch(1))?;
    peer.end(1)?;
    let session = format!("/api/v1/sessions/{}", stream.session());
    assert_eq!(ask(("DELETE", &session), &token, "")?.status, 204);
    let log = server.log(&folder)?;
    ensure!(log.contains("/api/v1/files/ID/job.pickle"), "{log}");
    let id = address.split('/').nth(4).context("no id")?.to_owned();
    for text in [secret, token, id] {
        assert!(!log.contains(&text), "the log opens something: {log}");
    }
    Ok(())
}
