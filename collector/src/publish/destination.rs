//! Where a session is published to, as a person writes it.

use std::fmt;
use std::path::PathBuf;

/// Where collectors speak, below the server's address.
const INGEST: &str = "/api/v1/ingest";

/// Why an address can't be published to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// TLS is wanted.
    #[error(
        "{0} can't be sent to: TLS is not spoken here. Use an SSH tunnel (ssh -L 7070:127.0.0.1:7070 HOST), or a proxy on \
         this machine, and http://127.0.0.1:7070."
    )]
    Tls(String),
    /// Another scheme, or neither a scheme nor a port.
    #[error("{0:?} is no server's address. Write it as http://HOST:PORT.")]
    Scheme(String),
    /// A name or password in the address would end up in logs.
    #[error("a user and password in the address are not used. Leave them out, and give the server's token apart.")]
    Credentials,
    /// No host, or one with characters that none has.
    #[error("{0:?} names no host. Write the address as http://HOST:PORT.")]
    Host(String),
    /// No number that a port has.
    #[error("{0:?} is no port: one is from 1 to 65535.")]
    Port(String),
    /// A query, a fragment, or characters that have no place in a path.
    #[error("{0:?} is no path of a server. Leave out what follows the address, or write it as /PATH.")]
    Path(String),
}

/// A server, and what it is told beside the trace.
#[derive(Clone)]
pub struct Destination {
    pub(super) host: String,
    pub(super) port: u16,
    /// What the address has behind the port, without a slash at its end.
    pub(super) path: String,
    /// What the server's owner gave out.
    pub(super) token: Option<String>,
    /// How events are had, for people: `every event`, `within a budget`, `simulated`.
    pub(super) mode: String,
    /// The folder for what finds no room in memory.
    pub(super) spool: PathBuf,
}

/// Without the token.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination")
            .field("address", &self.address())
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl Destination {
    /// The server at `url`: `http://HOST[:PORT][/PATH]`, port 80 when there is none, or `HOST:PORT[/PATH]`. A path is for
    /// a proxy that has the server below it. Its spool is in the folder that the system has for such.
    pub fn parse(url: &str) -> Result<Self, DestinationError> {
        let url = url.trim();
        let split = url.split_once("://").filter(|(scheme, _)| !scheme.contains('/'));
        let (scheme, rest) = split.unwrap_or(("http", url));
        if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("wss") {
            // Only the host and what it stands between: a password or a secret may be around it.
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            return Err(DestinationError::Tls(format!("{scheme}://{host}")));
        }
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("ws") {
            return Err(DestinationError::Scheme(format!("{scheme}://")));
        }
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return Err(DestinationError::Credentials);
        }
        let (host, port) = authority_parts(authority);
        if split.is_none() && port.is_none() {
            // A word by itself is rather a file's name or a slip than a server's.
            return Err(DestinationError::Scheme(url.to_owned()));
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]%".contains(&byte);
        if host.trim_matches(['[', ']']).is_empty() || !host.bytes().all(is_host) {
            return Err(DestinationError::Host(authority.to_owned()));
        }
        let port = match port {
            None => 80,
            Some(text) => match text.parse::<u16>() {
                Ok(port) if port > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => port,
                _ => return Err(DestinationError::Port(text.to_owned())),
            },
        };
        let is_path = |byte: u8| byte.is_ascii_graphic() && !b"?#\"<>\\^`{|}".contains(&byte);
        if !path.bytes().all(is_path) {
            return Err(DestinationError::Path(path.to_owned()));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            path: path.trim_end_matches('/').to_owned(),
            token: None,
            mode: "every event".to_owned(),
            spool: std::env::temp_dir(),
        })
    }

    /// With the token that the server's owner gave out; white space around it, as files end with, is left out.
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Self {
        self.token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        self
    }

    /// With a word for people of how events are had; `every event` otherwise.
    #[must_use]
    pub fn mode(mut self, mode: &str) -> Self {
        mode.clone_into(&mut self.mode);
        self
    }

    /// With another folder for what finds no room in memory.
    #[must_use]
    pub fn spool(mut self, folder: PathBuf) -> Self {
        self.spool = folder;
        self
    }

    /// The server's address, with a slash at its end.
    pub fn address(&self) -> String {
        format!("http://{}{}/", self.authority(), self.path)
    }

    /// The address of a session's page.
    pub fn page(&self, session: &str) -> String {
        format!("{}#session={session}", self.address())
    }

    /// What is to be said when what answers knows nothing of collectors: nothing, or that the path is likely wrong.
    pub(super) fn advice(&self, status: u16) -> String {
        if self.path.is_empty() || !matches!(status, 404 | 405) {
            return String::new();
        }
        format!("; no Vramscope server is below {}: is http://{}/ meant?", self.path, self.authority())
    }

    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Where collectors speak: the path of a request.
    pub(super) fn ingest(&self) -> String {
        format!("{}{INGEST}", self.path)
    }
}

/// Host and port. An IPv6 address stands in brackets.
fn authority_parts(authority: &str) -> (&str, Option<&str>) {
    let end = authority.rfind(']').map_or(0, |at| at + 1);
    match authority.get(end..).and_then(|rest| rest.rfind(':')) {
        Some(at) => (&authority[..end + at], Some(&authority[end + at + 1..])),
        None => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let cases = [
            ("http://127.0.0.1:7070", ("127.0.0.1", 7070, "")),
            (" http://127.0.0.1:7070/ ", ("127.0.0.1", 7070, "")),
            ("HTTP://gpu-box:80/vram/scope/", ("gpu-box", 80, "/vram/scope")),
            ("http://box", ("box", 80, "")),
            ("ws://[::1]:7070", ("[::1]", 7070, "")),
            ("http://[fe80::1%25eth0]/a", ("[fe80::1%25eth0]", 80, "/a")),
            ("127.0.0.1:7070", ("127.0.0.1", 7070, "")),
            (" gpu-box:7070/ ", ("gpu-box", 7070, "")),
            ("[::1]:7070/a", ("[::1]", 7070, "/a")),
        ];
        for (url, want) in cases {
            let got = Destination::parse(url).unwrap();
            assert_eq!((got.host.as_str(), got.port, got.path.as_str()), want, "{url}");
        }
        let page = Destination::parse("http://box:7070/x/").unwrap().page("abc");
        assert_eq!(page, "http://box:7070/x/#session=abc");
    }

    #[test]
    fn what_is_no_address_is_told_in_one_line_with_what_to_do() {
        let cases = [
            ("https://box:7070", "https://box:7070 can't"),
            ("https://me:secret@box/?secret", "https://box can't"),
            ("wss://box", "SSH tunnel"),
            ("ftp://box", "http://HOST:PORT"),
            ("box", "http://HOST:PORT"),
            ("run.vramscope", "http://HOST:PORT"),
            ("./box:7070", "http://HOST:PORT"),
            ("me:secret@box", "token"),
            ("box:port", "port"),
            ("", "http://HOST:PORT"),
            ("http://", "names no host"),
            ("http://:7070", "names no host"),
            ("http://bo x:7070", "names no host"),
            ("http://b\r\nHost: evil:1", "names no host"),
            ("http://me:secret@box:7070", "token"),
            ("http://box:0", "port"),
            ("http://box:70700", "port"),
            ("http://box:+1", "port"),
            ("http://box:", "port"),
            ("http://box/?a=b", "path"),
            ("http://box/a b", "path"),
            ("http://box/#session=x", "path"),
        ];
        for (url, word) in cases {
            let text = Destination::parse(url).unwrap_err().to_string();
            assert!(text.contains(word) && text.lines().count() == 1, "{url}: {text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn a_path_that_nothing_is_below_is_named() {
        let cases = [
            ("http://box:7070/foo", 405, "below /foo: is http://box:7070/ meant?"),
            ("http://box:7070/foo", 404, "below /foo: is http://box:7070/ meant?"),
            ("http://box:7070/foo", 502, ""),
            ("http://box:7070/", 404, ""),
        ];
        for (url, status, want) in cases {
            let advice = Destination::parse(url).unwrap().advice(status);
            assert!(advice.ends_with(want) && advice.is_empty() == want.is_empty(), "{url}: {advice}");
        }
    }

    #[test]
    fn a_token_shows_nowhere() {
        let destination = Destination::parse("http://box").unwrap().token(Some(" open sesame\n".to_owned()));
        assert_eq!(destination.token.as_deref(), Some("open sesame"));
        assert!(!format!("{destination:?}").contains("sesame"));
        assert_eq!(destination.token(Some("\n".to_owned())).token, None);
    }
}
