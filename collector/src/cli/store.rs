//! `vramscope store`: looks after stored sessions.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use trace::units::{Bytes, counted};

use super::serve::default_folder;
use super::{UNUSABLE, gate, print, refuse};
use crate::ingest::{SessionHealth, inspect, repair};
use crate::store::{Catalogue, Found, SegmentStore, StoreResult};

/// The exit codes, as the help tells them.
const STORE_STATUS: &str = "\
Exit status:
  0  Done; `check` and `scrub` found no damage
  1  `check` or `scrub` found damage
  2  It can't be done: invalid arguments, a folder or an object store that can't be used, a session that can't be repaired";

/// The options of `store`.
#[derive(Args, Debug)]
#[command(after_help = STORE_STATUS)]
pub(super) struct Store {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Tell what is stored and what of it is damaged; exits with 1 if anything is. Works while a server runs
    Check(StoreLocation),
    /// Read every byte and compare it with its hash; prints only what is damaged. Works while a server runs
    Scrub(StoreLocation),
    /// Put what is whole in the place of what is damaged, and set the damaged files aside. The server must be stopped
    Repair(StoreLocation),
    /// Make the catalogue anew from the segments alone. The server must be stopped
    Rebuild(StoreLocation),
}

#[derive(Args, Debug)]
struct StoreLocation {
    /// Folder for recorded sessions [default: vramscope in the user's data folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Object store of the sealed segments, as for `vramscope serve`
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

impl StoreLocation {
    /// Opens the folder: to look at it, or for this program alone.
    fn open(&self, is_changed: bool) -> Result<Arc<SegmentStore>, String> {
        let folder = self.data.clone().unwrap_or_else(default_folder);
        let looked = SegmentStore::look(&folder, self.store.as_deref(), std::env::vars())?;
        Ok(match &self.store {
            _ if !is_changed => Arc::new(looked),
            Some(url) => Arc::new(SegmentStore::open_with_objects(&folder, url, std::env::vars(), u64::MAX)?),
            None => Arc::new(SegmentStore::open(&folder, u64::MAX)?),
        })
    }
}

impl Store {
    /// Runs the action.
    pub(super) fn run(self) -> ExitCode {
        let done = match self.action {
            Action::Check(location) => location.open(false).and_then(|store| examine(&store, true)),
            Action::Scrub(location) => location.open(false).and_then(|store| examine(&store, false)),
            Action::Repair(location) => location.open(true).and_then(|store| mend(&store)),
            Action::Rebuild(location) => location.open(true).and_then(|store| rebuild(&store)),
        };
        done.unwrap_or_else(|sentence| refuse(&sentence))
    }
}

/// A session and what was found out about it.
type Examined = (String, StoreResult<SessionHealth>);

/// Examines all sessions that are stored, or that the catalogue knows.
fn all(store: &Arc<SegmentStore>, catalogue: &Catalogue) -> Result<Vec<Examined>, String> {
    let mut listed: BTreeMap<String, Vec<Found>> =
        store.list().map_err(|error| format!("The sessions can't be listed: {error}."))?;
    listed.retain(|_, found| !found.is_empty());
    for session in catalogue.records.keys() {
        listed.entry(session.clone()).or_default();
    }
    let examined = listed.into_iter().map(|(session, found)| {
        let health = inspect(store, &session, &found, catalogue.records.get(&session));
        (session, health)
    });
    Ok(examined.collect())
}

fn is_damaged(health: &StoreResult<SessionHealth>) -> bool {
    health.as_ref().map_or(true, SessionHealth::is_damaged)
}

/// Prints the health of all sessions, or of the damaged ones.
fn examine(store: &Arc<SegmentStore>, with_healthy: bool) -> Result<ExitCode, String> {
    let sessions = all(store, &store.catalogue())?;
    let aside = store.quarantine().map_err(|error| format!("The quarantine can't be listed: {error}."))?;
    let unfollowed = store.unfollowed();
    let damaged = sessions.iter().filter(|(_, health)| is_damaged(health)).count();
    let printed = print(|out| {
        for (session, health) in &sessions {
            if with_healthy || is_damaged(health) {
                write_session(out, session, health)?;
            }
        }
        let bytes: u64 = sessions.iter().filter_map(|(_, health)| health.as_ref().ok()).map(bytes_of).sum();
        let total = counted(sessions.len() as u64, "session");
        writeln!(out, "{total}, {}, {damaged} damaged.", Bytes(bytes))?;
        for link in &unfollowed {
            writeln!(out, "{link} is a symbolic link, which is not followed: put the files themselves in its place.")?;
        }
        if !aside.is_empty() {
            let bytes: u64 = aside.iter().map(|(_, _, bytes)| bytes).sum();
            writeln!(out, "{} set aside in quarantine ({}):", counted(aside.len() as u64, "file"), Bytes(bytes))?;
            for (session, name, bytes) in &aside {
                writeln!(out, "  {session}/{name}  {}", Bytes(*bytes))?;
            }
        }
        if damaged > 0 {
            writeln!(out, "Stop the server and run `vramscope store repair` to keep what is readable.")?;
        }
        Ok(())
    });
    Ok(if printed == ExitCode::SUCCESS { gate::code(damaged > 0 || !unfollowed.is_empty()) } else { printed })
}

fn bytes_of(health: &SessionHealth) -> u64 {
    health.segments.iter().map(|segment| segment.found.bytes).sum()
}

fn write_session(out: &mut dyn Write, session: &str, health: &StoreResult<SessionHealth>) -> io::Result<()> {
    let health = match health {
        Ok(health) => health,
        Err(error) => return writeln!(out, "{session}  can't be read: {error}"),
    };
    let record = &health.record;
    let state = if record.ended_us.is_some() { "ended" } else { "not ended" };
    let name = super::one_line(if record.name.is_empty() { "(no name)" } else { &record.name });
    writeln!(
        out,
        "{session}  {name}  {state}, {}, {}, {}",
        counted(record.totals.events(), "event"),
        counted(health.segments.len() as u64, "segment"),
        Bytes(bytes_of(health)),
    )?;
    if health.segments.is_empty() {
        return writeln!(out, "  all of it is missing");
    }
    for numbers in &health.missing {
        match (numbers.start(), numbers.end()) {
            (first, last) if first == last => writeln!(out, "  segment {first} is missing")?,
            (first, last) => writeln!(out, "  segments {first} to {last} are missing")?,
        }
    }
    for segment in health.segments.iter().filter(|segment| segment.is_damaged()) {
        let number = segment.found.number;
        if segment.damaged_bytes > 0 {
            writeln!(out, "  segment {number}: {} damaged", Bytes(segment.damaged_bytes).exact())?;
        }
        if !segment.has_labels {
            writeln!(out, "  segment {number}: a label can't be read")?;
        }
        if segment.has_hash == Some(false) {
            writeln!(out, "  segment {number}: differs from what was written")?;
        }
    }
    Ok(())
}

/// Repairs all damaged sessions, and seals what was growing.
fn mend(store: &Arc<SegmentStore>) -> Result<ExitCode, String> {
    let mut lines = Vec::new();
    let mut failed = false;
    let catalogue = store.catalogue();
    for (session, health) in all(store, &catalogue)? {
        let repaired = match &health {
            Ok(health) => repair(store, &session, health).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match repaired {
            Ok(repaired) => lines.extend(repaired.into_iter().map(|(number, is_damaged)| match is_damaged {
                true => format!("{session}: repaired segment {number}; its damaged file is in quarantine"),
                false => format!("{session}: sealed segment {number}, which was still growing"),
            })),
            Err(error) => {
                failed = true;
                lines.push(format!("{session}: {error}"));
            }
        }
    }
    save(store, &catalogue)?;
    let printed = print(|out| {
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        if lines.is_empty() { writeln!(out, "Nothing to repair.") } else { Ok(()) }
    });
    Ok(if failed { ExitCode::from(UNUSABLE) } else { printed })
}

fn rebuild(store: &Arc<SegmentStore>) -> Result<ExitCode, String> {
    let (sessions, growing) = save(store, &Catalogue::default())?;
    Ok(print(|out| {
        writeln!(out, "The catalogue has {}.", counted(sessions, "session"))?;
        if growing > 0 {
            writeln!(
                out,
                "Not in it: {}, not sealed yet. A start of the server adds them.",
                counted(growing, "session")
            )?;
        }
        Ok(())
    }))
}

/// Makes the catalogue anew; what is missing is known from `before`. Returns the number of sessions in it, and of those that
/// still grow.
fn save(store: &Arc<SegmentStore>, before: &Catalogue) -> Result<(u64, u64), String> {
    let mut catalogue = Catalogue::default();
    let mut growing = 0;
    for (session, health) in all(store, before)? {
        match health {
            Ok(health) if health.segments.iter().all(|segment| segment.found.hash.is_some()) => {
                catalogue.records.insert(session, health.record.without_series());
            }
            _ => growing += 1,
        }
    }
    store.save_catalogue(&catalogue).map_err(|error| format!("The catalogue can't be written: {error}."))?;
    Ok((catalogue.records.len() as u64, growing))
}
