//! `vramscope stop`: stops the servers of this user on this machine.

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::destination::remote_at;
use super::message::note;
use super::push::wait;
use super::{print, refuse};
use crate::announcement::{Announcement, state_folder};

/// The longest time in which a server has to end: it stores what jobs have sent.
const END: Duration = Duration::from_secs(30);
/// The longest time in which it seals what is open, once it answers no more.
const SEAL: Duration = Duration::from_secs(10);
/// The time between two looks at it.
const LOOK: Duration = Duration::from_millis(20);

/// The message if no server runs.
const NONE: &str =
    "No server of yours runs on this machine, or they run with --token-file or --tokens: stop those with Ctrl-C.";

/// The options of `stop`.
#[derive(Args, Debug)]
pub(super) struct Stop {
    /// Address or port of the server, such as http://127.0.0.1:7070 or 7070 [default: all that `watch` or a job started]
    #[arg(value_name = "ADDRESS")]
    address: Option<String>,
    /// Stop those that were started by hand, too
    #[arg(long, conflicts_with = "address")]
    all: bool,
}

impl Stop {
    /// Stops the servers in order, and prints their addresses.
    pub(super) fn run(self) -> ExitCode {
        let Some(state) = state_folder() else {
            return refuse("The variable HOME is not set, so no running server can be found.");
        };
        let mut servers = match Announcement::all(&state) {
            Ok(servers) => servers,
            Err(sentence) => return refuse(&sentence),
        };
        if servers.is_empty() {
            return refuse(NONE);
        }
        if let Some(wanted) = &self.address {
            let known: Vec<_> = servers.iter().map(|server| server.address.clone()).collect();
            servers.retain(|server| is_at(&server.address, wanted));
            if servers.is_empty() {
                return refuse(&format!("No server of yours runs at {wanted}. Running: {}.", known.join(", ")));
            }
        }
        let mut code = ExitCode::SUCCESS;
        let (wanted, kept): (Vec<_>, Vec<_>) =
            servers.into_iter().partition(|server| server.is_background || self.all || self.address.is_some());
        if let Some(sentence) = by_hand(&kept) {
            if wanted.is_empty() {
                return refuse(&sentence);
            }
            note(&sentence);
        }
        for server in wanted {
            let live = live_sessions(&server);
            let sending = match live {
                0 => String::new(),
                1 => ", to which 1 process was sending".to_owned(),
                live => format!(", to which {live} processes were sending"),
            };
            match end(&server, &state) {
                Ok(()) => code = print(|out| writeln!(out, "Stopped the server at {}{sending}", server.address)),
                Err(sentence) => code = refuse(&sentence),
            }
        }
        code
    }
}

/// Returns the number of processes that send to a server, as far as it tells.
fn live_sessions(server: &Announcement) -> usize {
    let listed = remote_at(server).and_then(|remote| wait(remote.sessions()));
    listed.ok().flatten().unwrap_or_default().iter().filter(|session| session.is_live()).count()
}

/// Returns what is said of servers that somebody started by hand; `None` if there are none.
fn by_hand(servers: &[Announcement]) -> Option<String> {
    let [first, ..] = servers else { return None };
    let addresses: Vec<_> = servers.iter().map(|server| server.address.as_str()).collect();
    let was = if servers.len() == 1 { "The server at {} was" } else { "The servers at {} were" };
    Some(format!(
        "{} started by hand. Stop it there with Ctrl-C, or type: vramscope stop {}",
        was.replace("{}", &addresses.join(", ")),
        host_and_port(&first.address).1
    ))
}

/// Returns whether a server is the one at `wanted`, which is its port or its address. The names of this machine's own
/// address mean the same.
fn is_at(server: &str, wanted: &str) -> bool {
    let (host, port) = host_and_port(server);
    let (wanted_host, wanted_port) = host_and_port(wanted);
    let is_local = |host: &str| matches!(host, "127.0.0.1" | "localhost" | "[::1]" | "[::]" | "0.0.0.0");
    let is_same_host = wanted_host.is_empty() || wanted_host == host || is_local(wanted_host) && is_local(host);
    port == wanted_port && is_same_host
}

/// Splits an address such as `http://localhost:7070/`. The host of a port alone is empty.
fn host_and_port(address: &str) -> (&str, &str) {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest).trim_end_matches('/');
    address.rsplit_once(':').unwrap_or(("", address))
}

/// Ends a server, and waits for it.
fn end(server: &Announcement, state: &Path) -> Result<(), String> {
    let Announcement { address, pid, .. } = server;
    signal(*pid).map_err(|what| format!("The server at {address} (process {pid}) can't be stopped: {what}."))?;
    let begun = Instant::now();
    while server.answers() {
        if begun.elapsed() > END {
            return Err(format!("The server at {address} (process {pid}) did not stop within {} s.", END.as_secs()));
        }
        thread::sleep(LOOK);
    }
    // Its port is free before everything is sealed. One that was ended by force leaves its file.
    let closed = Instant::now();
    while server.is_published(state) && closed.elapsed() < SEAL {
        thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(unix)]
fn signal(pid: u32) -> Result<(), String> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("its number is invalid")?;
    kill_process(pid, Signal::TERM).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn signal(_: u32) -> Result<(), String> {
    Err("this system has no signals; end the process in the task manager".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_started_by_hand_is_named_and_left() {
        let server = |port: u16| Announcement {
            address: format!("http://127.0.0.1:{port}"),
            pid: 1,
            host: String::new(),
            started_us: 0,
            secret: None,
            token: None,
            is_background: false,
        };
        assert_eq!(by_hand(&[]), None);
        for (servers, want) in [
            (
                vec![server(7070)],
                "The server at http://127.0.0.1:7070 was started by hand. Stop it there with Ctrl-C, or type: vramscope stop \
                 7070",
            ),
            (
                vec![server(1), server(2)],
                "The servers at http://127.0.0.1:1, http://127.0.0.1:2 were started by hand. Stop it there with Ctrl-C, or \
                 type: vramscope stop 1",
            ),
        ] {
            assert_eq!(by_hand(&servers).as_deref(), Some(want));
        }
    }

    #[test]
    fn a_server_is_named_by_its_port_or_its_address_and_no_other_host() {
        let cases = [
            ("7070", true),
            (":7070", true),
            ("http://127.0.0.1:7070/", true),
            ("localhost:7070", true),
            ("http://[::1]:7070", true),
            ("7071", false),
            ("http://gpu-box:7070", false),
            ("gpu-box:7070", false),
            ("localhost", false),
        ];
        for (wanted, is) in cases {
            assert_eq!(is_at("http://127.0.0.1:7070/", wanted), is, "{wanted}");
        }
    }
}
