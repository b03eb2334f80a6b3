//! `vramscope token new`: makes a token, and the line for a server's file of tokens.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::message::note;
use super::{print, refuse};
use crate::access::{Limit, Role, Roles, Secret, TokenLimits, check_name, fresh_token};
use crate::clock::now_us;

/// The commands on tokens.
#[derive(Args, Debug)]
pub(super) struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token of 256 random bits. Standard output gets the line for the file, which holds the token's hash only;
    /// standard error gets the token, which is shown this once
    New(New),
}

/// The options of `token new`.
#[derive(Args, Debug)]
struct New {
    /// Name of the token, as the audit log shows it
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What the token is for: ingest (send recordings, start the demo), read (list, watch and download them), share (make
    /// links to traces) or admin (everything, and pin and delete recordings); can be repeated
    #[arg(long, value_name = "ROLE", required = true)]
    role: Vec<String>,
    /// Last day of the token in UTC (2027-01-31), or its last moment (2027-01-31T18:00:00Z, 2027-01-31T18:00:00+01:00)
    #[arg(long, value_name = "DATE")]
    expires: Option<String>,
    /// Disk space for its recordings, such as 20GiB. Its older ones are deleted to make room, and one that is larger than this
    /// is not kept
    #[arg(long, value_name = "SIZE")]
    bytes: Option<String>,
    /// The most live sessions at once; further ones are refused until one has ended
    #[arg(long, value_name = "N")]
    sessions: Option<String>,
    /// The most events a second of all its jobs; the server reads more slowly beyond it
    #[arg(long, value_name = "N")]
    events_per_second: Option<String>,
}

impl Token {
    /// Runs the command.
    pub(super) fn run(self) -> ExitCode {
        let TokenCommand::New(new) = self.command;
        let made = fresh_token().and_then(|token| Ok((new.line(&token, now_us())?, token)));
        match made {
            Ok((line, token)) => {
                note(&format!("The token, which is shown this once: {token}"));
                print(|out| writeln!(out, "{line}"))
            }
            Err(sentence) => refuse(&sentence),
        }
    }
}

impl New {
    /// Returns the token's line of the file. Returns a sentence for people if an option is invalid.
    fn line(&self, token: &str, now_us: i64) -> Result<String, String> {
        check_name(&self.name).map_err(|wrong| format!("--name {:?} {wrong}.", self.name))?;
        let roles: Roles = self.role.iter().flat_map(|names| names.split(',')).map(role).collect::<Result<_, _>>()?;
        let mut line = format!("{} {roles} sha256:{}", self.name, Secret::of(token).as_str());
        let mut limits = TokenLimits::default();
        for (limit, value) in [
            (Limit::Expires, &self.expires),
            (Limit::Bytes, &self.bytes),
            (Limit::Sessions, &self.sessions),
            (Limit::EventsPerSecond, &self.events_per_second),
        ] {
            let Some(value) = value else { continue };
            let option = limit.name().replace('_', "-");
            limits.set(limit, value).map_err(|what| format!("--{option} {value:?} is not {what}."))?;
            // White space would make another field.
            line += &format!(" {}={}", limit.name(), value.split_whitespace().collect::<String>());
        }
        if limits.expires_us.is_some_and(|expires_us| expires_us <= now_us) {
            let value = self.expires.as_deref().unwrap_or_default();
            return Err(format!(
                "--expires {value} is in the past, so no server would accept the token. Write a later date."
            ));
        }
        Ok(line)
    }
}

/// Reads a role.
fn role(name: &str) -> Result<Role, String> {
    Role::named(name).ok_or_else(|| format!("--role {name:?} is not a role. Use ingest, read, share or admin."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22, at noon.
    const NOW_US: i64 = 1_795_348_800_000_000;

    /// Makes a token's line, and checks that nobody can read the token in it.
    fn line(name: &str, roles: &[&str], limits: [Option<&str>; 4]) -> Result<String, String> {
        let [expires, bytes, sessions, events_per_second] = limits.map(|limit| limit.map(str::to_owned));
        let role = roles.iter().map(|role| (*role).to_owned()).collect();
        let new = New { name: name.to_owned(), role, expires, bytes, sessions, events_per_second };
        let hash = Secret::of("secret-secret-secret");
        let line = new.line("secret-secret-secret", NOW_US);
        line.map(|line| line.replace(hash.as_str(), "HASH"))
    }

    #[test]
    fn a_line_holds_what_was_asked_for_and_no_token() {
        let none = [None; 4];
        for (name, roles, limits, wanted) in [
            ("ci", &["ingest", "read"][..], none, "ci ingest,read sha256:HASH"),
            ("ci", &["read", "read"], none, "ci read sha256:HASH"),
            ("ci", &["admin,read", "read"], none, "ci read,admin sha256:HASH"),
            (
                "a.b-c_9",
                &["share"],
                [Some("2027-01-31T18:00:00+01:00"), Some("1.5 TiB"), Some("64"), Some("1000")],
                "a.b-c_9 share sha256:HASH expires=2027-01-31T18:00:00+01:00 bytes=1.5TiB sessions=64 events_per_second=1000",
            ),
            ("ci", &["read"], [Some("2026-11-22"), None, None, None], "ci read sha256:HASH expires=2026-11-22"),
        ] {
            assert_eq!(line(name, roles, limits).as_deref(), Ok(wanted));
        }
    }

    #[test]
    fn an_error_names_the_option_and_what_it_takes() {
        let none = [None; 4];
        for (name, role, limits, wanted) in [
            ("c i", "ingest", none, "--name \"c i\" must have 1 to 64 characters"),
            ("", "ingest", none, "--name \"\" must have 1 to 64 characters"),
            ("#ci", "ingest", none, "--name \"#ci\" must have 1 to 64 characters"),
            ("open", "ingest", none, "--name \"open\" is the server's own"),
            ("ci", "viewer", none, "--role \"viewer\" is not a role. Use ingest, read, share or admin."),
            ("ci", "read,", none, "--role \"\" is not a role"),
            ("ci", "read", [Some("soon"), None, None, None], "--expires \"soon\" is not a date"),
            ("ci", "read", [Some("2027-01-31 sessions=1"), None, None, None], "is not a date"),
            ("ci", "read", [Some("2026-11-21"), None, None, None], "--expires 2026-11-21 is in the past"),
            ("ci", "read", [Some("2026-11-22T12:00:00Z"), None, None, None], "is in the past"),
            ("ci", "read", [None, Some("1"), None, None], "--bytes \"1\" is not a size with its unit, such as 20GiB"),
            ("ci", "read", [None, None, Some("0"), None], "--sessions \"0\" is not a number from 1."),
            ("ci", "read", [None, None, None, Some("x")], "--events-per-second \"x\" is not a number from 1."),
        ] {
            let error = line(name, &[role], limits).unwrap_err();
            assert!(error.contains(wanted) && !error.contains("secret"), "{error}");
            assert!(error.ends_with('.') && !error.ends_with("..") && !error.contains("field"), "{error}");
        }
    }
}
