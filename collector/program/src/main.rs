//! The `vramscope` program, with its page.

use std::process::ExitCode;

use vramscope::assets::Asset;

/// The files of the page, sorted by path; none if it was left out.
static PAGE: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

fn main() -> ExitCode {
    vramscope::cli::main(PAGE)
}
