//! The one other server that the page may fetch from: the one that its address names (`?url=`).

use url::{Url, form_urlencoded};

/// The parameter of the page's address.
const PARAMETER: &str = "url";

/// Returns the origin that the query of a request names, as a source of a policy. Returns `None` unless it is the origin of
/// a URL with the scheme `http` or `https` and without a user.
pub(super) fn origin(query: &str) -> Option<String> {
    let (_, text) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == PARAMETER)?;
    let url = Url::parse(&text).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    // Hosts may contain characters that end or widen a source: semicolons, commas, asterisks.
    let is_host =
        url.host_str()?.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    (is_plain && is_host).then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_gets_origins_only() {
        for (query, want) in [
            ("url=https://example.org/a.pickle", Some("https://example.org")),
            ("url=https%3A%2F%2FExample.ORG%3A8443%2Fa%3Fb%3Dc", Some("https://example.org:8443")),
            ("embed&url=http://localhost:9000/a", Some("http://localhost:9000")),
            ("url=https://b\u{fc}cher.example/a", Some("https://xn--bcher-kva.example")),
            ("url=https://example.org:443/", Some("https://example.org")),
            ("", None),
            ("embed", None),
            ("url=", None),
            ("url=/a.pickle", None),
            ("url=javascript:alert(1)", None),
            ("url=file:///etc/passwd", None),
            ("url=data:text/plain,a", None),
            ("url=blob:https://example.org/1", None),
            ("url=ws://example.org/", None),
            ("url=https://user@example.org/", None),
            ("url=https://user:secret@example.org/", None),
            ("url=https://*/", None),
            ("url=https://*.example.org/", None),
            ("url=https://a%3Bscript-src%20*/", None),
            ("url=https://a;b/", None),
            ("url=https://a,b/", None),
            ("url=https://[::1]:9000/", None),
        ] {
            assert_eq!(origin(query).as_deref(), want, "{query}");
        }
    }
}
