//! Asks a Python, before the job runs in it, whether it starts the recorder.

use std::ffi::OsStr;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::WATCHED_VARIABLE;
use super::program::python_path;

/// The longest time that a Python has to answer. The job starts later by what it takes.
const ANSWER: Duration = Duration::from_secs(5);
/// The time between two looks at it.
const LOOK: Duration = Duration::from_millis(5);
/// The variable with the folders that Python imports from.
const PATH_VARIABLE: &str = "PYTHONPATH";
/// What precedes the answer, since a program that starts Python may print something as well.
const MARK: &str = "vramscope:";
/// What Python is asked. A script has its own folder on its path instead of the current one.
const QUESTION: &str = "\
import sys
if sys.path[:1] == ['']: del sys.path[0]
answer = 'none'
if getattr(sys.modules.get('vramscope._environment'), '_is_called', False):
    answer = 'started'
else:
    import importlib.util
    found = importlib.util.find_spec('vramscope')
    if found is not None and found.origin:
        answer = 'package ' + found.origin
print('\\nvramscope:' + answer)
";
/// Flags of Python that take no value and leave the question as it is; some decide whether packages are loaded at its start.
const FLAGS: &str = "bBdEIOPqsSuv";

/// What a Python answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Recorder {
    /// It starts the recorder.
    Starts,
    /// It has the package, whose `__init__.py` is this file, but does not load the recorder when it starts.
    Idle(PathBuf),
    /// It has no package.
    Missing,
    /// It could not be asked, or gave no answer.
    Unknown,
}

/// Asks the Python that `job` runs, in the job's environment.
pub(in crate::cli) fn ask(job: &Command) -> Recorder {
    let flags = job.get_args().take_while(|word| is_flag(word));
    let mut command = Command::new(job.get_program());
    command.args(flags).args(["-c", QUESTION]);
    for (name, value) in job.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // What it starts is not the job.
    command.env_remove(WATCHED_VARIABLE).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    answer(&mut command, ANSWER).as_deref().map_or(Recorder::Unknown, read)
}

/// Asks like [`ask`], and if the package only lacks its start, adds the folder to `job`'s path that makes up for that.
pub(in crate::cli) fn ask_and_mend(job: &mut Command) -> Recorder {
    let first = ask(job);
    let Recorder::Idle(file) = &first else { return first };
    let Some(folder) = file.parent().and_then(|package| package.parent()) else { return first };
    let set = job.get_envs().find(|(name, _)| *name == OsStr::new(PATH_VARIABLE)).map(|(_, value)| value);
    let before = set.map_or_else(|| std::env::var_os(PATH_VARIABLE), |value| value.map(OsStr::to_owned));
    let mut folders = vec![folder.to_owned()];
    folders.extend(before.as_deref().into_iter().flat_map(std::env::split_paths));
    let path = std::env::join_paths(folders).ok();
    let Some(path) = python_path(path.as_deref()) else { return first };
    job.env(PATH_VARIABLE, path);
    let second = ask(job);
    if second != Recorder::Starts {
        match before {
            Some(before) => job.env(PATH_VARIABLE, before),
            None => job.env_remove(PATH_VARIABLE),
        };
    }
    second
}

fn is_flag(word: &OsStr) -> bool {
    let letters = word.to_str().and_then(|word| word.strip_prefix('-'));
    letters.is_some_and(|letters| !letters.is_empty() && letters.chars().all(|letter| FLAGS.contains(letter)))
}

/// Returns what a command printed, if it ended well and within a time. It prints little: only as much as a pipe holds is read.
pub(in crate::cli) fn answer(command: &mut Command, within: Duration) -> Option<String> {
    let mut child = command.spawn().ok()?;
    let begun = Instant::now();
    loop {
        match child.try_wait().ok()? {
            Some(status) if status.success() => break,
            Some(_) => return None,
            None if begun.elapsed() > within => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => thread::sleep(LOOK),
        }
    }
    let mut text = Vec::new();
    child.stdout.take()?.read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn read(text: &str) -> Recorder {
    match text.lines().find_map(|line| line.strip_prefix(MARK)) {
        Some("started") => Recorder::Starts,
        Some("none") => Recorder::Missing,
        Some(answer) => answer.strip_prefix("package ").map_or(Recorder::Unknown, |file| Recorder::Idle(file.into())),
        None => Recorder::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        for (text, wanted) in [
            ("a banner\n\nvramscope:started\n", Recorder::Starts),
            ("\nvramscope:none\n", Recorder::Missing),
            ("\nvramscope:package /a b/__init__.py\n", Recorder::Idle("/a b/__init__.py".into())),
            ("job.py: no such option -c\n", Recorder::Unknown),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        for (word, wanted) in [("-S", true), ("-uE", true), ("-", false), ("-c", false), ("-m", false), ("S", false)] {
            assert_eq!(is_flag(OsStr::new(word)), wanted, "{word}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_is_no_python_gives_no_answer() {
        assert_eq!(ask(&Command::new("true")), Recorder::Unknown);
        assert_eq!(ask(&Command::new("/nowhere/python")), Recorder::Unknown);
    }
}
