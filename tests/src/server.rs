//! A server of the built program on a free port, for as long as the value lives.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::{Folder, http, program};

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    /// Its folder, where nobody else cares for it.
    _folder: Option<Folder>,
}

impl Server {
    /// Starts one with a folder of its own, and waits until it answers.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// The same with further arguments.
    pub fn start_with(arguments: &[&str]) -> Result<Self> {
        let folder = Folder::new("data")?;
        let mut server = Self::start_in(&folder, arguments)?;
        server._folder = Some(folder);
        Ok(server)
    }

    /// Starts one with a folder that outlives it.
    pub fn start_in(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut all = vec!["--listen", "127.0.0.1:0"];
        all.extend(arguments);
        Self::run(folder, &all)
    }

    /// Starts one with all arguments but the folder's.
    pub fn run(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(program::path()?)
            .arg("serve")
            .arg("--data")
            .arg(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the server")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok());
        let server =
            Self { address: address.with_context(|| format!("no address in {line:?}"))?, child, _folder: None };
        ensure!(server.get("/healthz")?.status == 200, "the server is not well");
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address of its page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Asks it for `path`.
    pub fn get(&self, path: &str) -> Result<http::Response> {
        http::get(self.address, path, &[])
    }

    /// Kills it in mid-work, as `kill -9` does.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Tells it to stop; gives the seconds until it had, and whether it ended well.
    #[cfg(unix)]
    pub fn stop(mut self) -> Result<(f64, bool)> {
        let begun = Instant::now();
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(status.success(), "no signal could be sent");
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
        // It may have ended by itself; there is nothing left to do then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
