//! The person's browser.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use crate::access::{create_private_folder, write_private};
use crate::announcement::{DOOR, announcements, state_folder};
use crate::host_name::host_name;

/// The part of a page's fragment with the token that the page shows to its server.
const TOKEN: &str = "token=";

/// Opens an address, if a person is there to see it. Nothing depends on it: whoever calls this prints the address too.
pub(super) fn open(address: &str) {
    if !is_wanted() {
        return;
    }
    // Programs that open others are many, and none may be there.
    let _ = match address.contains(&format!("#{TOKEN}")) {
        false => open::that_detached(address),
        // Every user of the machine can read the arguments of the browser.
        true => door(address).and_then(open::that_detached),
    };
}

/// Returns how to reach a page of this machine from the one that a person came from through SSH; `None` without SSH, and for a
/// page that other machines reach.
pub(super) fn tunnel(address: &str) -> Option<String> {
    std::env::var_os("SSH_CONNECTION").filter(|value| !value.is_empty())?;
    let port = tunnelled_port(address)?;
    Some(format!("From your own machine: ssh -L {port}:127.0.0.1:{port} {}", host_name()))
}

/// Returns the port of a page that only its own machine reaches.
fn tunnelled_port(address: &str) -> Option<u16> {
    let rest = address.strip_prefix("http://127.0.0.1:").or_else(|| address.strip_prefix("http://localhost:"))?;
    rest.split(['/', '#']).next()?.parse().ok()
}

/// Returns the part of a page's fragment with a token, to be followed by others; nothing without a token.
pub(super) fn token_part(token: Option<&str>) -> String {
    token.map(|token| format!("{TOKEN}{token}&")).unwrap_or_default()
}

/// Writes a file that only this user can read, and that leads the browser to an address.
fn door(address: &str) -> io::Result<PathBuf> {
    let folder = state_folder().map(|state| announcements(&state)).ok_or(io::ErrorKind::NotFound)?;
    create_private_folder(&folder).map_err(io::Error::other)?;
    let path = folder.join(DOOR);
    write_private(&path, page_to(address).as_bytes())?;
    Ok(path)
}

/// Returns a page that leads to an address.
fn page_to(address: &str) -> String {
    let address = address.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!doctype html><meta charset=utf-8><title>Vramscope</title><meta name=referrer content=no-referrer>\
         <meta http-equiv=refresh content=\"0; url={address}\">\n"
    )
}

/// Whether a browser can be expected to show something. Through SSH it would open on a screen that nobody looks at.
fn is_wanted() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_screen = !cfg!(all(unix, not(target_os = "macos"))) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    io::stderr().is_terminal() && has_screen && !is_set("SSH_CONNECTION") && !is_set("CI")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_this_machine_is_reached_through_a_tunnel() {
        for (address, want) in [
            ("http://127.0.0.1:7070/#job=a", Some(7070)),
            ("http://localhost:80", Some(80)),
            ("https://box.example:7070/", None),
            ("http://127.0.0.1/", None),
        ] {
            assert_eq!(tunnelled_port(address), want, "{address}");
        }
    }

    #[test]
    fn the_page_that_leads_to_an_address_can_not_be_left_by_it() {
        let address = format!("http://127.0.0.1:7070/#{}open=1/a%20b", token_part(Some("0a")));
        assert_eq!(address, "http://127.0.0.1:7070/#token=0a&open=1/a%20b");
        assert!(page_to(&address).contains("\"0; url=http://127.0.0.1:7070/#token=0a&amp;open=1/a%20b\""));
        assert!(!page_to("http://x/#\"><script>").contains("\"><script"));
        assert_eq!(token_part(None), "");
    }
}
