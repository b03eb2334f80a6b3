//! What a person is told when a worker breaks down instead of answering.

/// The browser gives us no worker.
pub const NO_WORKER: &str = "The browser did not start a background worker for this file. Reload the page; if that \
                             doesn't help, try a current Chrome, Firefox or Safari.";

/// A message could not be read: page and worker are of different builds.
pub const GARBLED: &str = "The page and its worker don't understand each other, which happens when the server was \
                           updated while the page was open. Reload the page and open the file again.";

/// Memory ran out in the worker.
const OUT_OF_MEMORY: &str = "This file needs more memory than the browser gives one page (4 GiB at most). Read it \
                             outside the browser: vramscope report FILE";

/// How worker.js marks a breakdown with WebAssembly memory close to its bound, or without a panic before it.
const MEMORY_MARK: &str = "memory";

/// A sentence for what a browser, or worker.js, says of an error in a worker.
pub fn sentence(error: &str) -> String {
    let lower = error.to_ascii_lowercase();
    if [MEMORY_MARK, "allocation", "capacity overflow", "unreachable"].iter().any(|mark| lower.contains(mark)) {
        return OUT_OF_MEMORY.to_owned();
    }
    let detail = error.trim();
    let detail = if detail.is_empty() { "no reason given" } else { detail };
    format!(
        "Reading this file stopped at an internal error ({detail}). That is a fault of Vramscope, not of your file: \
         please report it. vramscope report FILE may still read it."
    )
}

/// A sentence for a file that the browser stopped giving out.
pub fn unreadable(error: &str) -> String {
    format!("The browser can't read this file any more ({error}). Was it moved or changed? Open it again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_other_faults() {
        for error in ["memory: unreachable", "RangeError: Array buffer allocation failed", "RuntimeError: unreachable"]
        {
            assert!(sentence(error).contains("vramscope report"), "{error}");
            assert!(sentence(error).contains("4 GiB"), "{error}");
        }
        assert!(sentence("panicked at index 3").contains("index 3"));
        assert!(sentence("").contains("no reason given"));
    }
}
