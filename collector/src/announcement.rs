//! Announcements of running servers, by which programs of the same user find them.
//!
//! A server that needs no token writes a file while it runs: `servers/PID.json` in the user's state folder
//! (`$XDG_STATE_HOME/vramscope`, or `~/.local/state/vramscope`). `vramscope watch`, `vramscope FILE` and the Python package
//! read these files, and use the newest server that answers. The folder may lie on a disk that several machines share, so
//! a file also names its machine.
//!
//! A file that was left behind by a server that was killed does no harm, because nothing answers at its address. The next
//! server on that machine removes it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::now_us;

/// The folder of announcements in the user's state folder.
const FOLDER: &str = "servers";
/// The most bytes of an announcement.
const MOST_BYTES: u64 = 4 << 10;
/// The most announcements that are looked at.
const MOST: usize = 64;
/// How long a server may take to answer. It is on this machine, which may be busy.
const ANSWER: Duration = Duration::from_secs(1);

/// A server that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Its address: `http://127.0.0.1:7070`.
    pub address: String,
    /// The number of its process.
    pub pid: u32,
    /// The name of its machine.
    pub host: String,
    /// When it started, in microseconds since the epoch.
    pub started_us: i64,
}

/// The file of a server's announcement, which is removed when this is dropped.
#[derive(Debug)]
pub struct Announced(PathBuf);

impl Drop for Announced {
    fn drop(&mut self) {
        // Whoever finds it learns that nothing answers.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns the folder for what a user's programs remember from one run to the next; `None` if the user has no home folder.
pub fn state_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    // The XDG standard demands an absolute path, and that any other is ignored.
    let state = folder("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || folder("HOME").or_else(|| folder("USERPROFILE")).map(|home| home.join(".local/state"));
    state.or_else(home).map(|state| state.join("vramscope"))
}

/// Returns the name of this machine; empty if the system does not tell.
pub fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok()));
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}

impl Announcement {
    /// Announces the server of this process in the user's state folder `state`.
    pub fn publish(state: &Path, address: SocketAddr) -> io::Result<Announced> {
        let folder = state.join(FOLDER);
        private_folder(&folder)?;
        let pid = std::process::id();
        let own = Self { address: format!("http://{address}"), pid, host: host(), started_us: now_us() };
        for (path, other) in all(&folder) {
            // The process that left it is gone: its port belongs to nobody, to somebody else, or to this one.
            if other.host == own.host && (other.address == own.address || !other.answers()) {
                let _ = fs::remove_file(path);
            }
        }
        let path = folder.join(format!("{pid}.json"));
        // Renamed, so that nobody reads half of it.
        let draft = folder.join(format!("{pid}.draft"));
        fs::File::create(&draft)?.write_all(&serde_json::to_vec(&own)?)?;
        fs::rename(&draft, &path)?;
        Ok(Announced(path))
    }

    /// Returns the newest server on this machine that answers.
    pub fn newest(state: &Path) -> Option<Self> {
        known(state).into_iter().find(Self::answers)
    }

    /// Returns all servers on this machine that answer, the newest first.
    pub fn all(state: &Path) -> Vec<Self> {
        let mut found = known(state);
        found.retain(Self::answers);
        found
    }

    /// Whether a server answers at the address.
    pub fn answers(&self) -> bool {
        self.ask().unwrap_or(false)
    }

    fn ask(&self) -> io::Result<bool> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let address = self.address.strip_prefix("http://").and_then(|address| address.parse::<SocketAddr>().ok());
        let address = address.filter(|address| address.ip().is_loopback()).ok_or_else(invalid)?;
        let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        // In one piece: whatever listens there may answer and close after the first.
        let request = format!("GET /api/v1/health/live HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(MOST_BYTES).read_to_end(&mut answer)?;
        Ok(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"ok\n"))
    }
}

/// Returns the announcements of this machine, the newest first, whether or not their servers still run.
fn known(state: &Path) -> Vec<Announcement> {
    let mut found: Vec<_> = all(&state.join(FOLDER)).map(|(_, found)| found).collect();
    found.retain(|found| found.host == host());
    found.sort_by_key(|found| std::cmp::Reverse(found.started_us));
    found
}

/// Returns the announcements in a folder with their files. What cannot be read is left out.
fn all(folder: &Path) -> impl Iterator<Item = (PathBuf, Announcement)> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension() == Some(OsStr::new("json"))).take(MOST).filter_map(|path| {
        let mut bytes = Vec::new();
        fs::File::open(&path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Some((path, serde_json::from_slice(&bytes).ok()?))
    })
}

/// Creates a folder that only this user can read and write.
fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Answers one connection after another, as a server or as something else would, until the program ends.
    fn answering(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        address
    }

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n";

    fn put(state: &Path, name: &str, announcement: &Announcement) {
        fs::create_dir_all(state.join(FOLDER)).unwrap();
        fs::write(state.join(FOLDER).join(name), serde_json::to_vec(announcement).unwrap()).unwrap();
    }

    #[test]
    fn the_newest_server_that_answers_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        assert_eq!(Announcement::newest(state), None);
        let of = |address: String, host: String, started_us| Announcement { address, pid: 1, host, started_us };
        let old = of(format!("http://{}", answering(OK)), host(), 1);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        put(state, "1.json", &old);
        put(state, "2.json", &of(format!("http://{closed}"), host(), 2));
        put(state, "3.json", &of(format!("http://{}", answering("HTTP/1.1 404 Not Found\r\n\r\n")), host(), 3));
        put(state, "4.json", &of(format!("http://{}", answering(OK)), "another machine".to_owned(), 4));
        put(state, "5.json", &of("http://192.0.2.1:7070".to_owned(), host(), 5));
        fs::write(state.join(FOLDER).join("6.json"), "{").unwrap();
        assert_eq!(Announcement::newest(state), Some(old));
    }

    #[test]
    fn an_announcement_lasts_as_long_as_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let (state, address) = (folder.path(), answering(OK));
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let left = Announcement { address: format!("http://{closed}"), pid: 1, host: host(), started_us: 9 };
        put(state, "1.json", &left);
        let announced = Announcement::publish(state, address).unwrap();
        let found = Announcement::newest(state).unwrap();
        assert_eq!((found.address, found.pid), (format!("http://{address}"), std::process::id()));
        assert!(!state.join(FOLDER).join("1.json").exists(), "the file of a server that is gone is removed");
        drop(announced);
        assert_eq!(Announcement::newest(state), None);
        assert_eq!(fs::read_dir(state.join(FOLDER)).unwrap().count(), 0);
    }
}
