//! Looks, while a job runs, whether its Python has started the recorder, and says so if it has not.
//!
//! Which Python a launcher or a shell script runs is known only once it runs. Only Linux tells: elsewhere nothing is said
//! before the job's end.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::stage::{Stage, Stages};
use crate::cli::job::is_python;

/// How long a Python may run before it should have started the recorder, which is among the first things that it does.
const PATIENCE: Duration = Duration::from_secs(3);
/// The time between two looks, at first and at most.
const LOOK: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// The most processes of a job that are looked at.
const MOST: usize = 256;

/// Looks until it is dropped.
pub(super) struct Lookout(#[allow(dead_code, reason = "its end is the signal")] Sender<()>);

impl Lookout {
    /// Looks at a process and those that it starts. Calls `warn` once, with the Python and its process, if there is cause.
    pub(super) fn start(root: u32, stages: Arc<Stages>, warn: impl FnOnce(&Path, u32) + Send + 'static) -> Self {
        let (sender, ended) = channel();
        thread::spawn(move || {
            let mut seen = HashMap::new();
            let mut pause = LOOK.0;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                if stages.reached() > Stage::Absent {
                    return;
                }
                let pythons = pythons(Path::new("/proc"), root);
                // Once a Python runs, the answer is near.
                pause = if pythons.is_empty() { (pause * 2).min(LOOK.1) } else { LOOK.0 };
                if let Some((python, pid)) = overdue(&mut seen, pythons, Instant::now()) {
                    warn(&python, pid);
                    return;
                }
            }
        });
        Self(sender)
    }
}

/// Returns a Python that has run for longer than [`PATIENCE`], of those that run at the time `now`.
fn overdue(seen: &mut HashMap<u32, Instant>, pythons: Vec<(PathBuf, u32)>, now: Instant) -> Option<(PathBuf, u32)> {
    seen.retain(|pid, _| pythons.iter().any(|(_, there)| there == pid));
    pythons.into_iter().find(|(_, pid)| now.duration_since(*seen.entry(*pid).or_insert(now)) > PATIENCE)
}

/// Returns the processes that run a Python: `root` or those below it, by what `proc` tells.
fn pythons(proc: &Path, root: u32) -> Vec<(PathBuf, u32)> {
    let place = |pid: &str| fs::read_link(proc.join(pid).join("ns/mnt")).ok();
    let own = place("self");
    let (mut found, mut waiting, mut looked) = (Vec::new(), vec![root], 0);
    while let Some(pid) = waiting.pop() {
        looked += 1;
        if looked > MOST {
            break;
        }
        let folder = proc.join(pid.to_string());
        // In a container, the recorder could not leave its files here.
        let is_here = place(&pid.to_string()) == own;
        let program = fs::read_link(folder.join("exe")).ok().filter(|program| is_here && is_python(program));
        found.extend(program.map(|program| (called(&folder).unwrap_or(program), pid)));
        for thread in fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
    }
    found
}

/// Returns the Python that a process was started as, if that can be told. The program that runs is the one which a virtual
/// environment refers to, and the environment has the packages.
fn called(process: &Path) -> Option<PathBuf> {
    let line = fs::read(process.join("cmdline")).ok()?;
    let word = String::from_utf8_lossy(line.split(|byte| *byte == 0).next()?).into_owned();
    Some(PathBuf::from(word)).filter(|program| is_python(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_has_some_time_to_start() {
        let (mut seen, begun) = (HashMap::new(), Instant::now());
        let here = |pid| vec![(PathBuf::from("python3"), pid)];
        assert_eq!(overdue(&mut seen, here(7), begun), None);
        assert_eq!(overdue(&mut seen, here(7), begun + PATIENCE), None);
        // One that ended, and another one.
        assert_eq!(overdue(&mut seen, here(8), begun + PATIENCE * 2), None);
        assert_eq!(overdue(&mut seen, here(8), begun + PATIENCE * 4), Some(("python3".into(), 8)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_processes_below_one_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let proc = folder.path();
        let process = |pid: &str, program: &str, namespace: &str, children: &str| {
            let task = proc.join(pid).join("task").join(pid);
            fs::create_dir_all(&task).unwrap();
            fs::create_dir_all(proc.join(pid).join("ns")).unwrap();
            std::os::unix::fs::symlink(program, proc.join(pid).join("exe")).unwrap();
            std::os::unix::fs::symlink(namespace, proc.join(pid).join("ns/mnt")).unwrap();
            fs::write(task.join("children"), children).unwrap();
        };
        process("self", "vramscope", "mnt:1", "");
        process("10", "/bin/sh", "mnt:1", "11 12 ");
        process("11", "/base/bin/python3.12", "mnt:1", "");
        process("12", "/usr/bin/conmon", "mnt:1", "13");
        process("13", "/usr/bin/python3", "mnt:2", "");
        process("14", "/usr/bin/python3", "mnt:1", "");
        assert_eq!(pythons(proc, 10), [("/base/bin/python3.12".into(), 11)]);
        fs::write(proc.join("11/cmdline"), "/env/bin/python\0job.py\0").unwrap();
        assert_eq!(pythons(proc, 10), [("/env/bin/python".into(), 11)], "the environment's");
    }
}
