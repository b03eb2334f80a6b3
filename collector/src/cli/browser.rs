//! The person's browser.

use std::io::{self, IsTerminal};

/// Opens an address, if a person is there to see it. Nothing depends on it: whoever calls this prints the address too.
pub(super) fn open(address: &str) {
    if is_wanted() {
        // Programs that open others are many, and none may be there.
        let _ = open::that_detached(address);
    }
}

/// Whether a browser can be expected to show something. Through SSH it would open on a screen that nobody looks at.
fn is_wanted() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_screen = !cfg!(all(unix, not(target_os = "macos"))) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    io::stderr().is_terminal() && has_screen && !is_set("SSH_CONNECTION") && !is_set("CI")
}
