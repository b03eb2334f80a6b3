//! Requests for a part of a shared trace.

use std::ops::Range;

use protocol::server::{KEY_HEADER, message_of, refusal, request_with};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStream, Response};

use crate::entry::scope;
use crate::reader::Bytes;

/// The address of a shared trace, and the credentials for it.
pub struct Link {
    /// Its URL.
    pub url: String,
    /// The server's access token; empty where none is needed.
    pub token: String,
    /// What the server gave for the link's password; empty where none is needed.
    pub key: String,
}

/// A response to a request for a part.
pub struct Part {
    /// Its bytes.
    pub stream: ReadableStream,
    /// The length of the whole trace; `None` if the server doesn't say.
    pub total: Option<u64>,
    /// Whether it is the part that was asked for, and not the whole trace.
    pub is_partial: bool,
}

/// Why a part can't be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server can't be reached, or is busy: another attempt may succeed.
    Away,
    /// The server refused, or what it sent can't be read. Holds a sentence for the user.
    Refused(String),
}

impl Link {
    /// Requests a part.
    pub async fn part(&self, range: &Range<u64>) -> Result<Part, Trouble> {
        let wanted = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        let request = request_with("GET", &self.token, &[("Range", &wanted), (KEY_HEADER, &self.key)]);
        let response = scope().fetch_with_str_and_init(&self.url, &request);
        let response: Response = JsFuture::from(response).await.map_err(|_| Trouble::Away)?.unchecked_into();
        match response.status() {
            429 | 500.. => return Err(Trouble::Away),
            200 | 206 => {}
            status => {
                let message = message_of(&response).await;
                return Err(Trouble::Refused(if message.is_empty() { refusal(status, "", "") } else { message }));
            }
        }
        let header = |name: &str| response.headers().get(name).ok().flatten();
        let is_partial = response.status() == 206;
        let total = if is_partial {
            let (from, total) = header("content-range").as_deref().and_then(parse).ok_or_else(changed)?;
            if from != range.start {
                return Err(changed());
            }
            total
        } else {
            header("content-length").and_then(|length| length.parse().ok())
        };
        Ok(Part { stream: response.body().ok_or(Trouble::Away)?, total, is_partial })
    }

    /// Returns the bytes of a part; `None` if they don't arrive.
    pub async fn bytes(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let part = self.part(range).await.ok().filter(|part| part.is_partial)?;
        let wanted = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let (mut stream, mut all, mut buffer) = (Bytes::of_stream(&part.stream, 0), Vec::new(), Vec::new());
        while all.len() < wanted && stream.next(&mut buffer).await.ok()? {
            all.extend_from_slice(&buffer);
        }
        (all.len() == wanted).then_some(all)
    }
}

/// Returns the error for an answer that contradicts an earlier one of the server.
pub fn changed() -> Trouble {
    Trouble::Refused("The server sent another part of this trace than it was asked for. Reload the page.".to_owned())
}

/// Reads the first byte and the length of the whole from a `Content-Range`: `bytes 0-99/12345`.
fn parse(header: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = header.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    Some((from.trim().parse().ok()?, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_tells_where_a_part_begins_and_how_long_the_whole_is() {
        let cases = [
            ("bytes 0-99/12345", Some((0, Some(12_345)))),
            (" bytes 7-8/9 ", Some((7, Some(9)))),
            ("bytes 7-8/*", Some((7, None))),
            ("bytes */9", None),
            ("items 0-1/2", None),
            ("", None),
        ];
        for (header, want) in cases {
            assert_eq!(parse(header), want, "{header}");
        }
    }
}
