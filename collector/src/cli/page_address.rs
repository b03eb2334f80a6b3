//! The address of the page that opens files of this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::browser;
use crate::server::LocalFiles;

/// Gives files an address on the server of this process. `token` is what the page needs. Returns the address that opens them.
pub(super) fn offered(
    files: &LocalFiles,
    paths: &[PathBuf],
    server: SocketAddr,
    token: Option<&str>,
) -> Result<String, String> {
    let parts = paths.iter().map(|path| {
        let address = files.offer(path)?;
        Ok(address.trim_start_matches("api/v1/files/").to_owned())
    });
    Ok(page_address(&format!("http://{server}/"), token, &parts.collect::<Result<Vec<_>, String>>()?))
}

/// Returns the address of the page that opens files, given the token that it needs and their parts `ID/NAME`.
pub(super) fn page_address(page: &str, token: Option<&str>, parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| format!("open={part}")).collect();
    format!("{page}#{}{}", browser::token_part(token), parts.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_files_share_one_address() {
        let parts = ["1/a.pickle".to_owned(), "2/b%20c.pickle".to_owned()];
        for (token, want) in [
            (None, "http://127.0.0.1:7070/#open=1/a.pickle&open=2/b%20c.pickle"),
            (Some("0a"), "http://127.0.0.1:7070/#token=0a&open=1/a.pickle&open=2/b%20c.pickle"),
        ] {
            assert_eq!(page_address("http://127.0.0.1:7070/", token, &parts), want);
        }
    }
}
