//! `vramscope push` and `vramscope unshare`: share a trace by a link, and take it back.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use recorder::publish::Destination;
use trace::units::{Bytes, Moment};

use super::destination::{destination, read_password, server_to_use};
use super::message::tell;
use super::progress::Progress;
use super::read::name_of;
use super::redaction::{RedactedCopy, RedactionOptions};
use super::{print, refuse, show};
use crate::remote::{LinkAddress, Offer, Pushed, Remote};

/// The options of `push`.
#[derive(Args, Debug)]
pub(super) struct Push {
    /// Memory snapshot (pickle or JSON) or recording (.vramscope); plain, .gz or .zst; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Server to share it on, at http://HOST:PORT or https://HOST:PORT [default: the variable VRAMSCOPE_TO, or your newest server
    /// on this machine]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Name of the link [default: that of the recording or of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Time until the link expires, such as 12h or 30d, or never [default: 30d, or less if the server allows only less]
    #[arg(long, value_name = "TIME", value_parser = expiry)]
    expires: Option<Expiry>,
    /// File with a password that the link asks for; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Let everybody who reaches the server open the link, also without a token; the server has to allow it
    #[arg(long)]
    public: bool,
    #[command(flatten)]
    redaction: RedactionOptions,
    #[command(flatten)]
    server: ServerOptions,
}

/// How a command shows itself to a server.
#[derive(Args, Debug)]
pub(super) struct ServerOptions {
    /// File with the server's token; `-` reads standard input [default: the variable VRAMSCOPE_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with the certificates to trust instead of the system's: of a company's authority, or the server's own
    /// [default: the variable VRAMSCOPE_CA_FILE]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl ServerOptions {
    /// Prepares requests to a server, which an option named.
    pub(super) fn remote(&self, option: &str, url: &str) -> Result<Remote, String> {
        Remote::new(&self.destination(option, url)?)
    }

    /// Returns a server, which an option named.
    pub(super) fn destination(&self, option: &str, url: &str) -> Result<Destination, String> {
        destination(option, url, self.token_file.as_deref(), self.ca_file.as_deref())
    }

    /// Returns the file with the certificates to trust, if the option names one.
    pub(super) fn ca_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }
}

/// When a link expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expiry(Option<u64>);

/// Reads when a link expires.
fn expiry(text: &str) -> Result<Expiry, String> {
    if text == "never" {
        return Ok(Expiry(None));
    }
    let how = "write a number of minutes, hours or days, such as 90m, 12h or 30d, or never";
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(how.to_owned()),
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds)) {
        Some(0) => Err("the link would expire at once".to_owned()),
        whole => whole.map(|whole| Expiry(Some(whole))).ok_or_else(|| how.to_owned()),
    }
}

/// Runs a request to its end.
pub(super) fn wait<T>(request: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("Requests can't be sent: {error}."))?.block_on(request)
}

impl Push {
    /// Shares the trace, and prints the link.
    pub(super) fn run(self) -> ExitCode {
        if self.redaction.preview {
            return match self.copy() {
                Ok(copy) => show(&copy.summary()),
                Err(sentence) => refuse(&sentence),
            };
        }
        match self.push() {
            Ok(pushed) => {
                tell(&self.told(&pushed));
                print(|out| writeln!(out, "{}", pushed.address))
            }
            Err(sentence) => refuse(&sentence),
        }
    }

    /// Returns what is said about a new link beside its address.
    fn told(&self, Pushed { address, delete_token, bytes, expires_us, has_password, is_public }: &Pushed) -> String {
        let readers = match is_public {
            true => "everybody who reaches the server",
            false => "everybody whom the server lets read",
        };
        let password = if *has_password { " and knows its password" } else { "" };
        let until = expires_us.map_or_else(
            || "It never expires.".to_owned(),
            |us| format!("It expires on {}.", Moment::at(us).to_minute()),
        );
        let here = match LinkAddress::parse(address).is_ok_and(|link| link.is_local()) {
            true => "The address of the link is that of this machine, and opens nowhere else.\n",
            false => "",
        };
        format!(
            "Shared {}. The link opens for {readers}{password}. {until}\n{here}Delete token, for vramscope unshare: {delete_token}\n",
            Bytes(*bytes)
        )
    }

    fn copy(&self) -> Result<RedactedCopy, String> {
        self.redaction.copy_of(&self.file).map_err(|sentence| format!("{}: {sentence}", name_of(&self.file)))
    }

    fn push(&self) -> Result<Pushed, String> {
        let (option, url) = server_to_use(self.to.clone())?;
        let remote = self.server.remote(option, &url)?;
        let password = self.password_file.as_deref().map(read_password).transpose()?;
        let copy = self.copy()?;
        let recording = copy.shareable();
        let offer = Offer {
            name: self.name.clone().unwrap_or_else(|| copy.name().to_owned()),
            expires_seconds: self.expires.map(|Expiry(seconds)| seconds),
            password,
            is_public: self.public,
        };
        tell(&copy.brief());
        let progress = Progress::new("Sharing the trace");
        wait(remote.push(&recording, &offer, &mut |done, all| progress.bytes("Sent", done, all)))
    }
}

/// The options of `unshare`.
#[derive(Args, Debug)]
pub(super) struct Unshare {
    /// The link. Its delete token, which `push` printed, is asked for on the terminal, or read from standard input
    #[arg(value_name = "LINK")]
    link: String,
    #[command(flatten)]
    server: ServerOptions,
}

impl Unshare {
    /// Deletes the link, with the token that is read from standard input.
    pub(super) fn run(self) -> ExitCode {
        match self.delete() {
            Ok(()) => print(|out| writeln!(out, "The link is deleted.")),
            Err(sentence) => refuse(&sentence),
        }
    }

    fn delete(&self) -> Result<(), String> {
        let LinkAddress { server, token } = LinkAddress::parse(&self.link)?;
        let remote = self.server.remote("LINK", &server)?;
        if io::stdin().is_terminal() {
            tell("Delete token: ");
        }
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.map_err(|error| format!("The delete token can't be read: {error}."))?;
        let delete_token = line.trim();
        if delete_token.is_empty() {
            return Err("No delete token was given. Enter the one that was shown when the link was made.".to_owned());
        }
        wait(remote.delete(&token, delete_token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, want) in [
            ("never", Some(None)),
            ("90m", Some(Some(5_400))),
            ("12h", Some(Some(43_200))),
            ("30d", Some(Some(2_592_000))),
            ("30", None),
            ("0d", None),
            ("", None),
            ("-1d", None),
            ("1y", None),
            ("99999999999999999999d", None),
        ] {
            assert_eq!(expiry(text).ok(), want.map(Expiry), "{text}");
        }
    }
}
