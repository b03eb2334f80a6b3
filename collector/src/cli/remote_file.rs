//! What a command reads from a server where it would read a file: a shared trace by its link, a job by its name, and a baseline.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::destination::{destination, server_to_use};
use super::message::one_line;
use super::progress::Progress;
use super::push::wait;
use super::suggestion::did_you_mean;
use crate::remote::{LinkAddress, Listed, Remote};

/// Where a job's name begins.
const JOB: &str = "job:";
/// Where a baseline's name begins.
const BASELINE: &str = "baseline:";

/// The names of shared traces that were looked up: those of links would show their tokens.
static NAMES: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Something on a server that is read like a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemoteFile {
    /// A shared trace: `https://HOST/s-TOKEN`.
    Link(String),
    /// What a job, or a session, has recorded so far, or did until it ended: `job:NAME`, or `job:NAME/RANK`; also by a session's id.
    Job {
        /// The job's name.
        name: String,
        /// The rank of the process; `None` if the job has one alone.
        rank: Option<u32>,
    },
    /// A baseline: `baseline:NAME`.
    Baseline(String),
}

impl RemoteFile {
    /// Reads what stands in place of a path. `None` for the path of a file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        if text.starts_with("http://") || text.starts_with("https://") {
            return Some(Self::Link(text.to_owned()));
        }
        let is_name = |rest: &&str| !rest.is_empty() && !path.exists();
        if let Some(name) = text.strip_prefix(BASELINE).filter(is_name) {
            return Some(Self::Baseline(name.to_owned()));
        }
        let rest = text.strip_prefix(JOB).filter(is_name)?;
        let ranked = rest.rsplit_once('/').and_then(|(name, rank)| Some((name, rank.parse().ok()?)));
        Some(match ranked.filter(|(name, _)| !name.is_empty()) {
            Some((name, rank)) => Self::Job { name: name.to_owned(), rank: Some(rank) },
            None => Self::Job { name: rest.to_owned(), rank: None },
        })
    }

    /// Returns the name for people.
    pub(super) fn name(&self, path: &Path) -> String {
        match self {
            Self::Link(_) => {
                let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
                names.get(path).map_or_else(|| "The shared trace".to_owned(), |name| one_line(name))
            }
            Self::Job { name, rank: None } => one_line(name),
            Self::Job { name, rank: Some(rank) } => format!("{} (rank {rank})", one_line(name)),
            Self::Baseline(name) => one_line(name),
        }
    }

    /// Fetches it. The error is a sentence for people.
    pub(super) fn fetch(&self, path: &Path) -> Result<Vec<u8>, String> {
        match self {
            Self::Link(link) => of_link(link, path),
            Self::Job { name, rank } => of_job(name, *rank),
            Self::Baseline(name) => {
                let remote = remote()?;
                let (bytes, _) = wait(async { remote.baseline(name).await })?.ok_or(
                    "The server has no baseline of this name. Make it: vramscope baseline set baseline:NAME RUN.",
                )?;
                Ok(bytes)
            }
        }
    }
}

/// Prepares requests to the server that a command talks to.
pub(super) fn remote() -> Result<Remote, String> {
    let (option, url) = server_to_use(None)?;
    Remote::new(&destination(option, &url, None, None)?)
}

fn of_link(link: &str, path: &Path) -> Result<Vec<u8>, String> {
    let LinkAddress { server, token } = LinkAddress::parse(link)?;
    let remote = Remote::new(&destination("LINK", &server, None, None)?)?;
    wait(async {
        let (linked, key) = remote
            .look(&token, None)
            .await?
            .ok_or("This link has a password. Fetch the trace first: vramscope pull LINK --password-file FILE.")?;
        NAMES.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), linked.name.clone());
        let progress = Progress::new(format!("Fetching {}", one_line(&linked.name)));
        let mut report = |done, all| progress.bytes("Fetched", done, all);
        remote.pull(&token, (&linked, key.as_deref()), &mut report).await
    })
}

fn of_job(name: &str, rank: Option<u32>) -> Result<Vec<u8>, String> {
    let remote = remote()?;
    wait(async {
        let refused = "The server's token may not read jobs. Use one with the role read.";
        let sessions = remote.sessions().await?.ok_or(refused)?;
        let mut own: Vec<_> = sessions.iter().filter(|session| session.title() == name || session.id == name).collect();
        if own.is_empty() {
            let meant = did_you_mean(name, sessions.iter().map(Listed::title));
            return Err(format!("The server has no job of this name.{meant} List them with vramscope ls."));
        }
        let mut ranks: Vec<_> = own.iter().filter_map(|session| session.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        match (rank, ranks.as_slice()) {
            (Some(rank), _) => own.retain(|session| session.rank == Some(rank)),
            (None, [first, .., last]) => {
                return Err(format!("The job has ranks {first} to {last}. Name one, such as {JOB}{name}/{first}."));
            }
            (None, _) => {}
        }
        // A job that ran several times has a session for each.
        let newest = own.into_iter().max_by_key(|session| session.started_us);
        let newest = newest.ok_or_else(|| format!("The job has no such rank. Name another, such as {JOB}{name}/0."))?;
        let _progress = Progress::new(format!("Fetching {}", one_line(name)));
        remote.trace_of(&newest.id).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_a_server_is_told_from_a_path() {
        let job = |name: &str, rank| Some(RemoteFile::Job { name: name.to_owned(), rank });
        for (text, want) in [
            ("a.pickle", None),
            ("job:", None),
            ("./job:train", None),
            ("job:train", job("train", None)),
            ("job:train/3", job("train", Some(3))),
            ("job:team/train", job("team/train", None)),
            ("job:/3", job("/3", None)),
            ("baseline:nightly", Some(RemoteFile::Baseline("nightly".to_owned()))),
            ("https://box/s-abc", Some(RemoteFile::Link("https://box/s-abc".to_owned()))),
        ] {
            assert_eq!(RemoteFile::of(Path::new(text)), want, "{text}");
        }
    }

    #[test]
    fn the_name_of_a_link_never_shows_its_token() {
        let path = Path::new("https://box/s-abcdefghijklmnopqrstuvwxyz2345672345672");
        assert_eq!(RemoteFile::of(path).map(|file| file.name(path)).as_deref(), Some("The shared trace"));
    }
}
