//! Protection from pages of other sites: which host names this server answers to, and which origins may change anything.
//!
//! Another site can point a name of its own at 127.0.0.1 and so reach this server as if it were its own origin (DNS
//! rebinding). Such a request still carries that name, and is refused. Another site can also send requests here without
//! reading the responses; a browser then names the origin, and requests that change anything are refused.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN, UPGRADE};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::ApiError;
use super::proxies::{self, Forwarded};

/// The host names of this server.
#[derive(Clone, Debug)]
pub struct Hosts {
    listen: IpAddr,
    names: Vec<String>,
}

impl Hosts {
    /// Creates the host names of a server that listens at an address. `names` are further ones, without a port.
    pub fn new(listen: SocketAddr, names: &[String]) -> Self {
        Self { listen: listen.ip(), names: names.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether `host`, with or without a port, is one of the names.
    fn has(&self, host: &str) -> bool {
        let name = name_of(host);
        if is_loopback(name) || self.names.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            return true;
        }
        // Unlike a name, an address can't be made to point here. A server that listens on every address of its machine
        // accepts any.
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        !self.listen.is_loopback()
            && bare.parse::<IpAddr>().is_ok_and(|ip| self.listen.is_unspecified() || ip == self.listen)
    }
}

/// Forwards requests to one of the server's names, and refuses others.
pub(super) async fn check(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    if is_ours(&request, &hosts) {
        return next.run(request).await;
    }
    let message = "This server answers only to localhost, 127.0.0.1 and the names that it was given with --host.\n";
    (StatusCode::MISDIRECTED_REQUEST, message).into_response()
}

/// Forwards requests that change nothing, and those of programs and of this server's own page; refuses others.
pub(super) async fn check_origin(request: Request, next: Next) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD) || request.headers().contains_key(UPGRADE);
    if changes && !is_own_page(&request) {
        let message = "Pages of another origin may not do this. Open the server's own address.";
        return ApiError::new(StatusCode::FORBIDDEN, "origin", message).into_response();
    }
    next.run(request).await
}

/// Whether a request comes from a program, which sends no origin, or from a page of the host and port that it names. A
/// trusted proxy may name them in a header of its own.
fn is_own_page(request: &Request) -> bool {
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let forwarded = request.extensions().get::<Forwarded>().into_iter().flat_map(|forwarded| &forwarded.hosts);
    let hosts: Vec<&str> = host.into_iter().chain(forwarded.map(String::as_str)).collect();
    let scheme = proxies::scheme(request.extensions());
    headers.get_all(ORIGIN).iter().all(|origin| {
        let parts = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        parts.is_some_and(|(name, authority)| {
            // If the connection's scheme is unknown, either may be right.
            let is_scheme = scheme.map_or(name == "http" || name == "https", |scheme| name == scheme);
            is_scheme && hosts.iter().any(|host| !host.is_empty() && authority.eq_ignore_ascii_case(host))
        })
    })
}

/// Whether every host that a request names is one of the server's. A request names it in the header or, through a proxy,
/// in its target or in a header of that proxy.
fn is_ours(request: &Request, hosts: &Hosts) -> bool {
    let header = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let target = request.uri().authority().map(Authority::as_str);
    let mut names = header.chain(target).peekable();
    let mut forwarded = request.extensions().get::<Forwarded>().into_iter().flat_map(|forwarded| &forwarded.hosts);
    names.peek().is_some() && names.all(|name| hosts.has(name)) && forwarded.all(|name| hosts.has(name))
}

/// Returns a host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a name is that of the machine itself.
fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_names_of_this_machine_pass() {
        let local = Hosts::new("127.0.0.1:7070".parse().unwrap(), &[]);
        for host in ["localhost", "LOCALHOST:7070", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:7070"] {
            assert!(local.has(host), "{host}");
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
            "192.0.2.1",
        ] {
            assert!(!local.has(host), "{host}");
        }
    }

    #[test]
    fn a_server_for_others_answers_to_its_address_and_the_names_it_was_given() {
        let names = ["Box.example".to_owned()];
        let one = Hosts::new("192.0.2.1:7070".parse().unwrap(), &names);
        let any = Hosts::new("[::]:7070".parse().unwrap(), &names);
        let cases = [
            ("192.0.2.1:7070", true, true),
            ("192.0.2.2", false, true),
            ("[2001:db8::1]:7070", false, true),
            ("box.example:7070", true, true),
            ("other.example", false, false),
            ("2001:db8::1", false, false),
            ("localhost", true, true),
        ];
        for (host, by_one, by_any) in cases {
            assert_eq!((one.has(host), any.has(host)), (by_one, by_any), "{host}");
        }
    }

    #[test]
    fn a_page_is_ours_by_host_and_port() {
        let cases: [(&str, &[&str], bool); 8] = [
            ("127.0.0.1:7070", &[], true),
            ("127.0.0.1:7070", &["http://127.0.0.1:7070"], true),
            ("box.example", &["https://Box.example"], true),
            ("127.0.0.1:7070", &["http://127.0.0.1:7071"], false),
            ("127.0.0.1:7070", &["http://localhost:7070"], false),
            ("127.0.0.1:7070", &["null"], false),
            ("127.0.0.1:7070", &["http://127.0.0.1:7070", "http://evil.example"], false),
            ("127.0.0.1:7070", &["http://127.0.0.1:7070.evil.example"], false),
        ];
        for (host, origins, is_own) in cases {
            let mut request = axum::http::Request::builder().header(HOST, host);
            for origin in origins {
                request = request.header(ORIGIN, *origin);
            }
            assert_eq!(is_own_page(&request.body(Body::empty()).unwrap()), is_own, "{host} {origins:?}");
        }
    }

    #[test]
    fn a_page_behind_a_proxy_is_ours_by_the_public_name_and_the_scheme() {
        let hosts = Hosts::new("127.0.0.1:7070".parse().unwrap(), &["box.example".to_owned()]);
        // The request's host; what the proxy says of host and scheme; the page's origin; whether the hosts are ours, and
        // whether the page is.
        type Case<'a> = (&'a str, &'a [&'a str], Option<&'static str>, &'a str, bool, bool);
        let cases: [Case<'_>; 9] = [
            ("box.example", &[], None, "https://box.example", true, true),
            ("127.0.0.1:7070", &["box.example"], Some("https"), "https://box.example", true, true),
            ("127.0.0.1:7070", &["box.example:8443"], Some("https"), "https://box.example:8443", true, true),
            ("127.0.0.1:7070", &["box.example"], Some("https"), "http://box.example", true, false),
            ("127.0.0.1:7070", &["box.example"], Some("http"), "https://box.example", true, false),
            ("127.0.0.1:7070", &["box.example"], None, "ftp://box.example", true, false),
            ("127.0.0.1:7070", &["box.example", "evil.example"], None, "https://evil.example", false, true),
            ("evil.example", &["localhost"], None, "https://evil.example", false, true),
            ("127.0.0.1:7070", &[""], None, "https://", false, false),
        ];
        for (host, names, scheme, origin, is_host, is_page) in cases {
            let request = axum::http::Request::builder().header(HOST, host).header(ORIGIN, origin);
            let mut request = request.body(Body::empty()).unwrap();
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            request.extensions_mut().insert(Forwarded { hosts: names, scheme });
            let found = (is_ours(&request, &hosts), is_own_page(&request));
            assert_eq!(found, (is_host, is_page), "{host} {origin}");
        }
    }
}
