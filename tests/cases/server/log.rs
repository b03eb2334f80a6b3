//! What the server writes to its log, and what it never writes there.
#![cfg(unix)]

use anyhow::{Context, Result};
use serde_json::Value;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, http, program};
use trace::text::is_hidden;

const TOKEN: &str = "correct-horse-battery-staple";

/// Logs to JSON at a level, for as long as `act` runs. Returns the events.
fn logged(arguments: &[&str], act: impl Fn(&Server) -> Result<()>) -> Result<Vec<Value>> {
    let folder = Folder::new("log")?;
    let server = Server::start_logging(&folder, &[&["--log-format", "json"], arguments].concat(), &[])?;
    act(&server)?;
    let log = server.log(&folder)?;
    check_characters(&log);
    log.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

/// No line holds a hidden character, an escape sequence included.
fn check_characters(log: &str) {
    for line in log.lines() {
        assert!(!line.contains(is_hidden), "{line:?}");
    }
}

/// The requests among the events, each as method, route and status.
fn requests(events: &[Value]) -> Vec<String> {
    let text = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let is_request = |event: &&Value| event["target"] == "vramscope::request";
    let line = |event: &Value| format!("{} {} {}", text(event, "method"), text(event, "route"), event["status"]);
    events.iter().filter(is_request).map(line).collect()
}

#[test]
fn each_request_has_one_line_with_what_operators_need() -> Result<()> {
    let id = Stream::new(70, 1, 10).session().to_owned();
    let bytes = std::cell::Cell::new(0);
    let events = logged(&[], |server| {
        let sessions = server.get("/api/v1/sessions")?;
        bytes.set(sessions.body.len());
        assert!(sessions.header("x-request-id").parse::<u64>().is_ok(), "{}", sessions.header("x-request-id"));
        server.get(&format!("/api/v1/sessions/{id}?secret=hush"))?;
        // Polled routes and the page's files have lines at a lower level.
        server.get("/healthz")?;
        server.get("/metrics")?;
        server.get("/favicon.svg")?;
        Ok(())
    })?;
    let mut lines = requests(&events).into_iter().filter(|line| !line.ends_with("503")).collect::<Vec<_>>();
    // The harness asks for the list as well, until the server has looked through its store.
    lines.dedup();
    assert_eq!(lines, ["GET /api/v1/sessions 200", "GET /api/v1/sessions/{id} 404"]);
    let list = events.iter().rfind(|event| event["route"] == "/api/v1/sessions").context("no line")?;
    assert_eq!(list["level"], "INFO");
    assert!(list["duration_ms"].is_f64() && list["span"]["id"].is_u64(), "{list}");
    assert!(bytes.get() > 0 && list["bytes"] == bytes.get(), "{list}");
    let messages: Vec<_> = events.iter().filter_map(|event| event["message"].as_str()).collect();
    assert!(messages.contains(&"server started") && messages.last() == Some(&"server stopped"), "{messages:?}");
    Ok(())
}

#[test]
fn no_secret_and_no_control_character_gets_into_the_log() -> Result<()> {
    let folder = Folder::new("secret")?;
    let file = folder.secret("token", TOKEN)?;
    let arguments = ["--token-file", &*file];
    for level in ["info", "trace"] {
        for format in ["text", "json"] {
            let all = [&arguments[..], &["--log", level, "--log-format", format]].concat();
            let folder = Folder::new("hostile")?;
            let server = Server::start_logging(&folder, &all, &[])?;
            let address = server.address();
            let bearer = format!("Bearer {TOKEN}");
            assert_eq!(http::get(address, "/api/v1/sessions", &[("Authorization", &bearer)])?.status, 200);
            http::get(address, "/api/v1/sessions", &[("Authorization", "Bearer almost-the-token")])?;
            http::get(address, &format!("/api/v1/sessions?token={TOKEN}"), &[])?;
            let agent = [("User-Agent", "\u{1b}[2Jagent\u{9b}31m")];
            http::get(address, "/api/v1/sessions/\u{1b}[31m\u{9b}evil%0aline", &agent)?;
            http::get(address, "/api/v1/sessions/%1b%5b31m", &[])?;
            http::send(address, &format!("B\u{1b}D / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))?;
            let log = server.log(&folder)?;
            check_characters(&log);
            for secret in [TOKEN, "almost-the-token", "agent"] {
                assert!(!log.contains(secret), "{secret} is in the log ({level}, {format}): {log}");
            }
            if level == "info" {
                assert!(!log.contains("evil") && !log.contains(&*folder.to_string_lossy()), "{log}");
            }
            assert!(log.contains("401"), "{log}");
        }
    }
    Ok(())
}

#[test]
fn the_level_and_the_format_are_set_by_flag_or_variable() -> Result<()> {
    let lines = |arguments: &[&str], variables: &[(&str, &str)]| -> Result<String> {
        let folder = Folder::new("level")?;
        let server = Server::start_logging(&folder, arguments, variables)?;
        server.get("/api/v1/sessions")?;
        server.get("/healthz")?;
        server.log(&folder)
    };
    let has = |log: &str| (log.contains("/api/v1/sessions"), log.contains("/healthz"));
    assert_eq!(has(&lines(&[], &[])?), (true, false));
    assert_eq!(lines(&["--log", "error"], &[])?, "");
    assert_eq!(lines(&["--log", "off"], &[])?, "");
    assert_eq!(has(&lines(&["--log", "debug"], &[])?), (true, true));
    assert_eq!(has(&lines(&[], &[("VRAMSCOPE_LOG", "vramscope::request=debug")])?), (true, true));
    // The flag wins.
    assert_eq!(has(&lines(&["--log", "info"], &[("VRAMSCOPE_LOG", "debug")])?), (true, false));
    for (arguments, variables) in [(&["--log-format", "json"][..], &[][..]), (&[], &[("VRAMSCOPE_LOG_FORMAT", "json")])]
    {
        let log = lines(arguments, variables)?;
        assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
    }
    Ok(())
}

#[test]
fn an_unknown_level_or_format_is_refused() -> Result<()> {
    for (arguments, wanted) in [
        (["serve", "--log", "loud"], "\"loud\" is not a log level"),
        (["serve", "--log", "vramscope=loud"], "is not a log level"),
    ] {
        let output = program::run(&arguments)?;
        let line = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(wanted) && line.contains("debug"), "{line}");
    }
    assert_eq!(program::run(&["serve", "--log-format", "xml"])?.status.code(), Some(2));
    Ok(())
}
