//! `/s-TOKEN`: the page, for a link.
//!
//! The page itself opens the trace. What a chat or a bug tracker shows of a pasted link is in the page's head: for a public
//! link without a password the peak and the verdict, and for any other link nothing but that it is one.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use session::preview::{self, Headline};
use tokio::time::timeout;
use trace::limits::PREVIEW_PART_BYTES;
use trace::text::escaped;

use super::blocking;
use crate::assets;
use crate::server::App;
use crate::server::proxies;
use crate::shares::{Link, ShareError, ShareResult, Shares};

/// The bytes that are read first: those of a header and of most previews.
const FIRST_BYTES: usize = 64 << 10;
/// What is said of a link that tells nothing.
const TITLE: &str = "A GPU memory timeline";
const TEXT: &str = "Open it to see what held the memory, when, and from which line of code.";
/// The most characters of a line.
const LINE_CHARS: usize = 300;

/// Serves the page for a link. Whether there is such a link is for the page to find out.
pub(super) async fn link_page(app: &App, token: &str, request: &Parts) -> Response {
    let Some(page) = assets::find("").and_then(|asset| String::from_utf8(asset.plain().into_owned()).ok()) else {
        return (StatusCode::SERVICE_UNAVAILABLE, "This build of Vramscope has no page.\n").into_response();
    };
    let headline = match app.shares.clone() {
        Some(shares) => {
            let (token, seconds) = (token.to_owned(), shares.limits().preview_seconds);
            let headline = blocking(move || headline(&shares, &token));
            let in_time = timeout(Duration::from_secs(seconds), headline).await;
            in_time.ok().and_then(Result::ok).flatten()
        }
        None => None,
    };
    let host = request.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let address = format!("{}://{host}/", proxies::scheme(&request.extensions).unwrap_or("http"));
    let tags = tags(headline.as_ref(), &address, token);
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        // A link can be deleted at any moment.
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    (headers, page.replacen("</head>", &(tags + "</head>"), 1)).into_response()
}

/// Returns the public link of a token, if everybody may see what it says.
pub(super) fn public_link(shares: &Shares, token: &str) -> ShareResult<Arc<Link>> {
    let link = shares.find(token)?;
    let is_shown = link.is_public && shares.terms().allows_public && link.password.is_none();
    if is_shown { Ok(link) } else { Err(ShareError::Unknown) }
}

/// Returns the preview of a link's trace.
pub(super) fn preview_of(shares: &Shares, link: &Link) -> ShareResult<Option<preview::Preview>> {
    let mut start = shares.read(link, 0, FIRST_BYTES)?;
    let Some(range) = format::preview_range(&start) else { return Ok(None) };
    if range.end > start.len() && range.end <= FIRST_BYTES + PREVIEW_PART_BYTES {
        start = shares.read(link, 0, range.end)?;
    }
    Ok(preview::read(&start))
}

fn headline(shares: &Shares, token: &str) -> Option<Headline> {
    let link = public_link(shares, token).ok()?;
    let headline = preview_of(shares, &link).ok()??.headline();
    Some(headline)
}

/// Returns the tags that describe a link, for the page's head. `address` is that of the page.
fn tags(headline: Option<&Headline>, address: &str, token: &str) -> String {
    let (title, text) = match headline {
        Some(headline) => (headline.title.as_str(), headline.text.as_str()),
        None => (TITLE, TEXT),
    };
    let tag = |name: &str, text: &str| format!("<meta property=\"{name}\" content=\"{}\" />\n    ", Escaped(text));
    let mut tags = String::from("<meta name=\"robots\" content=\"noindex\" />\n    ");
    tags += &tag("og:type", "website");
    tags += &tag("og:site_name", "Vramscope");
    tags += &tag("og:title", title);
    tags += &tag("og:description", text);
    if headline.is_some() {
        tags += &tag("og:image", &format!("{address}api/v1/traces/{token}/picture.png"));
        tags += &tag("og:image:width", "1200");
        tags += &tag("og:image:height", "630");
        tags += "<meta name=\"twitter:card\" content=\"summary_large_image\" />\n  ";
    }
    tags
}

/// Text in an attribute of HTML: at most one line of it, and no character with a meaning.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in escaped(self.0).chars().take(LINE_CHARS) {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_html() {
        let hostile = "\"><script>alert('x')</script>&\n\u{202e}";
        let headline = Headline { title: hostile.to_owned(), text: hostile.repeat(100) };
        let tags = tags(Some(&headline), "https://box.example/", "token");
        assert!(tags.contains(
            "og:title\" content=\"&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\\u{a}\\u{202e}\""
        ));
        assert!(!tags.contains("<script") && tags.len() < 3_000, "{tags}");
        assert_eq!(tags.matches('<').count(), tags.matches("<meta ").count());
        assert!(tags.contains("\"https://box.example/api/v1/traces/token/picture.png\""));
    }

    #[test]
    fn a_link_that_is_not_public_tells_nothing() {
        let tags = tags(None, "https://box.example/", "token");
        assert!(tags.contains(TITLE) && !tags.contains("og:image") && !tags.contains("token"), "{tags}");
    }
}
