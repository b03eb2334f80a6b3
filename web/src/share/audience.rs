//! Who can open a link.

use crate::browser::window;
use crate::source::http;

/// Said of addresses that only this machine knows, after who can open them.
const ONLY_HERE: &str = "For others, run the server where they can reach it, or save the trace as a file.";

/// Returns who can open a link to the page's server.
pub fn who(is_public: bool) -> &'static str {
    match (is_public, http::token().is_empty()) {
        // Whatever the server allows, the address means another machine elsewhere.
        (true, _) | (false, true) if is_here() => "The link only opens on this machine.",
        (false, false) if is_here() => {
            "The link only opens on this machine, for people with a token for this server with the role read."
        }
        (true, _) => "Anyone with the link can open it.",
        // A server that asks for no token here asks nobody for one.
        (false, true) => "Anyone who can reach this server can open the link.",
        (false, false) => "To open the link, people need a token for this server with the role read.",
    }
}

/// Returns what to do for others if the page's address means another machine elsewhere; empty otherwise.
pub fn reach() -> &'static str {
    if is_here() { ONLY_HERE } else { "" }
}

fn is_here() -> bool {
    is_local(&window().location().hostname().unwrap_or_default())
}

/// Returns whether a host is the machine itself.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host == "[::1]" || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_local() {
        for (host, want) in [
            ("localhost", true),
            ("vramscope.localhost", true),
            ("127.0.0.1", true),
            ("127.1.2.3", true),
            ("[::1]", true),
            ("10.0.0.7", false),
            ("node17", false),
            ("localhost.example.org", false),
            ("", false),
        ] {
            assert_eq!(is_local(host), want, "{host}");
        }
    }
}
