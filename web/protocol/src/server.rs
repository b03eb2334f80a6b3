//! Requests of page and engine to the server that the page came from, and the sentences for the user when it refuses.

use js_sys::{JSON, Reflect};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Headers, RequestInit, Response};

/// How many characters of the server's own message are shown.
const MESSAGE_CHARS: usize = 300;

/// Builds the options of a request; `token` is empty where the server needs none.
pub fn request(method: &str, token: &str) -> RequestInit {
    request_with(method, token, &[])
}

/// The header that carries what the server gave for a link's password.
pub const KEY_HEADER: &str = "x-vramscope-key";

/// Builds the options of a request with further headers. Those without a value are left out.
pub fn request_with(method: &str, token: &str, more: &[(&str, &str)]) -> RequestInit {
    let request = RequestInit::new();
    request.set_method(method);
    let authorization = if token.is_empty() { String::new() } else { format!("Bearer {token}") };
    if let Ok(headers) = Headers::new() {
        for (name, value) in
            [("Authorization", &*authorization)].iter().chain(more).filter(|(_, value)| !value.is_empty())
        {
            // Fails for a value that no header can hold; the server then refuses the request.
            let _ = headers.set(name, value);
        }
        request.set_headers(&headers);
    }
    request
}

/// Shown when no response arrives.
pub const AWAY: &str = "The server that this page came from doesn't answer. Is it running, and can it be reached?";

/// Returns the sentence for a response that reports no success: the server's own message, if its body holds one.
pub async fn refusal_of(response: &Response) -> String {
    let (code, message) = error_of(response).await.unwrap_or_default();
    refusal(response.status(), &code, &message)
}

/// Returns the server's own message for a response that reports no success; empty if its body holds none.
pub async fn message_of(response: &Response) -> String {
    error_of(response).await.map(|(_, message)| own_words(&message)).unwrap_or_default()
}

/// Returns the code of an error of the server's API, and its message as one line of limited length. Both are empty if the
/// body is no such error.
pub async fn code_and_message(response: &Response) -> (String, String) {
    let (code, message) = error_of(response).await.unwrap_or_default();
    (code, own_words(&message))
}

/// Returns the code and the message in the body of an error of the server's API.
async fn error_of(response: &Response) -> Option<(String, String)> {
    let text = JsFuture::from(response.text().ok()?).await.ok()?.as_string()?;
    let field = |value: &JsValue, key: &str| Reflect::get(value, &key.into()).ok();
    let error = field(&JSON::parse(&text).ok()?, "error")?;
    Some((field(&error, "code")?.as_string()?, field(&error, "message")?.as_string()?))
}

/// Returns the sentence for a status that is no success. `code` and `message` are the server's own; empty if it sent none.
///
/// For a missing token and a missing job the page knows better than the server what its user can do.
pub fn refusal(status: u16, code: &str, message: &str) -> String {
    let own = own_words(message);
    match status {
        401 => "The server requires a token. Enter it on the start page.".to_owned(),
        404 if own.is_empty() || code == "session" => "The server no longer has this job: its recording expired, was deleted, or is in another data folder (--data)."
            .to_owned(),
        _ if !own.is_empty() => own,
        403 => "The server rejected this page because it came from another address. Open the server's own address."
            .to_owned(),
        409 => "The server can't do this now: the job is still running, has ended meanwhile, or another request is busy.".to_owned(),
        status => format!("The server could not do this (status {status}). Its log has the reason."),
    }
}

/// Returns a message as one line of limited length.
fn own_words(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = line.chars();
    let mut shown: String = chars.by_ref().take(MESSAGE_CHARS).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_message_is_shown_unless_the_page_knows_better() {
        let cases = [
            (409, "state", "The job has ended.", "The job has ended."),
            (404, "empty", "Nothing is stored for this time span.", "Nothing is stored for this time span."),
            (503, "busy", " The server\nis busy. ", "The server is busy."),
            (
                403,
                "",
                "",
                "The server rejected this page because it came from another address. Open the server's own address.",
            ),
            (500, "", " ", "The server could not do this (status 500). Its log has the reason."),
            (401, "token", "This server requires a token.", "The server requires a token. Enter it on the start page."),
        ];
        for (status, code, message, want) in cases {
            assert_eq!(refusal(status, code, message), want, "{status} {message:?}");
        }
        assert!(refusal(404, "session", "There is no such session.").starts_with("The server no longer has this job"));
    }

    #[test]
    fn a_long_message_is_cut() {
        let shown = refusal(409, "state", &"long ".repeat(1_000));
        assert_eq!(shown.chars().count(), MESSAGE_CHARS + 1);
        assert!(shown.ends_with('…'));
    }
}
