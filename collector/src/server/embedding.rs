//! Which sites may show the page in a frame, or open it to hand it a trace.

use axum::http::Uri;
use url::{Host, Url, form_urlencoded};

/// The parameter of the page's address with which another site opens or frames it.
const PARAMETER: &str = "embed";

/// The sites that the owner of the server named.
#[derive(Clone, Debug, Default)]
pub struct Embedding {
    origins: Vec<String>,
}

impl Embedding {
    /// Lets sites frame the page, by their origins as [`Self::origin`] returns them.
    pub fn by(origins: Vec<String>) -> Self {
        Self { origins }
    }

    /// Reads an origin. The error tells what to write.
    pub fn origin(text: &str) -> Result<String, String> {
        let wrong = || "write a scheme and a host, such as https://ci.example.org".to_owned();
        let url = Url::parse(text).map_err(|_| wrong())?;
        // What the policy of a page can name: neither wildcards nor IPv6 addresses.
        let is_host = match url.host() {
            Some(Host::Domain(name)) => {
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
            }
            Some(Host::Ipv4(_)) => true,
            Some(Host::Ipv6(_)) | None => false,
        };
        let origin = url.origin().ascii_serialization();
        let is_bare = text.trim_end_matches('/').eq_ignore_ascii_case(&origin);
        if is_host && is_bare && matches!(url.scheme(), "http" | "https") { Ok(origin) } else { Err(wrong()) }
    }

    /// Returns who may frame the response to a request for the page at this address, as a list of sources of a policy, or
    /// `None` if the page is not asked for as one that another site opens or frames.
    pub(super) fn ancestors(&self, uri: &Uri) -> Option<String> {
        let path = uri.path();
        let is_page = path == "/" || path == "/index.html" || path.starts_with("/s-");
        let mut parameters = form_urlencoded::parse(uri.query()?.as_bytes());
        let is_asked = is_page && parameters.any(|(name, _)| name == PARAMETER);
        is_asked.then(|| if self.origins.is_empty() { "'none'".to_owned() } else { self.origins.join(" ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for (text, want) in [
            ("https://ci.example.org", Some("https://ci.example.org")),
            ("https://CI.example.org/", Some("https://ci.example.org")),
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("http://localhost:8888", Some("http://localhost:8888")),
            ("ci.example.org", None),
            ("*", None),
            ("https://*", None),
            ("https://*.example.org", None),
            ("https://ci.example.org/path", None),
            ("https://ci.example.org?a", None),
            ("https://user@ci.example.org", None),
            ("https://a;b", None),
            ("https://a b", None),
            ("null", None),
            ("data:", None),
            ("file:///", None),
            ("http://[::1]:80", None),
        ] {
            assert_eq!(Embedding::origin(text).ok().as_deref(), want, "{text}");
        }
    }

    #[test]
    fn only_the_page_is_framed_and_only_when_it_is_asked_for() {
        let none = Embedding::default();
        let some = Embedding::by(vec!["https://a.example".to_owned(), "http://b.example:1".to_owned()]);
        for (uri, is_asked) in [
            ("/?embed", true),
            ("/?embed=1", true),
            ("/?url=x&embed=", true),
            ("/s-abc?embed", true),
            ("/index.html?embed", true),
            ("/", false),
            ("/?embedded", false),
            ("/?x=embed", false),
            ("/api/v1/?embed", false),
            ("/metrics?embed", false),
            ("/offline.html?embed", false),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(none.ancestors(&uri).as_deref(), is_asked.then_some("'none'"), "{uri}");
            let want = is_asked.then_some("https://a.example http://b.example:1");
            assert_eq!(some.ancestors(&uri).as_deref(), want, "{uri}");
        }
    }
}
