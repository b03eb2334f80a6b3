//! `vramscope ls`: lists the recordings that a server keeps.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use trace::text::{Escaped, quoted};
use trace::units::{Bytes, Count, Moment, counted};

use super::destination::server_to_use;
use super::push::{ServerOptions, wait};
use super::{print_json, refuse, show};
use crate::remote::Listed;

/// The options of `ls`.
#[derive(Args, Debug)]
pub(super) struct Ls {
    /// Server [default: the variable VRAMSCOPE_TO, or your newest server on this machine]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Print JSON for programs: each process of each job
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerOptions,
}

impl Ls {
    /// Prints the jobs, the newest first.
    pub(super) fn run(self) -> ExitCode {
        let listed = server_to_use(self.to).and_then(|(option, url)| {
            let sessions = wait(self.server.remote(option, &url)?.sessions())?;
            sessions.ok_or_else(|| format!("The token may not read what {url} keeps. Use one with the role read."))
        });
        match listed {
            Ok(sessions) if self.json => print_json(&sessions),
            Ok(sessions) => show(&text(&sessions)),
            Err(sentence) => refuse(&sentence),
        }
    }
}

/// Returns the jobs of sessions as a table, in their order.
fn text(sessions: &[Listed]) -> String {
    if sessions.is_empty() {
        return "Nothing is recorded yet. To record a job, type: vramscope watch train.py\n".to_owned();
    }
    let mut seen = BTreeSet::new();
    let jobs: Vec<&str> = sessions.iter().map(Listed::title).filter(|job| seen.insert(*job)).collect();
    let widest = jobs.iter().map(|job| Escaped(job).to_string().chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for job in jobs {
        let of_job: Vec<&Listed> = sessions.iter().filter(|session| session.title() == job).collect();
        let sum = |of: fn(&Listed) -> u64| of_job.iter().fold(0_u64, |sum, session| sum.saturating_add(of(session)));
        let state = ["live", "lost"].into_iter().find(|state| of_job.iter().any(|session| session.state == *state));
        let started = of_job.iter().map(|session| session.started_us).min().unwrap_or_default();
        let name = Escaped(job).to_string();
        let processes = if of_job.len() > 1 { format!(", {} processes", of_job.len()) } else { String::new() };
        let failed = if sum(|session| session.oom) > 0 { ", out of memory" } else { "" };
        // Writing to a string can't fail.
        let _ = writeln!(
            out,
            "{name:<widest$}  {:<5}  {}  {}, {}{processes}{failed}",
            state.unwrap_or("ended"),
            Moment::at(started).to_minute(),
            counted(sum(|session| session.events), "event"),
            Bytes(sum(|session| session.bytes)),
        );
        let lost = sum(|session| session.lost);
        if lost > 0 {
            let _ = writeln!(out, "{:<widest$}  {} lost", "", Count(lost));
        }
    }
    let newest = sessions.first().map(|session| quoted(session.title())).unwrap_or_default();
    out + &format!("\n→ vramscope open {newest}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(job: &str, state: &str, (rank, oom, lost): (u32, u64, u64)) -> Listed {
        Listed {
            id: format!("{job}{rank}"),
            name: String::new(),
            job: job.to_owned(),
            state: state.to_owned(),
            rank: Some(rank),
            host: "box".to_owned(),
            started_us: 1_795_000_000_000_000 + i64::from(rank),
            events: 1_000,
            lost,
            bytes: 2 << 20,
            oom,
            events_per_second: 0.0,
            devices: Vec::new(),
        }
    }

    #[test]
    fn a_job_is_one_line_in_the_order_of_the_server() {
        let sessions = [
            session("train.py-2", "ended", (0, 0, 0)),
            session("train.py-2", "live", (1, 0, 0)),
            session("old\u{1b}", "lost", (0, 1, 7)),
        ];
        let want = "train.py-2  live   2026-11-18 11:06 UTC  2,000 events, 4.00 MiB, 2 processes\n\
                    old\\u{1b}   lost   2026-11-18 11:06 UTC  1,000 events, 2.00 MiB, out of memory\n            7 lost\n\n\
                    → vramscope open train.py-2\n";
        assert_eq!(text(&sessions), want);
        assert!(text(&[]).contains("vramscope watch"));
    }
}
