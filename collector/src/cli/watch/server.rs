//! The server that `vramscope watch` sends to: one that runs, or a new one in the background.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::announcement::{Announcement, state_folder};
use recorder::disk;

/// The longest time in which a new server has to answer.
const START: Duration = Duration::from_secs(10);
/// The time between two looks at a new server.
const LOOK: Duration = Duration::from_millis(20);
/// The file in the state folder for what background servers say.
const LOG: &str = "server.log";
/// Bytes of that file from which on it begins anew.
const LOG_BYTES: u64 = 4 << 20;
/// Bytes of the log's end that tell why a server did not start.
const TAIL_BYTES: i64 = 2_000;

/// The server.
pub(super) struct Server {
    /// Its address: `http://127.0.0.1:7070`.
    pub(super) address: String,
    /// Its process, if it was started here.
    started: Option<Child>,
}

impl Server {
    /// Returns the server at an address that was given, the newest one of this user that runs on this machine, or a new one.
    pub(super) fn find_or_start(given: Option<String>) -> Result<Self, String> {
        if let Some(address) = given {
            return Ok(Self { address, started: None });
        }
        let state = state_folder()
            .ok_or("The variable HOME is not set, so no running server can be found. Name one with --to.")?;
        match Announcement::newest(&state)? {
            Some(found) => Ok(Self { address: found.address, started: None }),
            None => Self::start(&state),
        }
    }

    /// Starts a server that outlives this program.
    fn start(state: &Path) -> Result<Self, String> {
        let failed = |what: &dyn std::fmt::Display| {
            format!(
                "No server runs, and none could be started: {what}. Start one with vramscope serve, or name one with --to."
            )
        };
        fs::create_dir_all(state).map_err(|error| failed(&error))?;
        let path = state.join(LOG);
        if fs::metadata(&path).is_ok_and(|log| log.len() > LOG_BYTES) {
            let _ = fs::remove_file(&path);
        }
        let mut options = File::options();
        options.create(true).append(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let log = || options.open(&path);
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut child = Command::new(program)
            .args(["serve", "--background", "--log", "warn"])
            // They are for the job. The server must not require a token that only this job has.
            .env_remove("VRAMSCOPE_TOKEN")
            .stdin(Stdio::null())
            .stdout(log().map_err(|error| failed(&error))?)
            .stderr(log().map_err(|error| failed(&error))?)
            .spawn()
            .map_err(|error| failed(&error))?;
        let begun = Instant::now();
        while begun.elapsed() < START {
            let found = Announcement::newest(state).ok().flatten();
            if let Some(found) = found.filter(|found| found.pid == child.id()) {
                return Ok(Self { address: found.address, started: Some(child) });
            }
            if child.try_wait().is_ok_and(|status| status.is_some()) {
                return Err(failed(&last_line(&path)));
            }
            thread::sleep(LOOK);
        }
        // It would be found by the next program, which would be told of it.
        let _ = child.kill();
        Err(failed(&format!("it did not answer within {} s", START.as_secs())))
    }

    /// Whether the server was started for this job.
    pub(super) fn is_new(&self) -> bool {
        self.started.is_some()
    }

    /// Ends the server if it was started here.
    pub(super) fn end(self) {
        if let Some(mut child) = self.started {
            // In order, so that everything is stored.
            #[cfg(unix)]
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                let _ = child.wait();
                return;
            }
            let _ = child.kill();
        }
    }
}

/// Returns the last line of a log; on a full disk, where the server could write none, that the disk is full.
fn last_line(path: &Path) -> String {
    let probe = File::options().append(true).open(path).and_then(|mut log| log.write_all(b"\n"));
    if let Err(error) = probe
        && disk::is_full(&error)
    {
        return format!("{}: {}", path.display(), disk::why(&error));
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|mut file| {
        // Fails if the file is shorter, which is read from its start.
        let _ = file.seek(SeekFrom::End(-TAIL_BYTES));
        file.read_to_string(&mut text)
    });
    let line = read.ok().and_then(|_| text.lines().rfind(|line| !line.trim().is_empty()));
    line.unwrap_or("it ended at once").trim_end_matches('.').to_owned()
}
