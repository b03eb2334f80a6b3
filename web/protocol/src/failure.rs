//! The sentences for the user when a worker fails instead of answering.

/// The browser started no worker.
pub const NO_WORKER: &str = "The browser did not start a background worker for this file. Reload the page; if that \
                             doesn't help, try a current Chrome, Firefox or Safari.";

/// A message could not be decoded: page and engine are of different builds.
pub const GARBLED: &str = "The server was updated while this page was open. Reload the page and open the file again.";

/// The worker ran out of memory.
const OUT_OF_MEMORY: &str = "This file needs more memory than the browser gives one page (4 GiB at most). Read it \
                             outside the browser: vramscope report FILE";

/// A what-if worker ran out of memory.
const WHATIF_OUT_OF_MEMORY: &str = "This trace needs more memory than the browser gives one page (4 GiB at most). Run it \
                                    outside the browser: vramscope whatif FILE";

/// How failures of WebAssembly for lack of memory read. The first is the mark of worker.js, for memory close to its limit.
const MEMORY_MARKS: [&str; 3] = ["memory", "allocation", "unreachable"];
/// How panics for lack of memory begin, after the line with their place.
const MEMORY_PANICS: [&str; 2] = ["memory allocation of ", "capacity overflow"];

/// How the page's script marks an engine that could not be downloaded or compiled.
const ENGINE_MARK: &str = "engine: ";

/// Returns the sentence for an error that the browser, worker.js or the page's script reports of a worker.
pub fn sentence(error: &str) -> String {
    if let Some(detail) = error.strip_prefix(ENGINE_MARK) {
        return format!(
            "The part of the page that reads files could not be loaded ({detail}). Reload the page. It needs WebAssembly \
             with SIMD: Chrome 91, Firefox 89, Safari 16.4 or later."
        );
    }
    if is_out_of_memory(error) {
        return OUT_OF_MEMORY.to_owned();
    }
    let detail = error.trim();
    let detail = if detail.is_empty() { "no reason given" } else { detail };
    format!(
        "Reading this file stopped at an internal error ({detail}). This is a bug in Vramscope, not in your file: \
         please report it. vramscope report FILE may still read it."
    )
}

/// Returns the sentence for an error that the browser, rerun.js or the page's script reports of a what-if worker.
pub fn whatif_sentence(error: &str) -> String {
    if let Some(detail) = error.strip_prefix(ENGINE_MARK) {
        return format!("The part of the page that answers what-if could not be loaded ({detail}). Reload the page.");
    }
    if is_out_of_memory(error) {
        return WHATIF_OUT_OF_MEMORY.to_owned();
    }
    let detail = error.trim();
    format!(
        "What-if stopped at an internal error ({detail}). This is a bug in Vramscope, not in your file: please report it."
    )
}

/// Returns whether an error is a lack of memory.
fn is_out_of_memory(error: &str) -> bool {
    if let Some(panic) = error.strip_prefix("panicked at ") {
        // The first line is the place in the source, whose path may have any of the words.
        let said = panic.split_once('\n').map_or("", |(_, said)| said);
        return MEMORY_PANICS.iter().any(|mark| said.starts_with(mark));
    }
    let lower = error.to_ascii_lowercase();
    MEMORY_MARKS.iter().any(|mark| lower.contains(mark))
}

/// Returns the sentence for a file that the server `host` did not hand out to a page from `origin`.
pub fn unreachable_elsewhere(host: &str, origin: &str) -> String {
    format!(
        "The browser could not fetch this file from {host}. That server can't be reached, redirects to another host, or \
         doesn't allow this page to read it: it must answer with the header Access-Control-Allow-Origin: {origin} (or \
         *). You can also download the file yourself and drop it here."
    )
}

/// Returns the sentence for a file that the server `host` answered with a status that is no success.
pub fn refused_elsewhere(host: &str, status: u16) -> String {
    let what = match status {
        401 => {
            "requires a sign-in for this file, and this page sends none. Download the file yourself and drop it here."
        }
        403 => {
            "doesn't let this page have the file. The link may have expired, or the file requires a sign-in. Ask the person \
             who sent the link, or download the file yourself and drop it here."
        }
        404 | 410 => "has no file at this address. Check the address, or ask the person who sent the link.",
        429 | 500.. => "can't hand out the file at the moment. Try again later.",
        _ => "sent no file. Check the address, or download the file yourself and drop it here.",
    };
    format!("{host} {what} (Status {status}.)")
}

/// Returns the sentence for a download that stopped before its end.
pub fn broken_off(error: &str) -> String {
    format!("The download of this file broke off ({error}). Check the connection, then try again.")
}

/// Returns the sentence for a file that the browser can no longer read.
pub fn unreadable(error: &str) -> String {
    format!("The browser can no longer read this file ({error}). If it was moved or changed, open it again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_another_server_says_what_to_do() {
        for (status, want) in [
            (401, "sign-in"),
            (403, "may have expired"),
            (404, "no file at this address"),
            (410, "no file at this address"),
            (400, "sent no file"),
            (503, "Try again later"),
        ] {
            let said = refused_elsewhere("files.example.org", status);
            assert!(said.starts_with("files.example.org ") && said.contains(want), "{said}");
            assert!(said.contains(&status.to_string()), "{said}");
        }
    }

    #[test]
    fn out_of_memory_has_a_sentence_of_its_own() {
        for error in [
            "memory: unreachable",
            "RangeError: Array buffer allocation failed",
            "RuntimeError: unreachable",
            "panicked at alloc/src/raw_vec.rs:28:5:\ncapacity overflow",
            "panicked at alloc/src/alloc.rs:1:2:\nmemory allocation of 64 bytes failed",
        ] {
            assert!(sentence(error).contains("vramscope report"), "{error}");
            assert!(sentence(error).contains("4 GiB"), "{error}");
            assert!(whatif_sentence(error).contains("4 GiB"), "{error}");
        }
        assert!(sentence("panicked at index 3").contains("index 3"));
        assert!(sentence("").contains("no reason given"));
        assert!(sentence("engine: TypeError: Failed to fetch").contains("SIMD"));
    }

    #[test]
    fn a_panic_is_no_lack_of_memory_because_of_its_words_or_its_path() {
        for error in [
            "panicked at shared/replay/src/memory.rs:3:5:\nindex out of bounds: the len is 3 but the index is 3",
            "panicked at web/src/views/details/allocation.rs:3:5:\ncalled `Option::unwrap()` on a `None` value",
            "panicked at shared/session/src/lib.rs:3:5:\ninternal error: entered unreachable code",
            "panicked at shared/session/src/lib.rs:3:5:\nno allocation 7",
            "panicked at memory.rs:1:1:",
        ] {
            for said in [sentence(error), whatif_sentence(error)] {
                assert!(said.contains("internal error") && !said.contains("4 GiB"), "{said}");
            }
        }
    }
}
