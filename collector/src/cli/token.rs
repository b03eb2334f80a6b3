//! `vramscope token new`: makes a token, and the line for a server's file of tokens.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{print, refuse};
use crate::access::{Secret, fresh_token, parse_line};

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
    /// What the token is for: ingest (send sessions), read (list, watch and download them), share (upload recordings) or
    /// admin (everything); can be repeated
    #[arg(long, value_name = "ROLE", required = true)]
    role: Vec<String>,
    /// Last day (2027-01-31) or moment (2027-01-31T18:00:00Z) of the token, in UTC
    #[arg(long, value_name = "DATE")]
    expires: Option<String>,
    /// The most bytes that its sessions may keep, such as 20GiB
    #[arg(long, value_name = "SIZE")]
    bytes: Option<String>,
    /// The most live sessions at once
    #[arg(long, value_name = "N")]
    sessions: Option<String>,
    /// The most events a second
    #[arg(long, value_name = "N")]
    events_per_second: Option<String>,
}

impl Token {
    /// Runs the command.
    pub(super) fn run(self) -> ExitCode {
        let TokenCommand::New(new) = self.command;
        let made = fresh_token().and_then(|token| Ok((new.line(&token)?, token)));
        match made {
            Ok((line, token)) => {
                eprintln!("The token, which is shown this once: {token}");
                print(|out| writeln!(out, "{line}"))
            }
            Err(sentence) => refuse(&sentence),
        }
    }
}

impl New {
    /// Returns the token's line of the file. Returns a sentence for people if an option is invalid.
    fn line(&self, token: &str) -> Result<String, String> {
        let mut fields = vec![self.name.clone(), self.role.join(","), format!("sha256:{}", Secret::of(token).as_str())];
        for (key, value) in [
            ("expires", &self.expires),
            ("bytes", &self.bytes),
            ("sessions", &self.sessions),
            ("events_per_second", &self.events_per_second),
        ] {
            fields.extend(value.as_ref().map(|value| format!("{key}={value}")));
        }
        // White space would make another field, and a `#` a comment.
        if fields.iter().any(|field| field.contains(char::is_whitespace)) || self.name.starts_with('#') {
            return Err("The options of a token have no spaces, and its name does not begin with #.".to_owned());
        }
        let line = fields.join(" ");
        parse_line(&line).map_err(|wrong| format!("This token can't be made: {wrong}."))?;
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, role: &str, expires: Option<&str>) -> New {
        New {
            name: name.to_owned(),
            role: role.split(' ').map(str::to_owned).collect(),
            expires: expires.map(str::to_owned),
            bytes: Some("20GiB".to_owned()),
            sessions: None,
            events_per_second: None,
        }
    }

    #[test]
    fn a_line_holds_what_was_asked_for_and_no_token() {
        let line = new("ci", "ingest read", Some("2027-01-31")).line("secret-secret-secret").unwrap();
        let hash = Secret::of("secret-secret-secret");
        assert_eq!(line, format!("ci ingest,read sha256:{} expires=2027-01-31 bytes=20GiB", hash.as_str()));
        for (name, role, expires, wanted) in [
            ("c i", "ingest", None, "no spaces"),
            ("", "ingest", None, "can't be made"),
            ("#ci", "ingest", None, "begin with #"),
            ("ci", "write", None, "the roles"),
            ("ci", "ingest", Some("soon"), "expires="),
            ("ci", "ingest", Some("2027-01-31 sessions=1"), "no spaces"),
            ("open", "ingest", None, "the server's own"),
        ] {
            let error = new(name, role, expires).line("secret-secret-secret").unwrap_err();
            assert!(error.contains(wanted) && !error.contains("secret"), "{error}");
        }
    }
}
