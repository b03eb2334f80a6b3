//! What a command is doing, in a line on standard error that rewrites itself: for everything that takes longer than a second,
//! and on a terminal only.
//!
//! A [`Progress`] says what is done for as long as it lives. A thread paints the line, so that work which never reports
//! is shown as well, with the seconds that it has taken. Whatever else is printed goes through [`above`], so that no line
//! begins in the middle of another.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use trace::text::escaped;
use trace::units::Bytes;

use super::width;

/// How long something takes before it is shown: what is over at once needs no line.
const PATIENCE: Duration = Duration::from_millis(700);
/// The time between two updates of the line.
const LOOK: Duration = Duration::from_millis(100);

/// What is being done, the innermost last.
static TASKS: Mutex<Tasks> = Mutex::new(Tasks { all: Vec::new(), next: 0, is_painted: false });
static PAINTER: Once = Once::new();

struct Tasks {
    all: Vec<Task>,
    next: u64,
    is_painted: bool,
}

struct Task {
    id: u64,
    text: String,
    begun: Instant,
}

/// Something that may take long. Its line is gone when it is dropped.
pub(super) struct Progress {
    /// `None` where nobody would see it.
    id: Option<u64>,
}

impl Progress {
    /// Begins something: `Reading a.pickle`.
    pub(super) fn new(text: impl Display) -> Self {
        if !is_visible() {
            return Self { id: None };
        }
        PAINTER.call_once(|| {
            // Without the thread there is no line, and nothing else is missing.
            let _ = thread::Builder::new().name("vramscope-progress".to_owned()).spawn(paint);
        });
        let id = locked(|tasks| {
            tasks.next += 1;
            tasks.all.push(Task { id: tasks.next, text: text.to_string(), begun: Instant::now() });
            tasks.next
        });
        Self { id: Some(id) }
    }

    /// Whether anybody would see it.
    pub(super) fn is_visible(&self) -> bool {
        self.id.is_some()
    }

    /// Replaces the text. Costs nothing where nobody would see it.
    pub(super) fn show(&self, text: impl FnOnce() -> String) {
        let Some(id) = self.id else { return };
        let text = text();
        locked(|tasks| {
            if let Some(step) = tasks.all.iter_mut().find(|step| step.id == id) {
                step.text = text;
            }
        });
    }

    /// Shows how many of all bytes are done: `Sent 40 % of 1.20 GiB`.
    pub(super) fn bytes(&self, verb: &str, done: u64, all: u64) {
        self.show(|| {
            let percent = done.saturating_mul(100).checked_div(all).unwrap_or(100).min(100);
            format!("{verb} {percent} % of {}", Bytes(all))
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        locked(|tasks| {
            tasks.all.retain(|step| step.id != id);
            clear(tasks);
        });
    }
}

/// Prints with the line out of the way.
pub(super) fn above(print: impl FnOnce()) {
    locked(|tasks| {
        clear(tasks);
        print();
    });
}

fn locked<T>(work: impl FnOnce(&mut Tasks) -> T) -> T {
    work(&mut TASKS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether a person sees standard error, on a terminal that can rewrite a line.
fn is_visible() -> bool {
    static VISIBLE: OnceLock<bool> = OnceLock::new();
    *VISIBLE.get_or_init(|| {
        io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
    })
}

fn paint() {
    loop {
        thread::sleep(LOOK);
        locked(|tasks| {
            let Some(step) = tasks.all.last().filter(|step| step.begun.elapsed() >= PATIENCE) else { return };
            let line = line(&step.text, step.begun.elapsed(), width::of_errors());
            tasks.is_painted = true;
            write(&format!("\r\x1b[K{line}"));
        });
    }
}

/// Returns the line, not longer than the terminal is wide: a longer one could not be rewritten.
fn line(text: &str, taken: Duration, width: usize) -> String {
    let taken = match taken.as_secs() {
        0 => String::new(),
        seconds => format!(", {seconds} s"),
    };
    let room = width.saturating_sub(taken.len() + 1);
    let text = escaped(text);
    match text.chars().count() > room {
        true => text.chars().take(room.saturating_sub(1)).chain(['…']).collect::<String>() + &taken,
        false => text.into_owned() + &taken,
    }
}

fn clear(tasks: &mut Tasks) {
    if std::mem::take(&mut tasks.is_painted) {
        write("\r\x1b[K");
    }
}

fn write(text: &str) {
    let mut out = io::stderr().lock();
    // Nothing depends on it.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_the_terminal_and_tells_whole_seconds() {
        for (text, millis, width, want) in [
            ("Reading a", 800, 40, "Reading a"),
            ("Reading a", 2_300, 40, "Reading a, 2 s"),
            ("Reading a.pickle", 2_300, 16, "Reading a…, 2 s"),
            ("Reading a\nb", 0, 80, "Reading a\\u{a}b"),
            ("Reading", 1_000, 3, "…, 1 s"),
        ] {
            assert_eq!(line(text, Duration::from_millis(millis), width), want);
        }
    }
}
