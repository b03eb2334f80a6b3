//! What Yew uses of the library gloo: two of its eleven parts. The others (HTTP, workers, history, files, storage) take more
//! crates to compile than all the rest of the page, and none of them ends up in it. `Cargo.toml` of the workspace puts this crate in
//! gloo's place.
#![forbid(unsafe_code)]

pub use gloo_console as console;
pub use gloo_utils as utils;
