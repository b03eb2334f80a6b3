//! The job that `vramscope watch` runs: its command line, its name, and what it is told.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Characters of the part of a job's name that tells two runs of one program apart.
const ID_CHARS: usize = 5;
/// The characters of that part: none that look alike.
const ID_ALPHABET: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
/// The folder within the Python package whose `sitecustomize.py` attaches the agent where the package is not installed.
const SITE: &str = "vramscope/_site";

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// A Python script, or with `is_module` a module, with its arguments.
    Python { is_module: bool, arguments: Vec<OsString> },
    /// A program such as `torchrun`, with its arguments.
    Other(Vec<OsString>),
}

impl Program {
    /// Reads a command line, whose first word is a script, a module or a program. The error is a sentence for people.
    pub(super) fn of(is_module: bool, words: Vec<OsString>) -> Result<Self, String> {
        let Some(first) = words.first() else {
            let what = if is_module { "a module" } else { "a program" };
            return Err(format!("Name {what} to watch, such as: vramscope watch train.py --epochs 3."));
        };
        let path = Path::new(first);
        if is_module || path.extension().is_some_and(|extension| extension == "py") {
            return Ok(Self::Python { is_module, arguments: words });
        }
        // A folder or an archive that Python can run, as `python FOLDER` does.
        if path.join("__main__.py").is_file() {
            return Ok(Self::Python { is_module, arguments: words });
        }
        Ok(Self::Other(words))
    }

    /// Returns the name that people call it by.
    pub(super) fn name(&self) -> String {
        let (Self::Python { arguments: words, .. } | Self::Other(words)) = self;
        // Of a launcher, the script says more: `torchrun --nproc-per-node 8 train.py`.
        let script = words.iter().find(|word| Path::new(word).extension() == Some(OsStr::new("py")));
        let word = script.or(words.first()).map(Path::new);
        let name = word.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| "job".to_owned())
    }

    /// Returns the command that runs it. `python` was given, or is looked up on the `PATH`.
    pub(super) fn command(&self, python: Option<&Path>) -> Result<Command, String> {
        match self {
            Self::Python { is_module, arguments } => {
                let mut command = Command::new(python.map_or_else(default_python, |python| Ok(python.to_owned()))?);
                if *is_module {
                    command.arg("-m");
                }
                command.args(arguments);
                Ok(command)
            }
            Self::Other(words) => {
                let (program, arguments) = words.split_first().ok_or("Name a program to watch.")?;
                let mut command = Command::new(program);
                command.args(arguments);
                Ok(command)
            }
        }
    }
}

/// Returns the Python of the active environment: the first `python` or `python3` on the `PATH`.
fn default_python() -> Result<PathBuf, String> {
    let names = ["python", "python3"].map(|name| format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = names.iter().find_map(|name| {
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
    });
    found
        .ok_or_else(|| "There is no python on the PATH. Activate an environment, or name one with --python.".to_owned())
}

/// Returns a name for a run of a program: the program's, and a part that tells runs apart.
pub(super) fn run_name(program: &str) -> Result<String, String> {
    let mut bytes = [0; ID_CHARS];
    getrandom::fill(&mut bytes).map_err(|error| format!("The system has no random numbers: {error}."))?;
    let letter = |byte: u8| char::from(ID_ALPHABET[usize::from(byte) % ID_ALPHABET.len()]);
    Ok(format!("{program}-{}", bytes.map(letter).iter().collect::<String>()))
}

/// Returns `PYTHONPATH` for a job whose package is not installed but on that path, as in a checkout: with the folder that
/// attaches the agent at its front. Returns `None` where nothing has to change.
pub(super) fn python_path(path: Option<&OsStr>) -> Option<OsString> {
    let folders: Vec<PathBuf> = std::env::split_paths(path?).collect();
    let site = folders.iter().map(|folder| folder.join(SITE)).find(|site| site.join("sitecustomize.py").is_file())?;
    std::env::join_paths(std::iter::once(site).chain(folders)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    #[test]
    fn scripts_and_modules_run_with_python_and_everything_else_as_it_is() {
        for (is_module, line, wanted, name) in [
            (false, "train.py --lr 3", "PY train.py --lr 3", "train.py"),
            (false, "jobs/train.py", "PY jobs/train.py", "train.py"),
            (true, "pkg.train --lr 3", "PY -m pkg.train --lr 3", "pkg.train"),
            (false, "torchrun --nproc-per-node 8 a/train.py x", "torchrun --nproc-per-node 8 a/train.py x", "train.py"),
            (false, "python3 -c pass", "python3 -c pass", "python3"),
            (false, "/usr/bin/env python3", "/usr/bin/env python3", "env"),
        ] {
            let program = Program::of(is_module, words(line)).unwrap();
            let command = program.command(Some(Path::new("PY"))).unwrap();
            let shown: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
            let shown = shown.join(OsStr::new(" "));
            assert_eq!((shown.to_str().unwrap(), program.name().as_str()), (wanted, name), "{line}");
        }
        assert!(Program::of(false, Vec::new()).unwrap_err().starts_with("Name a program"));
    }

    #[test]
    fn runs_of_one_program_have_different_names() {
        let (a, b) = (run_name("train.py").unwrap(), run_name("train.py").unwrap());
        assert!(a != b && a.starts_with("train.py-") && a.len() == "train.py-".len() + ID_CHARS, "{a} {b}");
    }

    #[test]
    fn a_package_on_the_path_is_attached_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().join(SITE);
        let path = std::env::join_paths([Path::new("/other"), folder.path()]).unwrap();
        assert_eq!(python_path(Some(&path)), None, "there is no such package");
        std::fs::create_dir_all(&site).unwrap();
        std::fs::write(site.join("sitecustomize.py"), "").unwrap();
        let with = python_path(Some(&path)).unwrap();
        assert_eq!(std::env::split_paths(&with).next(), Some(site));
        assert_eq!(python_path(None), None);
    }
}
