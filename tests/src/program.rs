//! The built program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Names a program that is already built, to be tested instead.
const PROGRAM_VARIABLE: &str = "VRAMSCOPE_PROGRAM";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Where the program is. Cargo builds a package's programs only for that package's own tests, so the first caller
/// builds it.
pub fn path() -> Result<&'static Path> {
    if let Some(path) = PROGRAM.get() {
        return Ok(path);
    }
    let path = match std::env::var_os(PROGRAM_VARIABLE) {
        Some(path) => workspace("").join(path),
        None => build()?,
    };
    ensure!(path.is_file(), "no program is at {}", path.display());
    Ok(PROGRAM.get_or_init(|| path))
}

/// Returns Cargo, to build something in the workspace. It runs as if a person had started it: the variables that Cargo sets
/// for a test would make build scripts run again, and everything after them.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let is_own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_own)) {
        cargo.env_remove(name);
    }
    cargo.current_dir(workspace(""));
    cargo
}

/// Builds the program in the profile of the tests themselves.
fn build() -> Result<PathBuf> {
    let mut cargo = cargo();
    // Of the whole workspace and beside a test, so that Cargo selects the features that the tests were built with: with others it
    // would build most crates again, which takes minutes.
    cargo.args(["build", "--quiet", "--workspace", "--bin", "vramscope", "--test", "guide"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    ensure!(cargo.status().context("starting cargo")?.success(), "the program did not build");
    // This test is at PROFILE/deps/NAME, the program beside `deps`.
    let test = std::env::current_exe()?;
    let profile = test.ancestors().nth(2).context("the tests run outside a target folder")?;
    Ok(profile.join("vramscope").with_extension(std::env::consts::EXE_EXTENSION))
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Result<Output> {
    Command::new(path()?).args(arguments).output().context("running the program")
}

/// Runs the program on a terminal of some columns, and returns all that it wrote there.
pub fn on_terminal(columns: u16, arguments: &[&str], variables: &[(&str, &str)]) -> Result<String> {
    const PTY: &str = r"
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 40, int(sys.argv[1]), 0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    sys.stdout.buffer.write(piece)
";
    let mut python = Command::new("python3");
    python.args(["-c", PTY, &columns.to_string()]).arg(path()?).args(arguments);
    python.env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
    Ok(String::from_utf8_lossy(&python.output()?.stdout).into_owned())
}
