//! The page's files.

use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::server::assets::{self, Asset};
use crate::server::error::not_found;

/// The file that the address names; `/` is the page itself.
pub(crate) async fn page(uri: Uri, request: HeaderMap) -> Response {
    if !assets::has_page() {
        let sentence =
            "This build of Vramscope has no page. Build it without VRAMSCOPE_PAGE=skip: cargo run --release\n";
        return (StatusCode::SERVICE_UNAVAILABLE, sentence).into_response();
    }
    match assets::find(uri.path().trim_start_matches('/')) {
        Some(asset) => answer(asset, &request),
        None => not_found(&uri),
    }
}

/// The file, compressed where the browser can read that, or word that the browser's copy is still good.
fn answer(asset: &'static Asset, request: &HeaderMap) -> Response {
    // The browser asks each time and mostly hears "unchanged": a new build is never hidden behind an old cache.
    let shared = [
        (ETAG, HeaderValue::from_static(asset.tag)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (VARY, HeaderValue::from_static("accept-encoding")),
    ];
    if names(request, IF_NONE_MATCH.as_str()).any(|tag| tag == "*" || tag.trim_start_matches("W/") == asset.tag) {
        return (StatusCode::NOT_MODIFIED, shared).into_response();
    }
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static(asset.content_type))];
    match asset.gzip.filter(|_| accepts_gzip(request)) {
        Some(packed) => {
            (shared, content_type, [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))], packed).into_response()
        }
        None => (shared, content_type, asset.plain).into_response(),
    }
}

/// The items of a header that is a list.
fn names<'a>(request: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    request
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

/// Whether the request lists gzip, and not with a weight of zero.
fn accepts_gzip(request: &HeaderMap) -> bool {
    names(request, ACCEPT_ENCODING.as_str()).any(|item| {
        let (coding, weight) = item.split_once(';').unwrap_or((item, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|number| number.parse::<f32>().ok());
        coding.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    static ASSET: Asset =
        Asset { path: "a.css", content_type: "text/css", tag: "\"0a\"", plain: b"body {}", gzip: Some(b"packed") };

    fn request(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn gzip_goes_to_those_who_ask() {
        for (accept, packed) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("deflate, GZIP", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let response = answer(&ASSET, &request(ACCEPT_ENCODING, accept));
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), packed, "{accept:?}");
            assert_eq!(response.headers()[VARY], "accept-encoding");
        }
    }

    #[test]
    fn an_unchanged_file_is_not_sent_again() {
        for (tags, status) in [
            ("\"0a\"", StatusCode::NOT_MODIFIED),
            ("\"00\", W/\"0a\"", StatusCode::NOT_MODIFIED),
            ("*", StatusCode::NOT_MODIFIED),
            ("\"00\"", StatusCode::OK),
        ] {
            assert_eq!(answer(&ASSET, &request(IF_NONE_MATCH, tags)).status(), status, "{tags}");
        }
    }
}
