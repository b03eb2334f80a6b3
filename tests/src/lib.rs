#![doc = include_str!("../README.md")]

mod artifact;
pub mod browser;
#[cfg(target_os = "linux")]
pub mod fakecuda;
mod folder;
pub mod http;
pub mod peer;
pub mod program;
pub mod proxy;
pub mod s3;
pub mod server;
pub mod soak;
pub mod stream;
pub mod tls;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, Result};
pub use artifact::artifact;
pub use folder::Folder;

/// Connects to a server within a time, from an address of this machine. On Linux these are all that begin with 127.
pub fn connect_from(from: Ipv4Addr, server: SocketAddr, time: Duration) -> io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        tokio::time::timeout(time, socket.connect(server)).await?
    });
    let stream = connected?.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Returns a path within the workspace.
pub fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Returns all files of a folder of the workspace and of the folders in it, sorted.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut files_in(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
