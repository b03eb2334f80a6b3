//! The server that a session is published to.

use std::fmt;
use std::path::PathBuf;

use super::trust::Trust;

/// The path of the ingest route below the server's address.
const INGEST: &str = "/api/v1/ingest";

/// Why an address cannot be published to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// An unknown scheme, or neither a scheme nor a port.
    #[error("{0:?} is not a server address. Write it as http://HOST:PORT or https://HOST:PORT.")]
    Scheme(String),
    /// A user name or password, which would end up in logs.
    #[error("The address must not contain a user name or password. Pass the server's token separately.")]
    Credentials,
    /// No host, or one with invalid characters.
    #[error("{0:?} contains no valid host. Write the address as http://HOST:PORT or https://HOST:PORT.")]
    Host(String),
    /// A port that is not a number from 1 to 65535.
    #[error("{0:?} is not a port. Use a number from 1 to 65535.")]
    Port(String),
    /// A query, a fragment, or characters that are invalid in a path.
    #[error("{0:?} is not a valid path. Leave it out, or write it as /PATH without a query or fragment.")]
    Path(String),
}

/// A server, and what is sent to it besides the recording.
#[derive(Clone)]
pub struct Destination {
    /// Whether the scheme is https.
    pub(super) is_secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// What follows the port in the address, without a trailing slash.
    pub(super) path: String,
    /// The server's access token.
    pub(super) token: Option<String>,
    /// How events are captured, as shown to people: `every event`, `within a budget`, `simulated`.
    pub(super) mode: String,
    /// The folder for batches that do not fit in memory.
    pub(super) spool: PathBuf,
    /// Whose certificates are trusted.
    pub(super) trust: Trust,
}

/// Leaves out the token.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination")
            .field("address", &self.address())
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl Destination {
    /// Parses `http://HOST[:PORT][/PATH]`, with port 80 by default, `https://HOST[:PORT][/PATH]`, with port 443, or
    /// `HOST:PORT[/PATH]`, which is not encrypted. A path is for a server behind a proxy. The spool is in the system's
    /// folder for temporary files.
    pub fn parse(url: &str) -> Result<Self, DestinationError> {
        let url = url.trim();
        let split = url.split_once("://").filter(|(scheme, _)| !scheme.contains('/'));
        let (scheme, rest) = split.unwrap_or(("http", url));
        let is_one_of = |names: [&str; 2]| names.iter().any(|name| scheme.eq_ignore_ascii_case(name));
        let is_secure = is_one_of(["https", "wss"]);
        if !is_secure && !is_one_of(["http", "ws"]) {
            return Err(DestinationError::Scheme(format!("{scheme}://")));
        }
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if authority.contains('@') {
            return Err(DestinationError::Credentials);
        }
        let (host, port) = split_authority(authority);
        if split.is_none() && port.is_none() {
            // A word alone is more likely a file name or a mistake than a server.
            return Err(DestinationError::Scheme(url.to_owned()));
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]%".contains(&byte);
        if host.trim_matches(['[', ']']).is_empty() || !host.bytes().all(is_host) {
            return Err(DestinationError::Host(authority.to_owned()));
        }
        let port = match port {
            None if is_secure => 443,
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
            is_secure,
            host: host.to_owned(),
            port,
            path: path.trim_end_matches('/').to_owned(),
            token: None,
            mode: "every event".to_owned(),
            spool: std::env::temp_dir(),
            trust: Trust::default(),
        })
    }

    /// Sets the server's access token. White space around it is removed, because files end with a line break.
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Self {
        self.token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        self
    }

    /// Sets how events are captured, as shown to people. The default is `every event`.
    #[must_use]
    pub fn mode(mut self, mode: &str) -> Self {
        mode.clone_into(&mut self.mode);
        self
    }

    /// Sets the folder for batches that do not fit in memory.
    #[must_use]
    pub fn spool(mut self, folder: PathBuf) -> Self {
        self.spool = folder;
        self
    }

    /// Sets the file with the certificates to trust instead of the system's: a company's authority, or the server's own
    /// certificate. It is not read for an address without https.
    #[must_use]
    pub fn ca_file(mut self, file: Option<PathBuf>) -> Self {
        self.trust = file.map_or(Trust::System, Trust::File);
        self
    }

    /// Trusts exactly this certificate, whatever name it is for.
    #[must_use]
    pub fn certificate(mut self, certificate: rustls::pki_types::CertificateDer<'static>) -> Self {
        self.trust = Trust::Exactly(certificate);
        self
    }

    /// Returns the server's access token, if there is one.
    pub fn bearer(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns the configuration of TLS connections. The error is a sentence for a person.
    pub fn tls(&self) -> Result<std::sync::Arc<rustls::ClientConfig>, String> {
        self.trust.config()
    }

    /// Returns whether the connection is encrypted.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Returns the server's address, with a trailing slash.
    pub fn address(&self) -> String {
        format!("{}://{}{}/", self.scheme(), self.authority(), self.path)
    }

    /// Returns the address of a session's page.
    pub fn page(&self, session: &str) -> String {
        format!("{}#session={session}", self.address())
    }

    /// Returns advice to append to an error with an HTTP status: that the address's path is probably wrong, or nothing.
    pub(super) fn advice(&self, status: u16) -> String {
        if self.path.is_empty() || !matches!(status, 404 | 405) {
            return String::new();
        }
        format!("; no Vramscope server found at {}. Did you mean {}://{}/?", self.path, self.scheme(), self.authority())
    }

    /// Returns the error for a port that expects TLS although the address does not.
    pub(super) fn explain_plain(&self) -> String {
        format!("this port expects TLS. Did you mean https://{}{}/?", self.authority(), self.path)
    }

    /// Returns the text for an error of TLS.
    pub(super) fn explain(&self, error: &rustls::Error) -> String {
        self.trust.explain(error, &format!("http://{}{}/", self.authority(), self.path))
    }

    fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }

    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the path of the ingest route.
    pub(super) fn ingest_path(&self) -> String {
        format!("{}{INGEST}", self.path)
    }
}

/// Splits an authority into host and port. An IPv6 address is in brackets.
fn split_authority(authority: &str) -> (&str, Option<&str>) {
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
    fn addresses_are_parsed_as_people_write_them() {
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
            ("https://box", ("box", 443, "")),
            ("HTTPS://box:7070/vram/", ("box", 7070, "/vram")),
            ("wss://[::1]:7070", ("[::1]", 7070, "")),
        ];
        for (url, want) in cases {
            let got = Destination::parse(url).unwrap();
            assert_eq!((got.host.as_str(), got.port, got.path.as_str()), want, "{url}");
        }
        let page = Destination::parse("http://box:7070/x/").unwrap().page("abc");
        assert_eq!(page, "http://box:7070/x/#session=abc");
        let page = Destination::parse("wss://box/x/").unwrap().page("abc");
        assert_eq!(page, "https://box:443/x/#session=abc");
    }

    #[test]
    fn an_invalid_address_is_an_error_of_one_line_with_advice() {
        let cases = [
            ("https://me:secret@box/?secret", "token"),
            ("https://", "no valid host"),
            ("wss://box:0", "port"),
            ("ftp://box", "http://HOST:PORT"),
            ("httpss://box", "https://HOST:PORT"),
            ("box", "http://HOST:PORT"),
            ("run.vramscope", "http://HOST:PORT"),
            ("./box:7070", "http://HOST:PORT"),
            ("me:secret@box", "token"),
            ("box:port", "port"),
            ("", "http://HOST:PORT"),
            ("http://", "no valid host"),
            ("http://:7070", "no valid host"),
            ("http://bo x:7070", "no valid host"),
            ("http://b\r\nHost: evil:1", "no valid host"),
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
    fn a_path_without_a_server_is_named() {
        let cases = [
            ("http://box:7070/foo", 405, "at /foo. Did you mean http://box:7070/?"),
            ("http://box:7070/foo", 404, "at /foo. Did you mean http://box:7070/?"),
            ("http://box:7070/foo", 502, ""),
            ("http://box:7070/", 404, ""),
            ("https://box/foo", 404, "at /foo. Did you mean https://box:443/?"),
        ];
        for (url, status, want) in cases {
            let advice = Destination::parse(url).unwrap().advice(status);
            assert!(advice.ends_with(want) && advice.is_empty() == want.is_empty(), "{url}: {advice}");
        }
    }

    #[test]
    fn a_token_is_not_in_debug_output() {
        let destination = Destination::parse("http://box").unwrap().token(Some(" open sesame\n".to_owned()));
        assert_eq!(destination.token.as_deref(), Some("open sesame"));
        assert!(!format!("{destination:?}").contains("sesame"));
        assert_eq!(destination.token(Some("\n".to_owned())).token, None);
    }
}
