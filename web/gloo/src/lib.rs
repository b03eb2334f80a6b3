//! What Yew and its executor use of the library gloo: three of its eleven parts. The others (HTTP, workers, history, files, storage)
//! bring in eighteen crates, and none of them ends up in the page. The workspace's `Cargo.toml` puts this crate in gloo's place.
#![forbid(unsafe_code)]

pub use gloo_console as console;
pub use gloo_timers as timers;
pub use gloo_utils as utils;
