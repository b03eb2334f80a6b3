//! Which names this server answers to.
//!
//! A page elsewhere can point a name of its own at 127.0.0.1 and so reach this server as if it were its own origin
//! (DNS rebinding). Such a request still carries that name, and is refused.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Passes on requests that name this machine itself.
pub(super) async fn check(request: Request, next: Next) -> Response {
    if is_ours(&request) {
        return next.run(request).await;
    }
    let sentence = "This server answers only to localhost and 127.0.0.1.\n";
    (StatusCode::MISDIRECTED_REQUEST, sentence).into_response()
}

/// A request names its host in the header, or (as a proxy's does) in its target: each name given must be ours.
fn is_ours(request: &Request) -> bool {
    let header = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let target = request.uri().authority().map(Authority::as_str);
    let mut names = header.chain(target).peekable();
    names.peek().is_some() && names.all(is_loopback)
}

/// Whether `host`, with or without a port, names the machine itself.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_names_pass() {
        for host in ["localhost", "LOCALHOST:7070", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:7070"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "example.org:7070",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "127.0.0.2",
            "::1",
            "localhost:",
            "localhost:x",
            "user@localhost",
            "localhost:80:80",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
