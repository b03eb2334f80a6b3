//! A link to a shared trace, and why it can't be opened.

/// How the last segment of the path of a shared trace begins.
pub const SHARED_PREFIX: &str = "s-";

/// A link to a trace that somebody shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedLink {
    /// Its token, which the page's address ends with.
    pub token: String,
    /// What the server gave for its password; empty without one. It is kept here only, and ends with the page.
    pub key: String,
    /// What stands in the way of opening it.
    pub trouble: Option<Trouble>,
}

impl SharedLink {
    /// Returns the last segment of its page's path.
    pub fn path(&self) -> String {
        format!("{SHARED_PREFIX}{}", self.token)
    }
}

/// What stands in the way of opening a shared trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It needs a password.
    Password {
        /// Passwords that were entered, none of them right.
        tried: u32,
        /// Seconds for which the server looks at no further one; 0 unless too many were entered.
        wait_seconds: u32,
    },
    /// Its address is not a whole link.
    Incomplete {
        /// Characters of its token.
        characters: usize,
    },
    /// The server requires a token, or another one.
    Token,
    /// It was deleted or has expired: the server's sentence, which says which and when.
    Gone(String),
    /// The server knows no such link.
    Unknown,
    /// Anything else, as a sentence.
    Other(String),
}

impl Trouble {
    /// Returns it as a sentence.
    pub fn sentence(&self) -> String {
        let text = match self {
            Self::Password { .. } => "This trace needs a password.",
            Self::Incomplete { .. } => "This link is not complete.",
            Self::Token => "This server requires a token.",
            Self::Gone(sentence) if sentence.is_empty() => {
                "This link was deleted or has expired. Ask the person who sent it for a new one."
            }
            Self::Unknown => "There is no such link.",
            Self::Gone(sentence) | Self::Other(sentence) => sentence,
        };
        text.to_owned()
    }
}
