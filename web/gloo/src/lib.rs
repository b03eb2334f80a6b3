//! What Yew and its executor use of the library gloo: three of its eleven parts. The others (HTTP, workers, history, files, storage)
//! bring in seventeen crates more, and none of them ends up in the page. The workspace's `Cargo.toml` puts this crate in gloo's place.
#![forbid(unsafe_code)]

pub use gloo_timers as timers;
pub use gloo_utils as utils;

/// Messages on the browser's console.
pub mod console {
    /// Writes nothing: right after its only message, Yew panics with the same words, which the page shows.
    #[macro_export]
    macro_rules! silent {
        ($($part:expr),*) => {
            let _ = ($(&$part),*);
        };
    }

    pub use silent as error;
}
