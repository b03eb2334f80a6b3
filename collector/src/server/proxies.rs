//! Requests through a proxy (`--behind-proxy`): who the client is, and how it reached the proxy.
//!
//! A proxy says so in headers, which every client can send as well. They are therefore read only if the connection comes
//! from an address that the operator has named, and of a list of addresses only what such a proxy has added counts: the
//! right-most one that is not itself trusted. Names are never replaced by what a header says: they only have to pass the
//! same check as the request's own host.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{FORWARDED, HeaderName};
use axum::http::{Extensions, HeaderMap};
use axum::middleware::Next;
use axum::response::Response;

use super::peer::{Encrypted, Peer};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// A network of addresses: the first so many bits are equal in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl FromStr for Network {
    type Err = String;

    /// Parses an address or a network such as `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not an address or a network; write 127.0.0.1, ::1 or 10.0.0.0/8, for example");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address = address.parse::<IpAddr>().map_err(|_| wrong())?.to_canonical();
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|&bits: &u32| bits <= most).ok_or_else(wrong)?,
        };
        if bits == 0 {
            return Err(format!("{text} would trust every address; name the proxy's own"));
        }
        Ok(Self { address, bits })
    }
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => (ours.to_bits() ^ theirs.to_bits()).leading_zeros() >= self.bits,
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => (ours.to_bits() ^ theirs.to_bits()).leading_zeros() >= self.bits,
            _ => false,
        }
    }
}

/// The addresses of the proxies that are trusted; none by default.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Vec<Network>);

impl Proxies {
    /// Trusts the addresses of these networks.
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Whether connections from an address are those of a proxy, and so of many clients.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.has(address.to_canonical()))
    }

    /// Returns the client's address, given the one that the connection came from.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        // The chain goes from the client to the proxy, and each proxy appends the address that it saw. The headers are not
        // mixed: a proxy sets one of them and may pass on the other as the client sent it.
        let is_listed = headers.contains_key(X_FORWARDED_FOR);
        for value in headers.get_all(if is_listed { X_FORWARDED_FOR } else { FORWARDED }).iter().rev() {
            // A value that is not text has been made up on the way.
            let Ok(value) = value.to_str() else { return client };
            for hop in value.rsplit(',') {
                let hop = if is_listed { Some(hop) } else { forwarded_for(hop) };
                // What a trusted proxy does not name as an address could be anybody: the proxy itself is named instead.
                let Some(address) = hop.and_then(address) else { return client };
                client = address;
                if !self.has(address) {
                    return client;
                }
            }
        }
        client
    }
}

/// What a trusted proxy says about a request, beside the client's address.
#[derive(Clone, Debug, Default)]
pub(super) struct Forwarded {
    /// The host that the client asked for. It must be one of the server's, as the request's own host must.
    pub(super) hosts: Vec<String>,
    /// The scheme of the client's connection, if the proxy names one.
    pub(super) scheme: Option<&'static str>,
}

/// Replaces the peer of a request from a trusted proxy by the client, and notes the host and scheme that it used.
pub(super) async fn resolve(State(proxies): State<Arc<Proxies>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    if let Some(Peer(peer)) = peer.filter(|peer| proxies.has(peer.0)) {
        let client = Peer(proxies.client(peer, request.headers()));
        let forwarded = forwarded(request.headers());
        request.extensions_mut().insert(client);
        request.extensions_mut().insert(forwarded);
    }
    next.run(request).await
}

/// Returns the scheme of the client's connection, if it is known.
pub(super) fn scheme(extensions: &Extensions) -> Option<&'static str> {
    let forwarded = extensions.get::<Forwarded>().and_then(|forwarded| forwarded.scheme);
    forwarded.or(extensions.get::<Encrypted>().map(|_| "https"))
}

/// Reads host and scheme.
fn forwarded(headers: &HeaderMap) -> Forwarded {
    let all = |name: HeaderName| {
        let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
        values.flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect::<Vec<_>>()
    };
    let schemes = all(X_FORWARDED_PROTO);
    let is = |scheme: &str| !schemes.is_empty() && schemes.iter().all(|name| name.eq_ignore_ascii_case(scheme));
    let scheme = ["https", "http"].into_iter().find(|scheme| is(scheme));
    Forwarded { hosts: all(X_FORWARDED_HOST), scheme }
}

/// Returns the value of `for` in an element of the header `Forwarded` (RFC 7239).
fn forwarded_for(element: &str) -> Option<&str> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for")).map(|(_, value)| value)
}

/// Reads an address, which may be quoted and have a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
        lines.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    fn proxies(networks: &[&str]) -> Proxies {
        Proxies::new(networks.iter().map(|network| network.parse().unwrap()).collect())
    }

    #[test]
    fn networks_are_parsed_and_matched_by_their_bits() {
        // A network; addresses in it; addresses outside.
        let cases: [(&str, &[&str], &[&str]); 7] = [
            ("127.0.0.1", &["127.0.0.1", "::ffff:127.0.0.1"], &["127.0.0.2", "::1"]),
            ("10.0.0.0/8", &["10.0.0.0", "10.255.255.255"], &["9.255.255.255", "11.0.0.0", "::10.0.0.1"]),
            ("10.1.2.3/8", &["10.9.9.9"], &["11.1.2.3"]),
            ("192.0.2.128/25", &["192.0.2.128", "192.0.2.255"], &["192.0.2.127"]),
            ("::1", &["::1"], &["::2", "127.0.0.1"]),
            ("2001:db8::/32", &["2001:db8::", "2001:db8:ffff::1"], &["2001:db9::"]),
            ("::ffff:10.0.0.1", &["10.0.0.1"], &["10.0.0.2"]),
        ];
        for (network, inside, outside) in cases {
            let proxies = proxies(&[network]);
            inside.iter().for_each(|address| assert!(proxies.has(ip(address)), "{network} {address}"));
            outside.iter().for_each(|address| assert!(!proxies.has(ip(address)), "{network} {address}"));
        }
        for text in ["", "localhost", "10.0.0.0/33", "::1/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "1.2.3.4:80"] {
            assert!(text.parse::<Network>().unwrap_err().contains("is not an address"), "{text}");
        }
        for text in ["0.0.0.0/0", "::/0"] {
            assert!(text.parse::<Network>().unwrap_err().contains("every address"), "{text}");
        }
    }

    #[test]
    fn the_client_is_the_right_most_address_that_is_not_trusted() {
        const LIST: &str = "x-forwarded-for";
        let proxies = proxies(&["127.0.0.1", "10.0.0.0/8", "fd00::/8"]);
        let long = ["10.0.0.1"; 1000].join(",");
        // The headers of a request from 127.0.0.1; the client.
        let cases: &[(&[(&'static str, &str)], &str)] = &[
            (&[], "127.0.0.1"),
            (&[(LIST, "203.0.113.7")], "203.0.113.7"),
            (&[(LIST, " 203.0.113.7 ")], "203.0.113.7"),
            // The client has sent a list of its own, to which the proxy appended.
            (&[(LIST, "127.0.0.1, 198.51.100.9, 203.0.113.7")], "203.0.113.7"),
            (&[(LIST, "127.0.0.1"), (LIST, "203.0.113.7")], "203.0.113.7"),
            // Several proxies.
            (&[(LIST, "203.0.113.7, 10.1.1.1")], "203.0.113.7"),
            (&[(LIST, "198.51.100.9, 203.0.113.7, 10.1.1.1, 10.2.2.2")], "203.0.113.7"),
            (&[(LIST, "203.0.113.7"), (LIST, "10.1.1.1"), (LIST, "10.2.2.2, 127.0.0.1")], "203.0.113.7"),
            // A client in a trusted network.
            (&[(LIST, "10.3.3.3, 10.1.1.1")], "10.3.3.3"),
            (&[(LIST, &long)], "10.0.0.1"),
            // IPv6, with and without a port.
            (&[(LIST, "2001:db8::7")], "2001:db8::7"),
            (&[(LIST, "[2001:db8::7]:4711, fd00::1")], "2001:db8::7"),
            (&[(LIST, "[2001:db8::7]")], "2001:db8::7"),
            (&[(LIST, "203.0.113.7:4711")], "203.0.113.7"),
            (&[(LIST, "::ffff:203.0.113.7")], "203.0.113.7"),
            (&[(LIST, "203.0.113.7, ::ffff:10.0.0.1")], "203.0.113.7"),
            // Garbage: the last proxy that is known.
            (&[(LIST, "unknown")], "127.0.0.1"),
            (&[(LIST, "")], "127.0.0.1"),
            (&[(LIST, "203.0.113.7,")], "127.0.0.1"),
            (&[(LIST, "203.0.113.7, <script>, 10.1.1.1")], "10.1.1.1"),
            (&[(LIST, "203.0.113.7\u{e9}")], "127.0.0.1"),
            (&[(LIST, "203.0.113.7.1")], "127.0.0.1"),
            // RFC 7239.
            (&[("forwarded", "for=203.0.113.7;proto=https;by=10.0.0.1")], "203.0.113.7"),
            (&[("forwarded", "for=198.51.100.9, For=\"[2001:db8::7]:4711\";proto=http, for=10.0.0.1")], "2001:db8::7"),
            (&[("forwarded", "for=198.51.100.9"), ("forwarded", "by=x; for=203.0.113.7")], "203.0.113.7"),
            (&[("forwarded", "for=_hidden")], "127.0.0.1"),
            (&[("forwarded", "proto=https")], "127.0.0.1"),
            // A client has added the header that the proxy does not set.
            (&[(LIST, "203.0.113.7"), ("forwarded", "for=198.51.100.9")], "203.0.113.7"),
            (&[("x-real-ip", "198.51.100.9")], "127.0.0.1"),
        ];
        for (lines, want) in cases {
            assert_eq!(proxies.client(ip("127.0.0.1"), &headers(lines)), ip(want), "{lines:?}");
        }
    }

    #[test]
    fn a_scheme_is_known_only_if_every_proxy_names_the_same() {
        const SCHEME: &str = "x-forwarded-proto";
        type Case<'a> = (&'a [(&'static str, &'a str)], Option<&'static str>);
        let cases: &[Case<'_>] = &[
            (&[], None),
            (&[(SCHEME, "https")], Some("https")),
            (&[(SCHEME, "HTTP")], Some("http")),
            (&[(SCHEME, "https, https")], Some("https")),
            (&[(SCHEME, "https, http")], None),
            (&[(SCHEME, "https"), (SCHEME, "http")], None),
            (&[(SCHEME, "gopher")], None),
        ];
        for (lines, want) in cases {
            assert_eq!(forwarded(&headers(lines)).scheme, *want, "{lines:?}");
        }
        assert_eq!(forwarded(&headers(&[("x-forwarded-host", "a, b:1")])).hosts, ["a", "b:1"]);
    }

    #[tokio::test]
    async fn limits_and_logs_see_the_client_in_place_of_the_proxy() {
        use axum::body::{Body, to_bytes};
        use axum::routing::get;
        use tower::ServiceExt;

        let tell = |request: Request| async move {
            let peer = request.extensions().get::<Peer>().map(|peer| peer.0.to_string());
            format!("{} {}", peer.unwrap_or_default(), scheme(request.extensions()).unwrap_or("unknown"))
        };
        let proxies = Arc::new(proxies(&["127.0.0.1"]));
        let layer = axum::middleware::from_fn_with_state(proxies, resolve);
        let router: axum::Router = axum::Router::new().route("/", get(tell)).layer(layer);
        // The address that the connection came from, and whether it was encrypted; what the request's limits see.
        for (from, is_encrypted, want) in [
            ("127.0.0.1", false, "203.0.113.7 https"),
            ("127.0.0.1", true, "203.0.113.7 https"),
            ("192.0.2.1", false, "192.0.2.1 unknown"),
            ("192.0.2.1", true, "192.0.2.1 https"),
        ] {
            let request =
                Request::builder().header("x-forwarded-for", "203.0.113.7").header("x-forwarded-proto", "https");
            let mut request = request.body(Body::empty()).unwrap();
            request.extensions_mut().insert(Peer(ip(from)));
            if is_encrypted {
                request.extensions_mut().insert(Encrypted);
            }
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(to_bytes(answer.into_body(), 100).await.unwrap(), want, "{from}");
        }
    }
}
