//! The `vramscope` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    vramscope::cli::main()
}
