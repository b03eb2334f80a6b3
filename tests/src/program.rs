//! The built program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::{artifact, workspace};

/// Names a program that is already built, to be tested instead.
const PROGRAM_VARIABLE: &str = "VRAMSCOPE_PROGRAM";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Returns the path of the program.
pub fn path() -> Result<&'static Path> {
    if let Some(path) = PROGRAM.get() {
        return Ok(path);
    }
    let path = match std::env::var_os(PROGRAM_VARIABLE) {
        Some(path) => workspace("").join(path),
        None => artifact(Path::new("vramscope").with_extension(std::env::consts::EXE_EXTENSION))?,
    };
    ensure!(path.is_file(), "no program is at {}", path.display());
    Ok(PROGRAM.get_or_init(|| path))
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
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        python.env_remove(name);
    }
    python.env("TERM", "xterm").envs(variables.iter().copied());
    Ok(String::from_utf8_lossy(&python.output()?.stdout).into_owned())
}
