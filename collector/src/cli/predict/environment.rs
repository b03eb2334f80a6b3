//! The Python that runs the program, and the variables with which it runs without a GPU: that Python is asked for them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::destination::TO_VARIABLE;
use super::super::job::{Recorder, answer, ask_and_mend, python_path};

/// The longest time that making the libraries in place of NVIDIA's may take, on a slow file system.
const ANSWER: Duration = Duration::from_secs(120);
/// The longest time that a download may take.
const DOWNLOAD: Duration = Duration::from_secs(3600);
/// What the Python is asked.
const QUESTION: &str = "from vramscope._predict import prepare; prepare.main()";
/// What precedes its answer.
const MARK: &str = "vramscope:";
/// Variables of the surroundings that the program must not see: they choose among GPUs of this machine, or send what is recorded
/// to a server.
const HIDDEN: [&str; 4] = ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", TO_VARIABLE, "VRAMSCOPE_JOB"];

/// A Python that can run a program without a GPU.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    pub(super) python: PathBuf,
    /// The version of PyTorch, such as `2.11.0+cu130`.
    pub(super) torch: String,
    variables: BTreeMap<OsString, OsString>,
}

/// What the Python answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Ready { torch: String, variables: BTreeMap<String, String> },
    Impossible { error: String },
}

/// What it answers when it has made an environment.
#[derive(Deserialize)]
#[serde(untagged)]
enum Made {
    Ready { python: PathBuf },
    Impossible { error: String },
}

impl Environment {
    /// Asks a Python. The error is a sentence for people.
    pub(super) fn of(python: PathBuf) -> Result<Self, String> {
        let variables = recorder_of(&python)?;
        Self::with(python, variables)
    }

    /// Asks a Python for an environment of a PyTorch release, which it makes if there is none yet. The error is a sentence for
    /// people.
    pub(super) fn with_release(python: &Path, release: &str) -> Result<Self, String> {
        let variables = recorder_of(python)?;
        let mut command = Command::new(python);
        command.args(["-m", "vramscope._predict.install", release]).envs(&variables);
        match read(&asked(&mut command, DOWNLOAD)) {
            Some(Made::Ready { python }) => Self::with(python, variables),
            Some(Made::Impossible { error }) => Err(format!("--torch: {error}")),
            None => Err(format!("--torch {release}: {} made no environment.", python.display())),
        }
    }

    fn with(python: PathBuf, mut variables: BTreeMap<OsString, OsString>) -> Result<Self, String> {
        let shown = python.display();
        let mut command = Command::new(&python);
        command.args(["-c", QUESTION]).envs(&variables);
        match read(&asked(&mut command, ANSWER)) {
            Some(Answer::Ready { torch, variables: more }) => {
                variables.extend(more.into_iter().map(|(name, value)| (name.into(), value.into())));
                Ok(Self { python, torch, variables })
            }
            Some(Answer::Impossible { error }) => Err(error),
            None => Err(format!(
                "{shown} does not say how it runs a program without a GPU. Is its package vramscope of this version? Install it \
                 again with: {shown} -m pip install vramscope"
            )),
        }
    }

    /// Sets a command's variables.
    pub(super) fn set(&self, command: &mut Command) {
        for name in HIDDEN {
            command.env_remove(name);
        }
        command.envs(&self.variables);
    }
}

/// Returns the variables with which a Python starts the recorder. The error is a sentence for people.
fn recorder_of(python: &Path) -> Result<BTreeMap<OsString, OsString>, String> {
    let shown = python.display();
    let mut asked = Command::new(python);
    if let Some(path) = python_path(std::env::var_os("PYTHONPATH").as_deref()) {
        asked.env("PYTHONPATH", path);
    }
    match ask_and_mend(&mut asked) {
        Recorder::Starts => Ok(set_of(&asked)),
        Recorder::Missing | Recorder::Idle(_) => {
            Err(format!("{shown} has no package vramscope. Install it with: {shown} -m pip install vramscope"))
        }
        Recorder::Unknown => Err(format!("{shown} does not run as a Python. Name another one with --python.")),
    }
}

/// Returns what a Python prints; nothing if it fails, or takes longer than `within`. Its errors are shown.
fn asked(command: &mut Command, within: Duration) -> String {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    answer(command, within).unwrap_or_default()
}

/// Returns the variables that are set for a command.
fn set_of(command: &Command) -> BTreeMap<OsString, OsString> {
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    set.map(|(name, value): (&OsStr, &OsStr)| (name.to_owned(), value.to_owned())).collect()
}

fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(MARK))?;
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_marked_line_is_the_answer() {
        let text =
            "a banner\nvramscope:no\n\nvramscope:{\"torch\": \"2.11.0\", \"variables\": {\"LD_PRELOAD\": \"a\"}}\n";
        assert!(
            matches!(read(text), Some(Answer::Ready { torch, variables }) if torch == "2.11.0" && variables.len() == 1)
        );
        assert!(matches!(read("vramscope:{\"error\": \"No.\"}"), Some(Answer::Impossible { error }) if error == "No."));
        assert!(read::<Answer>("Traceback (most recent call last):").is_none());
    }
}
