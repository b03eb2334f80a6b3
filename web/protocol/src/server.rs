//! How page and engine ask the server that the page came from, and what they tell the user when it refuses.

use web_sys::{Headers, RequestInit};

/// Builds the options of a request; `token` is empty where the server needs none.
pub fn request(method: &str, token: &str) -> RequestInit {
    let request = RequestInit::new();
    request.set_method(method);
    if !token.is_empty()
        && let Ok(headers) = Headers::new()
        // Fails for a token that no header can hold; the server then refuses the request.
        && headers.set("Authorization", &format!("Bearer {token}")).is_ok()
    {
        request.set_headers(&headers);
    }
    request
}

/// Shown when no response arrives.
pub const AWAY: &str = "The server that this page came from doesn't answer. Is it running, and can it be reached?";

/// Returns the sentence for a response that reports no success.
pub fn refusal(status: u16) -> String {
    match status {
        401 => "The server requires a token. Enter it on the start page.".to_owned(),
        403 => "The server rejected this page because it came from another address. Open the server's own address."
            .to_owned(),
        404 => "The server no longer has this job: its recording expired, was deleted, or is in another data folder (--data)."
            .to_owned(),
        409 => "The server can't do this now: the job is still running, has ended meanwhile, or another request is busy.".to_owned(),
        status => format!("The server could not do this (status {status}). Its log has the reason."),
    }
}
