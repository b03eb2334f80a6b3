//! The page's files.

use std::borrow::Cow;

use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use wire::is_link_token;

use super::link_page::link_page;
use crate::assets::{self, Asset};
use crate::server::App;
use crate::server::access_log::LINK;
use crate::server::coding::{self, Coding};
use crate::server::error::not_found;

/// For a file whose path contains the hash of its content: another content has another path.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// For any other file: browsers ask each time, and mostly get 304, so that an old cache never hides a new build.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

/// Serves the file at the request's path; `/` and the path of a link are `index.html`.
pub(crate) async fn page(State(app): State<App>, request: Request) -> Response {
    if !assets::has_page() {
        let sentence =
            "This build of Vramscope has no page. Build it without VRAMSCOPE_PAGE=skip: cargo run --release\n";
        return (StatusCode::SERVICE_UNAVAILABLE, sentence).into_response();
    }
    let (request, _) = request.into_parts();
    let path = request.uri.path().trim_start_matches('/');
    if let Some(token) = path.strip_prefix(LINK).filter(|token| is_link_token(token)) {
        return link_page(&app, token, &request).await;
    }
    match assets::find(path) {
        Some(asset) => answer(asset, &request.headers),
        // A link that was cut off: the page says so.
        None if path.starts_with(LINK) && !path.contains('/') => link_page(&app, "", &request).await,
        None => not_found(&request.uri),
    }
}

/// Answers with the file, in the coding that the client prefers, or with 304 if the client has it.
fn answer(asset: &'static Asset, request: &HeaderMap) -> Response {
    let forms =
        [(Coding::Brotli, asset.brotli.is_some()), (Coding::Gzip, asset.gzip.is_some()), (Coding::Identity, true)];
    let accepted = coding::accepted(&list(request, ACCEPT_ENCODING), &forms);

    // A strong tag stands for exact bytes, so each coding has its own.
    let tag = match accepted.name() {
        Some(name) => format!("\"{}-{name}\"", asset.hash),
        None => format!("\"{}\"", asset.hash),
    };
    let is_known = list(request, IF_NONE_MATCH)
        .split(',')
        .any(|known| known.trim() == "*" || known.trim().trim_start_matches("W/") == tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let content_type = [(CONTENT_TYPE, HeaderValue::from_static(asset.content_type))];
        let packed = match accepted {
            Coding::Brotli => asset.brotli,
            Coding::Gzip => asset.gzip,
            Coding::Identity => None,
        };
        let bytes = packed.map_or_else(|| asset.plain(), Cow::Borrowed);
        let mut response = (content_type, bytes).into_response();
        if let Some(name) = accepted.name() {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(name));
        }
        response
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, if asset.is_immutable { FOREVER } else { ASK_AGAIN });
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    // Hexadecimal digits and names of codings are valid in any header.
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// Returns all values of a header that is a list, separated by commas.
fn list(request: &HeaderMap, name: HeaderName) -> String {
    let values: Vec<_> = request.get_all(name).into_iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    static ASSET: Asset = Asset {
        path: "a-0a.css",
        content_type: "text/css",
        hash: "0a",
        is_immutable: true,
        plain: Some(b"body {}"),
        brotli: Some(b"brotli"),
        gzip: Some(b"gzip"),
    };
    static ENTRY: Asset = Asset { path: "index.html", is_immutable: false, brotli: None, ..ASSET };

    fn request(headers: &[(HeaderName, &'static str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn header(response: &Response, name: HeaderName) -> &str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn each_coding_has_its_header_and_its_tag() {
        for (asset, accept, coding, tag) in [
            (&ASSET, "gzip, deflate, br", "br", "\"0a-br\""),
            (&ASSET, "gzip", "gzip", "\"0a-gzip\""),
            (&ASSET, "br;q=0", "", "\"0a\""),
            (&ENTRY, "gzip, br", "gzip", "\"0a-gzip\""),
        ] {
            let response = answer(asset, &request(&[(ACCEPT_ENCODING, accept)]));
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(header(&response, CONTENT_ENCODING), coding, "{accept:?}");
            assert_eq!(header(&response, ETAG), tag, "{accept:?}");
            assert_eq!(header(&response, VARY), "Accept-Encoding");
            assert_eq!(header(&response, CONTENT_TYPE), "text/css");
        }
    }

    #[test]
    fn only_names_with_a_hash_are_kept_forever() {
        let kept = |asset| header(&answer(asset, &HeaderMap::new()), CACHE_CONTROL).to_owned();
        assert_eq!(kept(&ASSET), "public, max-age=31536000, immutable");
        assert_eq!(kept(&ENTRY), "no-cache");
    }

    #[test]
    fn an_unchanged_file_is_not_sent_again() {
        for (accept, tags, status) in [
            ("", "\"0a\"", StatusCode::NOT_MODIFIED),
            ("", "\"00\", W/\"0a\"", StatusCode::NOT_MODIFIED),
            ("", "*", StatusCode::NOT_MODIFIED),
            ("", "\"00\"", StatusCode::OK),
            ("br", "\"0a-br\"", StatusCode::NOT_MODIFIED),
            ("br", "\"0a\"", StatusCode::OK),
            ("gzip", "\"0a-br\"", StatusCode::OK),
        ] {
            let response = answer(&ASSET, &request(&[(ACCEPT_ENCODING, accept), (IF_NONE_MATCH, tags)]));
            assert_eq!(response.status(), status, "{accept} {tags}");
            assert_ne!(header(&response, ETAG), "");
            assert_eq!(header(&response, VARY), "Accept-Encoding");
            assert_eq!(header(&response, CACHE_CONTROL), "public, max-age=31536000, immutable");
        }
    }
}
