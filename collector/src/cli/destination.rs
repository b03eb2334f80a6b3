//! The server that a command talks to.

use std::fs;
use std::path::{Path, PathBuf};

use crate::publish::Destination;

/// The variable that holds the server's token if no file is named.
pub(super) const TOKEN_VARIABLE: &str = "VRAMSCOPE_TOKEN";
/// The variable that holds the path of a file with certificates if the option is not given.
const CA_FILE_VARIABLE: &str = "VRAMSCOPE_CA_FILE";

/// Returns a server, with the token and the certificates for it. `option` is the one that named it. The error is a sentence
/// for people.
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
        Some(path) => Some(read_secret(path, "token")?),
        None => std::env::var(TOKEN_VARIABLE).ok(),
    };
    Ok(destination.token(token).ca_file(ca_file))
}

/// Reads a file that holds a secret and nothing else.
pub(super) fn read_secret(path: &Path, what: &str) -> Result<String, String> {
    let text = fs::read_to_string(path);
    text.map(|text| text.trim().to_owned())
        .map_err(|error| format!("{}: the {what} can't be read: {error}.", path.display()))
}
