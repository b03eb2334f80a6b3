//! The job that `vramscope watch` runs: its command line, its name, and the path on which its Python finds the agent.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::super::suggestion::did_you_mean;
use super::Watch;
use super::lookout::is_python;

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
        if is_module {
            return Ok(Self::Python { is_module, arguments: words });
        }
        if first.to_str().is_some_and(|word| word.starts_with('-')) {
            return Err(not_an_option(&first.to_string_lossy()));
        }
        let path = Path::new(first);
        let is_script = path.extension().is_some_and(|extension| extension == "py");
        if is_script && !path.is_file() {
            return Err(no_script(path));
        }
        // Python also runs a folder that has a `__main__.py`.
        if is_script || path.join("__main__.py").is_file() {
            return Ok(Self::Python { is_module, arguments: words });
        }
        match path_of(first) {
            Some(_) => Ok(Self::Other(words)),
            None => Err(not_a_program(path)),
        }
    }

    /// Returns whether its first word is a Python, or it runs in one.
    pub(super) fn is_python(&self) -> bool {
        match self {
            Self::Python { .. } => true,
            Self::Other(words) => words.first().is_some_and(|word| is_python(Path::new(word))),
        }
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

/// Returns the message for a word that looks like an option but is none of `watch`.
fn not_an_option(word: &str) -> String {
    if ["-c", "-u", "-O", "-W", "-X", "-"].contains(&word) {
        return format!("{word} is an option of Python. Name Python first: vramscope watch python {word} …");
    }
    let command = Watch::augment_args(clap::Command::new("watch"));
    let known = command.get_arguments().filter_map(|argument| argument.get_long());
    let meant = did_you_mean(word.trim_start_matches('-'), known).replace("mean ", "mean --");
    format!(
        "watch has no option {word}.{meant} Put the job's options after its program. vramscope watch --help lists the options of watch."
    )
}

/// Returns the message for a script that does not exist.
fn no_script(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "py"))
        .collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let meant = did_you_mean(&name, beside.iter().map(String::as_str));
    format!("There is no script {}.{meant}", path.display())
}

/// Returns the message for a word that is neither a script nor a program.
fn not_a_program(path: &Path) -> String {
    let shown = path.display();
    if path.is_dir() {
        return format!("{shown} is a folder without a file __main__.py. Name the script to run.");
    }
    if path.is_file() {
        return format!("{shown} is neither a Python script nor a program. A script's name ends in .py.");
    }
    format!(
        "{shown} is neither a script here nor a program on the PATH. Name a script or a program, or a module with -m."
    )
}

/// Returns the path of a program, looked up on the `PATH` if it names no folder; `None` if there is no such program.
fn path_of(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return is_program(path).then(|| path.to_owned());
    }
    let name = format!("{}{}", program.to_str()?, std::env::consts::EXE_SUFFIX);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(&name)).find(|path| is_program(path))
}

/// Returns whether a path is an executable file.
fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let may_run =
        |metadata: std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = |_: std::fs::Metadata| true;
    path.is_file() && path.metadata().is_ok_and(may_run)
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
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("train.py");
        std::fs::write(&script, "").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let script = script.display();
        for (is_module, line, wanted, name) in [
            (false, &*format!("{script} --lr 3"), &*format!("PY {script} --lr 3"), "train.py"),
            (true, "pkg.train --lr 3", "PY -m pkg.train --lr 3", "pkg.train"),
            (false, "sh --nproc-per-node 8 a/train.py x", "sh --nproc-per-node 8 a/train.py x", "train.py"),
            (false, "sh -c pass", "sh -c pass", "sh"),
            (false, "/usr/bin/env python3", "/usr/bin/env python3", "env"),
        ] {
            let program = Program::of(is_module, words(line)).unwrap();
            let command = program.command(Some(Path::new("PY"))).unwrap();
            let shown: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
            let shown = shown.join(OsStr::new(" "));
            assert_eq!((shown.to_str().unwrap(), program.name().as_str()), (wanted, name), "{line}");
        }
        let folder = folder.path().display();
        for (line, wanted) in [
            (String::new(), "Name a program".to_owned()),
            ("--budgt 1".to_owned(), "watch has no option --budgt. Did you mean --budget?".to_owned()),
            (
                "-u train.py".to_owned(),
                "-u is an option of Python. Name Python first: vramscope watch python -u".to_owned(),
            ),
            (format!("{folder}/trian.py"), format!("There is no script {folder}/trian.py. Did you mean train.py?")),
            (format!("{folder}"), format!("{folder} is a folder without a file __main__.py.")),
            (format!("{folder}/notes.txt"), format!("{folder}/notes.txt is neither a Python script nor a program.")),
            ("torchrn".to_owned(), "torchrn is neither a script here nor a program on the PATH.".to_owned()),
        ] {
            let error = Program::of(false, words(&line)).unwrap_err();
            assert!(error.starts_with(&wanted), "{line}: {error}");
        }
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
