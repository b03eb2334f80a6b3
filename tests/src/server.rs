//! A server of the built program on a free port, for as long as the value lives.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{http, program};

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts one, and waits until it answers.
    pub fn start() -> Result<Self> {
        let mut child = Command::new(program::path()?)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the server")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.and_then(|address| address.parse().ok());
        let server = Self { address: address.with_context(|| format!("no address in {line:?}"))?, child };
        ensure!(server.get("/healthz")?.status == 200, "the server is not well");
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of its page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Asks it for `path`.
    pub fn get(&self, path: &str) -> Result<http::Response> {
        http::get(self.address, path, &[])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing left to do then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
