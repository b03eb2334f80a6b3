//! The streams that the command line writes to. All of its lines go through here or through [`super::message`], which leave no
//! character on a terminal that it would obey; `clippy` refuses the other ways to print.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use trace::text::escaped_lines;

use super::message::refuse;
use super::{style, width};
use recorder::disk;

/// A stream to which everything is written as [`sealed`] returns it. A call must not end within a character.
pub(super) struct Sealed<W>(pub(super) W);

impl<W: Write> Write for Sealed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(escaped_lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes to standard output. If its reader has closed it (`| head`), exits silently; any other failure is
/// printed.
pub(super) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitCode {
    let mut out = Sealed(io::BufWriter::new(io::stdout().lock()));
    finished(write(&mut out).and_then(|()| out.flush()))
}

/// Returns the exit code for what came of writing to standard output.
fn finished(written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            let why = disk::why(&error);
            refuse(&format!("Writing to standard output failed: {why}. Make room, or write to another place."))
        }
    }
}

/// Prints JSON for programs.
pub(super) fn print_json(value: &impl Serialize) -> ExitCode {
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// Prints a text for people. On a terminal, its long lines are folded, and what leads a line has its color, unless `NO_COLOR` is
/// set.
pub(super) fn show(text: &str) -> ExitCode {
    let Some(width) = width::of_output() else { return print(|out| out.write_all(text.as_bytes())) };
    let text = style::styled(&width::folded(&escaped_lines(text), width));
    let mut out = anstream::AutoStream::auto(io::stdout()).lock();
    finished(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints JSON for programs, or a text for people.
pub(super) fn show_as(is_json: bool, text: &str) -> ExitCode {
    if is_json { print(|out| out.write_all(text.as_bytes())) } else { show(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_as_text_however_it_comes() {
        let mut out = Sealed(Vec::new());
        out.write_all("a \x1b[2J\u{202e}\n".as_bytes()).unwrap();
        serde_json::to_writer(&mut out, &["\x1b\u{9b}é\u{e0041}"]).unwrap();
        let text = String::from_utf8(out.0).unwrap();
        assert_eq!(text, "a \\u001b[2J\\u202e\n[\"\\u001b\\u009bé\\udb40\\udc41\"]");
    }
}
