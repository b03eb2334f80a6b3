//! What a job runs: its command line, its name, and the path on which its Python finds the agent.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::suggestion::did_you_mean;

/// Characters of the part of a job's name that tells two runs of one program apart.
const ID_CHARS: usize = 5;
/// The characters of that part: none that look alike.
const ID_ALPHABET: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
/// The most bytes of a program's first line that are read: Linux reads as many.
const FIRST_LINE: u64 = 256;
/// The folder within the Python package whose `sitecustomize.py` attaches the agent where the package is not installed.
const SITE: &str = "vramscope/_site";

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Program {
    /// A Python script, or with `is_module` a module, with its arguments.
    Python { is_module: bool, arguments: Vec<OsString> },
    /// A program such as `torchrun`, with its arguments.
    Other(Vec<OsString>),
}

impl Program {
    /// Reads what `command` was given to run: its first word is a script, a module or a program. The error is a sentence for
    /// people.
    pub(in crate::cli) fn of(command: &clap::Command, is_module: bool, words: Vec<OsString>) -> Result<Self, String> {
        let name = command.get_name();
        let Some(first) = words.first() else {
            let what = if is_module { "a module" } else { "a program" };
            return Err(format!("Name {what} to run, such as: vramscope {name} train.py --epochs 3."));
        };
        if is_module {
            return Ok(Self::Python { is_module, arguments: words });
        }
        if first.to_str().is_some_and(|word| word.starts_with('-')) {
            return Err(not_an_option(command, &first.to_string_lossy()));
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
    pub(in crate::cli) fn is_python(&self) -> bool {
        match self {
            Self::Python { .. } => true,
            Self::Other(words) => words.first().is_some_and(|word| is_python(Path::new(word))),
        }
    }

    /// Returns the name that people call it by.
    pub(in crate::cli) fn name(&self) -> String {
        let words = self.words();
        // Of a launcher, the script says more: `torchrun --nproc-per-node 8 train.py`.
        let script = words.iter().find(|word| Path::new(word).extension() == Some(OsStr::new("py")));
        let word = script.or(words.first()).map(Path::new);
        let name = word.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| "job".to_owned())
    }

    /// Returns the Python that runs it: the one that was given, the one that it names itself, or the one on the `PATH`.
    pub(in crate::cli) fn python(&self, given: Option<&Path>) -> Result<PathBuf, String> {
        let named = match self {
            Self::Python { .. } => None,
            Self::Other(words) => words.first().and_then(|word| path_of(word)).and_then(|path| python_of(&path)),
        };
        given.map(Path::to_owned).or(named).map_or_else(default_python, Ok)
    }

    /// Returns it with each of its words replaced.
    pub(in crate::cli) fn with(&self, replace: impl FnMut(&OsString) -> OsString) -> Self {
        match self {
            Self::Python { is_module, arguments } => {
                Self::Python { is_module: *is_module, arguments: arguments.iter().map(replace).collect() }
            }
            Self::Other(words) => Self::Other(words.iter().map(replace).collect()),
        }
    }

    /// Returns the number that one of some options has, as `--nproc-per-node 8` or `--nproc_per_node=8`. The names are with `_`.
    pub(in crate::cli) fn number_of(&self, names: &[&str]) -> Option<u64> {
        let words = self.words().iter().map(|word| word.to_string_lossy().into_owned());
        let parts: Vec<String> =
            words.flat_map(|word| word.split('=').map(str::to_owned).collect::<Vec<_>>()).collect();
        let is_option = |word: &str| names.contains(&&*word.trim_start_matches('-').replace('-', "_"));
        let at = parts.iter().position(|word| word.starts_with("--") && is_option(word))?;
        parts.get(at + 1)?.parse().ok()
    }

    /// Returns its words.
    pub(in crate::cli) fn words(&self) -> &[OsString] {
        let (Self::Python { arguments: words, .. } | Self::Other(words)) = self;
        words
    }

    /// Returns the command that runs it. `python` was given, or is looked up on the `PATH`.
    pub(in crate::cli) fn command(&self, python: Option<&Path>) -> Result<Command, String> {
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
                let (program, arguments) = words.split_first().ok_or("Name a program to run.")?;
                let mut command = Command::new(program);
                command.args(arguments);
                Ok(command)
            }
        }
    }
}

/// Returns the message for a word that looks like an option but is none of `command`.
fn not_an_option(command: &clap::Command, word: &str) -> String {
    let name = command.get_name();
    if ["-c", "-u", "-O", "-W", "-X", "-"].contains(&word) {
        return format!("{word} is an option of Python. Name Python first: vramscope {name} python {word} …");
    }
    let known = command.get_arguments().filter_map(|argument| argument.get_long());
    let meant = did_you_mean(word.trim_start_matches('-'), known).replace("mean ", "mean --");
    format!(
        "{name} has no option {word}.{meant} Put the job's options after its program. vramscope {name} --help lists the \
         options of {name}."
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

/// Returns the Python that a program is, or that its first line names, as that of `torchrun` does.
fn python_of(program: &Path) -> Option<PathBuf> {
    if is_python(program) {
        return Some(program.to_owned());
    }
    let mut start = Vec::new();
    File::open(program).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let path = PathBuf::from(String::from_utf8_lossy(line).trim());
    (is_python(&path) && path.is_file()).then_some(path)
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
pub(in crate::cli) fn run_name(program: &str) -> Result<String, String> {
    let mut bytes = [0; ID_CHARS];
    getrandom::fill(&mut bytes).map_err(|error| format!("The system has no random numbers: {error}."))?;
    let letter = |byte: u8| char::from(ID_ALPHABET[usize::from(byte) % ID_ALPHABET.len()]);
    Ok(format!("{program}-{}", bytes.map(letter).iter().collect::<String>()))
}

/// Returns `PYTHONPATH` for a job whose package is not installed but on that path, as in a checkout: with the folder that
/// attaches the agent at its front. Returns `None` where nothing has to change.
pub(in crate::cli) fn python_path(path: Option<&OsStr>) -> Option<OsString> {
    let folders: Vec<PathBuf> = std::env::split_paths(path?).collect();
    let site = folders.iter().map(|folder| folder.join(SITE)).find(|site| site.join("sitecustomize.py").is_file())?;
    std::env::join_paths(std::iter::once(site).chain(folders)).ok()
}

/// Returns whether a program's name is that of a Python, such as `python3.13`.
pub(in crate::cli) fn is_python(program: &Path) -> bool {
    let name = program.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let rest = name
        .as_deref()
        .map(|name| name.strip_suffix(".exe").unwrap_or(name))
        .and_then(|name| name.strip_prefix("python"));
    rest.is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit() || ".t".contains(letter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    #[test]
    fn scripts_and_modules_run_with_python_and_everything_else_as_it_is() {
        let watch = clap::Command::new("watch").arg(clap::Arg::new("budget").long("budget"));
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
            let program = Program::of(&watch, is_module, words(line)).unwrap();
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
            let error = Program::of(&watch, false, words(&line)).unwrap_err();
            assert!(error.starts_with(&wanted), "{line}: {error}");
        }
    }

    #[test]
    fn a_python_is_known_by_its_name() {
        for (name, wanted) in [
            ("/usr/bin/python3.13", true),
            ("python", true),
            ("python3.13t", true),
            ("Python.exe", true),
            ("python-config", false),
            ("torchrun", false),
        ] {
            assert_eq!(is_python(Path::new(name)), wanted, "{name}");
        }
    }

    #[test]
    fn a_launcher_says_how_many_processes_it_starts() {
        for (line, wanted) in [
            ("torchrun --nproc-per-node 8 a.py", Some(8)),
            ("torchrun --nproc_per_node=2 a.py --lr=3", Some(2)),
            ("torchrun --nproc-per-node gpu a.py", None),
            ("torchrun a.py --lr 3", None),
            ("torchrun --nproc-per-node", None),
        ] {
            assert_eq!(Program::Other(words(line)).number_of(&["nproc_per_node"]), wanted, "{line}");
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
