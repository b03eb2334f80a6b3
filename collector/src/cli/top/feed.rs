//! Asks a server once a second what `top` draws.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use report::FileReport;
use tokio::runtime::Runtime;
use trace::units::Bytes;

use super::scene::{Held, Scene};
use crate::remote::{Listed, Remote};

/// The time between two questions.
const EVERY: Duration = Duration::from_secs(1);
/// The time between two looks at the trace itself, once it says what holds memory.
const TRACE_EVERY: Duration = Duration::from_secs(10);
/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(3);
/// The largest trace that is looked at while it grows, in bytes of the store.
const MOST_BYTES: u64 = 64 << 20;

/// A thread that asks. It ends when this is dropped.
pub(super) struct Feed {
    scenes: Receiver<Scene>,
    /// How far from the first session the shown one is.
    shown: Arc<AtomicI64>,
    wake: Sender<()>,
}

impl Feed {
    /// Begins to ask about a job, or about whichever is newest.
    pub(super) fn start(remote: Remote, server: String, job: Option<String>) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("Requests can't be sent: {error}.");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error))?;
        let (send, scenes) = channel();
        let (wake, woken) = channel();
        let shown = Arc::new(AtomicI64::new(0));
        let mut asking =
            Asking { remote, server, job, shown: Arc::clone(&shown), runtime, looked: None, held: Vec::new() };
        let ask = move || {
            loop {
                if send.send(asking.scene()).is_err() {
                    return;
                }
                match woken.recv_timeout(EVERY) {
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
                    // The latest choice counts.
                    Ok(()) => while woken.try_recv().is_ok() {},
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                }
            }
        };
        thread::Builder::new().name("top".to_owned()).spawn(ask).map_err(|error| failed(&error))?;
        Ok(Self { scenes, shown, wake })
    }

    /// Returns the newest scene since the last call.
    pub(super) fn newest(&self) -> Option<Scene> {
        self.scenes.try_iter().last()
    }

    /// Shows a session that is so many places farther in the list.
    pub(super) fn show_other(&self, by: i64) {
        self.shown.fetch_add(by, Ordering::Relaxed);
        // Fails if the thread has ended, which only a panic in it does.
        let _ = self.wake.send(());
    }
}

/// What the thread knows.
struct Asking {
    remote: Remote,
    server: String,
    job: Option<String>,
    shown: Arc<AtomicI64>,
    runtime: Runtime,
    /// The session whose trace was looked at last, how many events it had, and when.
    looked: Option<(String, u64, Instant)>,
    held: Vec<Held>,
}

impl Asking {
    fn scene(&mut self) -> Scene {
        let server = self.server.clone();
        match self.ask() {
            Ok(scene) => Scene { server, held: self.held.clone(), ..scene },
            Err(trouble) => Scene { server, trouble, ..Scene::default() },
        }
    }

    fn ask(&mut self) -> Result<Scene, String> {
        if let Some(why) = self.runtime.block_on(self.remote.absence(ANSWER)) {
            return Err(format!("{} does not answer: {why}", self.server));
        }
        let sessions = self.runtime.block_on(self.remote.sessions())?;
        let sessions = sessions.ok_or_else(|| "The token may not read. Use one with the role read.".to_owned())?;
        let sessions = shown(sessions, self.job.as_deref());
        let count = sessions.len();
        if count == 0 {
            let trouble = match &self.job {
                Some(job) => format!("There is no job {job} yet."),
                None => "Nothing is recorded yet. To record a job, type: vramscope watch train.py".to_owned(),
            };
            return Ok(Scene { trouble, ..Scene::default() });
        }
        let index = self.shown.load(Ordering::Relaxed).rem_euclid(count as i64) as usize;
        let session = sessions.into_iter().nth(index);
        let Some(session) = session else { return Ok(Scene::default()) };
        let stats = self.runtime.block_on(self.remote.stats_of(&session.id))?;
        let trouble = self.look(&session);
        Ok(Scene { session: Some(session), place: (index + 1, count), stats, trouble, ..Scene::default() })
    }

    /// Looks into the trace of a session, if that is due. Returns why there is nothing to say of it.
    fn look(&mut self, session: &Listed) -> String {
        let looked = self.looked.as_ref().filter(|(id, ..)| *id == session.id);
        if looked.is_none() || session.bytes > MOST_BYTES {
            self.held.clear();
        }
        if session.bytes > MOST_BYTES {
            return format!("The trace is larger than {}: the page shows its lines.", Bytes(MOST_BYTES));
        }
        // Before a job has memory, its trace says nothing yet.
        let every = if self.held.iter().any(|held| held.peak > 0) { TRACE_EVERY } else { EVERY };
        if looked.is_some_and(|(_, events, at)| *events == session.events || at.elapsed() < every) {
            return String::new();
        }
        self.looked = Some((session.id.clone(), session.events, Instant::now()));
        let report =
            self.runtime.block_on(self.remote.trace_of(&session.id)).and_then(|bytes| FileReport::read(&bytes));
        match report {
            Ok(report) => {
                self.held = report.devices.into_iter().map(Held::from).collect();
                String::new()
            }
            Err(sentence) => sentence,
        }
    }
}

/// Returns the sessions that can be shown, in order: those of the job; or else those that run, and without one, the newest.
fn shown(mut sessions: Vec<Listed>, job: Option<&str>) -> Vec<Listed> {
    if let Some(job) = job {
        sessions.retain(|session| session.title() == job);
        sessions.sort_by_key(|session| session.rank);
    } else if sessions.iter().any(Listed::is_live) {
        sessions.retain(Listed::is_live);
    }
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_shown_or_what_is_named() {
        let session = |id: &str, job: &str, state: &str, rank: u32| Listed {
            id: id.to_owned(),
            job: job.to_owned(),
            state: state.to_owned(),
            rank: Some(rank),
            ..Listed::default()
        };
        let all = || vec![session("a", "new", "ended", 0), session("b", "x", "live", 1), session("c", "x", "ended", 0)];
        let ids = |sessions: Vec<Listed>| sessions.into_iter().map(|session| session.id).collect::<Vec<_>>();
        assert_eq!(ids(shown(all(), None)), ["b"]);
        assert_eq!(ids(shown(all(), Some("x"))), ["c", "b"]);
        assert_eq!(ids(shown(all(), Some("y"))), [""; 0]);
        assert_eq!(ids(shown(all().into_iter().take(1).collect(), None)), ["a"]);
    }
}
