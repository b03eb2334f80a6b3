//! The part of the server's API that shares traces by link. Nothing is sent before the user asks for it.

use protocol::server::AWAY;
use query::link::Link;
use web_sys::{AbortSignal, Blob};

use super::http::{Refusal, Request, text, token};
use super::json::{Fields, Json, number_or_null};
use crate::browser::window;

/// The header with the token that deletes a link.
const DELETE_TOKEN: &str = "x-vramscope-delete-token";

/// What a server offers to those who share.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharing {
    /// The most bytes of a trace.
    pub most_bytes: u64,
    /// The most bytes of a part of an upload.
    pub part_bytes: u64,
    /// Seconds until a link expires, unless the user chooses otherwise.
    pub default_seconds: Option<u64>,
    /// The most seconds that can be chosen; `None` if a link may last forever.
    pub most_seconds: Option<u64>,
    /// Whether a link may be opened without a token.
    pub is_public_allowed: bool,
}

/// What the user chose for a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// The link's name.
    pub name: String,
    /// Seconds until it expires; `None` for never.
    pub seconds: Option<u64>,
    /// The password; empty for none.
    pub password: String,
    /// Whether it can be opened without a token.
    pub is_public: bool,
}

/// An upload that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// Its id.
    pub id: String,
    /// The token of the link that it becomes.
    pub token: String,
    /// The token that deletes the link.
    pub delete_token: String,
    /// The most bytes of a part.
    pub part_bytes: u64,
}

/// A link, as the server describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// Its token.
    pub token: String,
    /// Its name.
    pub name: String,
    /// The size of its trace.
    pub bytes: u64,
    /// When it was made, in microseconds since the epoch.
    pub created_us: i64,
    /// When it expires; `None` for never.
    pub expires_us: Option<i64>,
    /// Whether it has a password.
    pub has_password: bool,
    /// Whether it can be opened without a token.
    pub is_public: bool,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server can't be reached.
    Away,
    /// The server asks to be left alone for a while. Holds a sentence.
    Busy(String),
    /// The next part has to begin elsewhere.
    Offset,
    /// A token is needed, or another one. Holds a sentence.
    Token(String),
    /// The link was deleted or has expired. Holds a sentence.
    Gone(String),
    /// The link has a password.
    Password,
    /// The server knows no such thing, or doesn't share traces.
    Absent,
    /// Any other reason, as a sentence.
    Refused(String),
}

/// Said where a token is needed.
const NO_TOKEN: &str = "This server requires a token with the share role. Ask the person who runs it for one.";
/// Said for a token without the role.
const NO_ROLE: &str = "Your token may not share. Ask the person who runs the server for one with the role share.";

impl Trouble {
    /// Returns the trouble that a refusal reports.
    fn of(refusal: &Refusal, has_token: bool) -> Self {
        let Refusal { status, code, message, .. } = refusal;
        let or = |sentence: &str| if message.is_empty() { sentence.to_owned() } else { message.to_owned() };
        match (*status, code.as_str()) {
            (0, _) => Self::Away,
            (401, "password") => Self::Password,
            (401, _) => Self::Token(if has_token { or(NO_TOKEN) } else { NO_TOKEN.to_owned() }),
            (403, "role" | "") if message.is_empty() || message.contains("role share") => {
                Self::Token(NO_ROLE.to_owned())
            }
            (403, "role") => Self::Token(message.clone()),
            (404, _) => Self::Absent,
            (409, "offset") => Self::Offset,
            (410, _) => Self::Gone(or("This link was deleted or has expired.")),
            (413, _) => Self::Refused(or("The server accepts no trace of this size. Share a range or fewer devices.")),
            (429, _) => Self::Busy(or("The server accepts no more requests from you for now. Try again in a minute.")),
            (502..=504, _) => Self::Busy(or("The server is busy. Try again in a minute.")),
            (507, _) => {
                Self::Refused(or("The server's disk is full. Ask the person who runs it to make room, then try again."))
            }
            (status, _) => {
                Self::Refused(or(&format!("The server could not do this (status {status}). Its log has the reason.")))
            }
        }
    }

    /// Returns the sentence for the user.
    pub fn sentence(&self) -> String {
        match self {
            Self::Away => AWAY.to_owned(),
            Self::Offset => "The server has lost a part of the upload. Continue to send it again.".to_owned(),
            Self::Password => "This link has a password.".to_owned(),
            Self::Absent => "The server no longer has this upload. Share again.".to_owned(),
            Self::Busy(sentence) | Self::Token(sentence) | Self::Gone(sentence) | Self::Refused(sentence) => {
                sentence.clone()
            }
        }
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Self::of(&refusal, !token().is_empty())
    }
}

/// Returns a number of seconds as JSON: `null` for never.
fn seconds_or_null(seconds: Option<u64>) -> wasm_bindgen::JsValue {
    number_or_null(seconds.map(|seconds| seconds as f64))
}

/// Asks what the server offers.
pub async fn sharing() -> Result<Sharing, Trouble> {
    let found = Request::new("GET", "traces/sharing").json().await?;
    let number = |key| found.number(key).map(|number| number as u64);
    Ok(Sharing {
        most_bytes: number("most_bytes").ok_or(Trouble::Absent)?,
        part_bytes: number("part_bytes").ok_or(Trouble::Absent)?,
        default_seconds: number("default_expires_seconds"),
        most_seconds: number("most_expires_seconds"),
        is_public_allowed: found.is("is_public_allowed"),
    })
}

/// Begins an upload of a number of bytes.
pub async fn begin(bytes: u64, terms: &Terms) -> Result<Begun, Trouble> {
    let mut fields = Fields::default()
        .with("bytes", bytes as f64)
        .with("name", terms.name.as_str())
        .with("expires_seconds", seconds_or_null(terms.seconds))
        .with("is_public", terms.is_public);
    if !terms.password.is_empty() {
        fields = fields.with("password", terms.password.as_str());
    }
    let begun = Request::with_fields("POST", "traces/uploads", &fields, ("", "")).json().await?;
    Ok(Begun {
        id: begun.text("id"),
        token: begun.text("token"),
        delete_token: begun.text("delete_token"),
        part_bytes: begun.number("part_bytes").unwrap_or(0.0) as u64,
    })
}

/// Sends a part. Returns the number of bytes that the server has now.
pub async fn put(id: &str, from: u64, part: &Blob, abort: &AbortSignal) -> Result<u64, Trouble> {
    let request = Request::new("PUT", &format!("traces/uploads/{id}?from={from}"));
    received(&request.with_bytes(part, abort).json().await?)
}

/// Asks how many bytes of an upload the server has.
pub async fn stands_at(id: &str) -> Result<u64, Trouble> {
    received(&Request::new("GET", &format!("traces/uploads/{id}")).json().await?)
}

fn received(state: &Json) -> Result<u64, Trouble> {
    Ok(state.number("received").ok_or(Trouble::Away)? as u64)
}

/// Ends an upload: its link exists from now on.
pub async fn finish(begun: &Begun) -> Result<Shared, Trouble> {
    let made = Request::new("POST", &format!("traces/uploads/{}/finish", begun.id)).json().await?;
    // The server keeps the token's hash only.
    Ok(shared(&made, &begun.token))
}

/// Cancels an upload.
pub async fn cancel(id: &str) -> Result<(), Trouble> {
    Request::new("DELETE", &format!("traces/uploads/{id}")).send().await?;
    Ok(())
}

/// Asks the server about a link.
pub async fn describe(link: &str) -> Result<Shared, Trouble> {
    Ok(shared(&Request::new("GET", &format!("traces/{link}")).json().await?, link))
}

/// Lets a link expire at another time: after a number of seconds, or never.
pub async fn set_expiry(link: &str, delete_token: &str, seconds: Option<u64>) -> Result<Shared, Trouble> {
    let fields = Fields::default().with("expires_seconds", seconds_or_null(seconds));
    let header = (DELETE_TOKEN, delete_token);
    let changed = Request::with_fields("PUT", &format!("traces/{link}/expiry"), &fields, header).json().await?;
    Ok(shared(&changed, link))
}

/// Deletes a link.
pub async fn delete(link: &str, delete_token: &str) -> Result<(), Trouble> {
    Request::with_headers("DELETE", &format!("traces/{link}"), &[(DELETE_TOKEN, delete_token)]).send().await?;
    Ok(())
}

/// Reads the description of the link with this token.
fn shared(link: &Json, token: &str) -> Shared {
    Shared {
        token: token.to_owned(),
        name: link.text("name"),
        bytes: link.number("bytes").unwrap_or(0.0) as u64,
        created_us: link.number("created_us").unwrap_or(0.0) as i64,
        expires_us: link.number("expires_us").map(|us| us as i64),
        has_password: link.is("has_password"),
        is_public: link.is("is_public"),
    }
}

/// Returns the address of the page's folder.
fn folder() -> String {
    let location = window().location();
    let (origin, path) = (location.origin().unwrap_or_default(), location.pathname().unwrap_or_default());
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{origin}{folder}/")
}

/// Returns the address of the page for a link, with a view unless that is empty: `https://host/folder/s-TOKEN#v=1`.
pub fn address(link: &str, view: &str) -> String {
    let hash = if view.is_empty() { "" } else { "#" };
    format!("{}s-{link}{hash}{view}", folder())
}

/// Returns the address of the page for a session.
pub fn session_address(link: &Link) -> String {
    format!("{}#{link}", folder())
}

/// The page as a single file.
const OFFLINE_PAGE: &str = "./offline.html";

/// Returns whether the server has the page as a single file.
pub async fn has_offline_page() -> bool {
    Request::of_file("HEAD", OFFLINE_PAGE).send().await.is_ok()
}

/// Fetches the page as a single file in which a trace can be put. `None` if the server has none.
pub async fn offline_page() -> Option<String> {
    text(&Request::of_file("GET", OFFLINE_PAGE).send().await.ok()?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: &str, message: &str) -> Refusal {
        Refusal { status, code: code.to_owned(), message: message.to_owned(), wait_seconds: None }
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let refused = |text: &str| Trouble::Refused(text.to_owned());
        for (status, code, message, want) in [
            (401, "token", "This server requires a token.", Trouble::Token(NO_TOKEN.to_owned())),
            (401, "password", "A password is needed.", Trouble::Password),
            (403, "role", "The token lacks the role share.", Trouble::Token(NO_ROLE.to_owned())),
            (
                403,
                "role",
                "The token lacks the role read.",
                Trouble::Token("The token lacks the role read.".to_owned()),
            ),
            (403, "origin", "Another page.", refused("Another page.")),
            (404, "share", "", Trouble::Absent),
            (409, "offset", "", Trouble::Offset),
            (409, "state", "The upload has ended.", refused("The upload has ended.")),
            (410, "gone", "It was deleted.", Trouble::Gone("It was deleted.".to_owned())),
            (413, "size", "At most 1 GiB.", refused("At most 1 GiB.")),
            (429, "rate", "Wait.", Trouble::Busy("Wait.".to_owned())),
            (507, "full", "The disk is full.", refused("The disk is full.")),
        ] {
            assert_eq!(Trouble::of(&refusal(status, code, message), false), want, "{status} {code}");
        }
        let wrong = "This server doesn't know the token.";
        assert_eq!(Trouble::of(&refusal(401, "token", wrong), true), Trouble::Token(wrong.to_owned()));
        for status in [410, 413, 429, 503, 507, 500] {
            assert!(Trouble::of(&refusal(status, "", ""), true).sentence().ends_with('.'), "{status}");
        }
    }
}
