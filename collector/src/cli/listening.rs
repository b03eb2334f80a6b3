//! The address of a server: which ones are accepted, what they demand, and how the start line shows them.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use crate::access::TOKEN_CHARS;

/// The variable that holds the token.
pub(super) const TOKEN: &str = "VRAMSCOPE_TOKEN";

/// Reads an address to listen on.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an address and a port, such as 127.0.0.1:7070 or [::1]:7070; port 0 selects a free one".to_owned()
    })
}

/// Reads a host name, or an address in place of one. Anything else would match no request.
pub(super) fn host_name(text: &str) -> Result<String, String> {
    if is_host(text) {
        return Ok(text.to_owned());
    }
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = rest.rsplit_once(':').map_or(rest, |(name, _)| name);
    let example = if is_host(name) { name } else { "box.example" };
    Err(format!("requests name a host without a scheme or path; write the name only, without a port: {example}"))
}

/// Whether a text is a host name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.contains(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_of_name)
}

/// Returns the sentence for a server that other machines can reach, and that has no token.
pub(super) fn needs_token(who: &str) -> String {
    format!(
        "{who} can be reached from other machines, so the server needs a token of at least {TOKEN_CHARS} characters: use \
         --token-file FILE, --tokens FILE or the variable {TOKEN}."
    )
}

/// How a server is reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listening<'a> {
    pub(super) address: SocketAddr,
    /// The names that were given with `--host`.
    pub(super) hosts: &'a [String],
    pub(super) is_encrypted: bool,
    pub(super) is_behind_proxy: bool,
}

impl Listening<'_> {
    /// Returns the start line. `access` says how access is granted.
    pub(super) fn greeting(&self, access: &str) -> String {
        let is_any = self.address.ip().is_unspecified() && self.hosts.is_empty();
        let note = if is_any { "on all addresses of this machine, " } else { "" };
        format!("Vramscope is at {} (Ctrl-C stops it), {note}{access}", self.page())
    }

    /// Returns the line with the link that opens the page with a token.
    pub(super) fn link(&self, token: &str) -> String {
        format!("Open it with {}#token={token}\n", self.page())
    }

    /// Returns the address of the page.
    fn page(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        // Nobody can open an address that stands for all of a machine's.
        match self.hosts.first().filter(|_| self.address.ip().is_unspecified()) {
            Some(host) => format!("{scheme}://{host}:{}/", self.address.port()),
            None => format!("{scheme}://{}/", self.address),
        }
    }

    /// Returns a warning for operators if others on the network can read what is sent.
    pub(super) fn warning(&self) -> Option<&'static str> {
        let is_open = !self.address.ip().is_loopback() && !self.is_encrypted && !self.is_behind_proxy;
        is_open.then_some(
            "Tokens and recordings travel unencrypted, so others on the network can read them. Use --tls-cert and --tls-key, \
             or a proxy with TLS and --behind-proxy.",
        )
    }
}

/// Explains why listening on `address` failed, and what to do next.
pub(super) fn refused(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            let free = SocketAddr::new(address.ip(), 0);
            format!(
                "Port {} is in use. Choose another one, or let the system choose: vramscope serve --listen {free}",
                address.port()
            )
        }
        ErrorKind::PermissionDenied => {
            format!(
                "Port {} requires more privileges. Choose one above 1023: vramscope serve --listen 127.0.0.1:7070",
                address.port()
            )
        }
        _ => {
            format!(
                "Listening on {address} failed: {error}. Choose another address: vramscope serve --listen 127.0.0.1:7070"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses() {
        for text in
            ["box", "Box.example", "gpu_1.lan", "box.example.", "192.0.2.1", "[2001:db8::1]", "xn--bcher-kva.example"]
        {
            assert_eq!(host_name(text).as_deref(), Ok(text));
        }
        for (text, advice) in [
            ("", "box.example"),
            (" ", "box.example"),
            (".", "box.example"),
            ("http://foo", "foo"),
            ("https://foo:443/path", "foo"),
            ("foo:7070", "foo"),
            ("http://[::1]:7070", "[::1]"),
            ("foo/bar", "foo"),
            ("*.example", "box.example"),
            ("[foo]", "box.example"),
            ("a b", "box.example"),
            ("bücher.example", "box.example"),
        ] {
            let error = host_name(text).unwrap_err();
            assert!(error.ends_with(&format!("without a port: {advice}")), "{text}: {error}");
        }
    }

    #[test]
    fn the_start_line_names_an_address_that_can_be_opened_and_warns_of_plain_text() {
        let hosts = ["box.example".to_owned(), "other".to_owned()];
        let (no, yes) = (false, true);
        // Whether the connection is encrypted, whether a proxy is in front, the line's middle, and whether there is a warning.
        for (address, hosts, is_encrypted, is_behind_proxy, place, has_warning) in [
            ("127.0.0.1:7070", &hosts[..], no, no, "http://127.0.0.1:7070/ (Ctrl-C stops it), ", no),
            ("[::1]:7070", &[][..], no, no, "http://[::1]:7070/ (Ctrl-C stops it), ", no),
            ("192.0.2.1:7070", &hosts, no, no, "http://192.0.2.1:7070/ (Ctrl-C stops it), ", yes),
            ("0.0.0.0:7070", &hosts, no, no, "http://box.example:7070/ (Ctrl-C stops it), ", yes),
            ("0.0.0.0:7070", &hosts, yes, no, "https://box.example:7070/ (Ctrl-C stops it), ", no),
            ("[::]:7070", &hosts, no, yes, "http://box.example:7070/ (Ctrl-C stops it), ", no),
            (
                "0.0.0.0:7070",
                &[],
                no,
                no,
                "http://0.0.0.0:7070/ (Ctrl-C stops it), on all addresses of this machine, ",
                yes,
            ),
        ] {
            let listening = Listening { address: address.parse().unwrap(), hosts, is_encrypted, is_behind_proxy };
            assert_eq!(listening.greeting("with a token"), format!("Vramscope is at {place}with a token"), "{address}");
            assert_eq!(listening.warning().is_some(), has_warning, "{address}");
        }
    }
}
