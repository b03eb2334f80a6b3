//! A server of the built program on a free port, stopped when its value is dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustls::ClientConfig;

use crate::tls::{self, Authority, Pair};
use crate::{Folder, http, program};

/// The variable that sets the level of the log.
const LOG_VARIABLE: &str = "VRAMSCOPE_LOG";
/// The name of the log within the server's folder.
const LOG_FILE: &str = "log";

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    access: String,
    /// Whom requests trust, if the server has TLS.
    client: Option<Arc<ClientConfig>>,
    /// Its folder, unless the caller owns it.
    _folder: Option<Folder>,
}

impl Server {
    /// Starts a server with a folder of its own, and waits until it answers.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with further arguments.
    pub fn start_with(arguments: &[&str]) -> Result<Self> {
        let folder = Folder::new("data")?;
        let mut server = Self::start_in(&folder, arguments)?;
        server._folder = Some(folder);
        Ok(server)
    }

    /// Starts a server with a folder that outlives it.
    pub fn start_in(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut all = vec!["--listen", "127.0.0.1:0"];
        all.extend(arguments);
        Self::run(folder, &all)
    }

    /// Starts a server with all arguments but the folder's. It logs errors only, unless the variable says otherwise.
    pub fn run(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = Self::command(folder, arguments)?;
        if std::env::var_os(LOG_VARIABLE).is_none() {
            command.env(LOG_VARIABLE, "error");
        }
        Self::spawn(command)?.loaded()
    }

    /// Starts a server of another program than the built one.
    pub fn start_program(program: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("serve").arg("--data").arg(folder).args(["--listen", "127.0.0.1:0"]).env(LOG_VARIABLE, "error");
        Self::spawn(command)?.loaded()
    }

    /// Starts a server with TLS that logs into a file of `folder`, with a certificate that an authority has issued.
    pub fn start_encrypted(folder: &Path, authority: &Authority, arguments: &[&str]) -> Result<Self> {
        Self::start_presenting(folder, authority, &authority.issue()?, arguments)
    }

    /// Starts a server with TLS and a certificate of an authority.
    pub fn start_presenting(folder: &Path, authority: &Authority, pair: &Pair, arguments: &[&str]) -> Result<Self> {
        let pair = pair.write(folder)?;
        let pair = pair.arguments()?;
        let mut command = Self::command(folder, &[&["--listen", "127.0.0.1:0"], &pair[..], arguments].concat())?;
        command.env_remove(LOG_VARIABLE).stderr(File::create(folder.join(LOG_FILE))?);
        Self::spawn_for(command, Some(authority.client()?))
    }

    /// Starts a server that logs into a file of `folder`, with further arguments and variables. [`Self::log`] stops it and
    /// returns the log.
    pub fn start_logging(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Self> {
        let mut command = Self::command(folder, &[&["--listen", "127.0.0.1:0"], arguments].concat())?;
        command.env_remove(LOG_VARIABLE).envs(variables.iter().copied()).stderr(File::create(folder.join(LOG_FILE))?);
        Self::spawn(command)
    }

    /// Stops a server in order and returns what it logged into a file of `folder`.
    #[cfg(unix)]
    pub fn log(self, folder: &Path) -> Result<String> {
        ensure!(self.stop()?.1, "the server failed");
        Ok(fs::read_to_string(folder.join(LOG_FILE))?)
    }

    fn command(folder: &Path, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program::path()?);
        command.arg("serve").arg("--data").arg(folder).args(arguments);
        // Programs of the person who runs the tests must not find it.
        command.env("XDG_STATE_HOME", folder.join("state"));
        Ok(command)
    }

    fn spawn(command: Command) -> Result<Self> {
        Self::spawn_for(command, None)
    }

    fn spawn_for(mut command: Command, client: Option<Arc<ClientConfig>>) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn().context("starting the server")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let scheme = if client.is_some() { "https" } else { "http" };
        let address = line.strip_prefix(&format!("Vramscope is at {scheme}://"));
        let address = address.and_then(|rest| rest.split_once("/ (Ctrl-C stops it), "));
        let access = address.map(|(_, access)| access.trim_end().to_owned()).unwrap_or_default();
        let address = address.and_then(|(address, _)| address.parse().ok());
        let Some(address) = address else {
            // It may have ended with an error; it must not outlive this.
            let _ = child.kill();
            let _ = child.wait();
            anyhow::bail!("not the greeting: {line:?}");
        };
        let server = Self { address, access, child, client, _folder: None };
        ensure!(server.get("/healthz")?.status == 200, "the server is not healthy");
        Ok(server)
    }

    /// Waits until it has looked through its store, which it does while it serves.
    pub fn loaded(self) -> Result<Self> {
        while self.get("/api/v1/sessions")?.text().contains("\"loading\":true") {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(self)
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how it said that access is granted.
    pub fn access(&self) -> &str {
        &self.access
    }

    /// Returns the number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address of its page.
    pub fn url(&self) -> String {
        let scheme = if self.client.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// Sends a GET request for `path`.
    pub fn get(&self, path: &str) -> Result<http::Response> {
        match &self.client {
            Some(client) => tls::get(self.address, client, path, &[]),
            None => http::get(self.address, path, &[]),
        }
    }

    /// Kills it at once, as `kill -9` does.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends it a signal, such as `STOP`.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()?;
        ensure!(status.success(), "no signal could be sent");
        Ok(())
    }

    /// Stops it with SIGTERM. Returns the seconds that this took, and whether it succeeded.
    #[cfg(unix)]
    pub fn stop(mut self) -> Result<(f64, bool)> {
        let begun = Instant::now();
        self.signal("TERM")?;
        while begun.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.child.try_wait()? {
                return Ok((begun.elapsed().as_secs_f64(), status.success()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        anyhow::bail!("the server did not stop")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
