//! The server that a command talks to.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::read::{self, name_of};
use crate::announcement::{Announcement, answers, state_folder, token_at};
use crate::remote::Remote;
use recorder::publish::Destination;

/// The variable that holds the server's token if no file is named.
pub(super) const TOKEN_VARIABLE: &str = "VRAMSCOPE_TOKEN";
/// The variable that names the server.
pub(super) const TO_VARIABLE: &str = "VRAMSCOPE_TO";
/// Where a server listens that was given no address. One with tokens does not announce itself.
const USUAL: &str = "http://127.0.0.1:7070";
/// The variable that holds the path of a file with certificates if the option is not given.
pub(super) const CA_FILE_VARIABLE: &str = "VRAMSCOPE_CA_FILE";

/// Bytes of a file with a token or a password.
const SECRET_BYTES: u64 = 64 << 10;

/// Returns the server that the option `to` or the variable names, and which of them did.
pub(super) fn named_server(to: Option<String>) -> Option<(&'static str, String)> {
    let is_address = |to: &String| !matches!(to.as_str(), "" | "1" | "default");
    let variable = || std::env::var(TO_VARIABLE).ok().filter(is_address).map(|url| (TO_VARIABLE, url));
    to.map(|url| ("--to", url)).or_else(variable)
}

/// Returns the server that a command talks to, and what named it: the one that was named, this user's newest one on this
/// machine, or the one at the usual address. The error is a sentence for people: none of them is there.
pub(super) fn server_to_use(to: Option<String>) -> Result<(&'static str, String), String> {
    if let Some(named) = named_server(to) {
        return Ok(named);
    }
    let newest = state_folder().map_or(Ok(None), |state| Announcement::newest(&state))?;
    match newest {
        Some(found) => Ok(("the running server", found.address)),
        None if answers(USUAL) => Ok(("the running server", USUAL.to_owned())),
        None => Err("No server of yours runs on this machine. Start one with vramscope serve, or name one with --to."
            .to_owned()),
    }
}

/// Prepares requests to a server of this user that announced itself.
pub(super) fn remote_at(server: &Announcement) -> Result<Remote, String> {
    Remote::new(&destination("the running server", &server.address, None, None)?)
}

/// Returns a server, with the token and the certificates for it. `option` is the one that named it. A server of this user
/// that made its token itself knows no other, so that one comes before the variable. The error is a sentence for people.
pub(super) fn destination(
    option: &str,
    url: &str,
    token_file: Option<&Path>,
    ca_file: Option<&Path>,
) -> Result<Destination, String> {
    let destination = Destination::parse(url).map_err(|error| format!("{option}: {error}"))?;
    if ca_file.is_some() && !destination.is_secure() {
        let address = destination.address();
        return Err(format!("--ca-file: {address} is not encrypted. Write the address as https://."));
    }
    let variable = || std::env::var_os(CA_FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let ca_file = ca_file.map(Path::to_owned).or_else(variable);
    let token = match token_file {
        Some(path) => Some(read_token(path)?),
        None => token_at(url).or_else(|| std::env::var(TOKEN_VARIABLE).ok()),
    };
    Ok(destination.token(token).ca_file(ca_file))
}

/// Reads a file that holds a token and nothing else.
fn read_token(path: &Path) -> Result<String, String> {
    read_secret(path, "token").map(|text| text.trim().to_owned())
}

/// Reads a file that holds a password. All of it counts but the ends of lines after it.
pub(super) fn read_password(path: &Path) -> Result<String, String> {
    let password = read_secret(path, "password")?.trim_end_matches(['\r', '\n']).to_owned();
    if password.trim().is_empty() {
        return Err(format!("{}: the file holds no password. Write one into it.", name_of(path)));
    }
    Ok(password)
}

fn read_secret(path: &Path, what: &str) -> Result<String, String> {
    let read = read::open(path).and_then(|file| {
        let mut text = String::new();
        let read = file.take(SECRET_BYTES).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| read::sentence(&error))
    });
    read.map_err(|error| format!("{}: the {what} can't be read. {error}", name_of(path)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_password_is_all_of_its_file_but_the_ends_of_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, want) in [
            ("secret", Some("secret")),
            (" with spaces \r\n", Some(" with spaces ")),
            ("two\nlines\n\n", Some("two\nlines")),
            ("", None),
            ("\n", None),
            (" \t\n", None),
        ] {
            fs::write(file.path(), text).unwrap();
            assert_eq!(read_password(file.path()).ok().as_deref(), want, "{text:?}");
        }
    }
}
