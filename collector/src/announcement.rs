//! Announcements of running servers, by which programs of the same user find them.
//!
//! A server that was given no tokens writes a file while it runs: `servers/PID.json` in the user's state folder
//! (`$XDG_STATE_HOME/vramscope`, or `~/.local/state/vramscope`). `vramscope watch`, `vramscope FILE` and the Python package
//! read these files, and use the newest server that answers. The folder may lie on a disk that several machines share, so
//! a file also names its machine.
//!
//! The file also holds what the server made for the user's own programs ([`Keys`]): the secret with which `vramscope FILE`
//! has a file of the machine opened, and the token that every request needs where the system doesn't tell users apart. So
//! nobody else may read the folder: one that others can access, that belongs to another user, or that is a link, is not used.
//!
//! A file that was left behind by a server that was killed does no harm, because nothing answers at its address, and no other
//! server accepts what is in it. The next server on that machine removes it.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::access::{Keys, create_private_folder, is_private_folder, read_own, write_private};
use crate::clock::now_us;
use crate::host_name::host_name;

/// The folder of announcements in the user's state folder.
const FOLDER: &str = "servers";
/// The file beside the announcements that leads the browser to an address with a token.
pub const DOOR: &str = "open.html";
/// The most bytes of an announcement.
const MOST_BYTES: u64 = 4 << 10;
/// The most announcements that are looked at.
const MOST: usize = 64;
/// How long a server may take to answer. It is on this machine, which may be busy.
const ANSWER: Duration = Duration::from_secs(1);

/// A server that runs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Its address: `http://127.0.0.1:7070`.
    pub address: String,
    /// The number of its process.
    pub pid: u32,
    /// The name of its machine.
    pub host: String,
    /// When it started, in microseconds since the epoch.
    pub started_us: i64,
    /// [`Keys::secret`]; `None` for a server that was given its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// [`Keys::token`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Whether a program started it, so that no person waits before a terminal that could stop it.
    #[serde(default)]
    pub is_background: bool,
}

/// Leaves out the secret and the token.
impl fmt::Debug for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, pid, host, started_us, .. } = self;
        let mut shown = f.debug_struct("Announcement");
        shown.field("address", address).field("pid", pid).field("host", host).field("started_us", started_us);
        shown.finish_non_exhaustive()
    }
}

/// The file of a server's announcement, which is removed when this is dropped.
#[derive(Debug)]
pub struct Announced(PathBuf);

impl Drop for Announced {
    fn drop(&mut self) {
        // Whoever finds it learns that nothing answers.
        let _ = fs::remove_file(&self.0);
        // The token that it leads with ends with the server.
        let _ = fs::remove_file(self.0.with_file_name(DOOR));
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

/// Returns the folder of announcements in the user's state folder `state`.
pub fn announcements(state: &Path) -> PathBuf {
    state.join(FOLDER)
}

/// Returns the token that every request to a server needs, if a server of this user at that address announced one.
pub fn token_at(address: &str) -> Option<String> {
    let found = known(&state_folder()?).ok()?.into_iter().find(|found| found.is_at(address));
    found?.token
}

impl Announcement {
    /// Announces the server of this process in the user's state folder `state`. Returns a sentence for people on failure.
    pub fn publish(
        state: &Path,
        address: SocketAddr,
        keys: Option<&Keys>,
        is_background: bool,
    ) -> Result<Announced, String> {
        let folder = announcements(state);
        create_private_folder(&folder)?;
        let pid = std::process::id();
        let own = Self {
            address: format!("http://{address}"),
            pid,
            host: host_name(),
            started_us: now_us(),
            secret: keys.map(|keys| keys.secret.clone()),
            token: keys.and_then(|keys| keys.token.clone()),
            is_background,
        };
        for (path, other) in all(&folder) {
            // The process that left it is gone: its port belongs to nobody, to somebody else, or to this one.
            if other.host == own.host && (other.address == own.address || !other.answers()) {
                let _ = fs::remove_file(path);
            }
        }
        let path = folder.join(format!("{pid}.json"));
        let written = serde_json::to_vec(&own).map_err(io::Error::from).and_then(|text| write_private(&path, &text));
        written.map_err(|error| format!("{} can't be written: {error}.", path.display()))?;
        Ok(Announced(path))
    }

    /// Returns the newest server on this machine that answers; a sentence for people if the folder is not to be trusted.
    pub fn newest(state: &Path) -> Result<Option<Self>, String> {
        Ok(known(state)?.into_iter().find(Self::answers))
    }

    /// Returns all servers on this machine that answer, the newest first; a sentence for people if the folder is not to be
    /// trusted.
    pub fn all(state: &Path) -> Result<Vec<Self>, String> {
        let mut found = known(state)?;
        found.retain(Self::answers);
        Ok(found)
    }

    /// Whether its file is still there: a server that stops removes it last.
    pub fn is_published(&self, state: &Path) -> bool {
        announcements(state).join(format!("{}.json", self.pid)).exists()
    }

    /// Whether its address is this one. Another name of this machine may lead to another server.
    fn is_at(&self, address: &str) -> bool {
        let authority = |address: &str| {
            let rest = address.trim().split_once("://").map_or(address.trim(), |(_, rest)| rest);
            rest.trim_end_matches('/').to_owned()
        };
        !address.trim().starts_with("https:") && authority(&self.address) == authority(address)
    }

    /// Whether a server answers at the address.
    pub fn answers(&self) -> bool {
        answers(&self.address)
    }
}

/// Whether a server of this machine answers at an address: `http://127.0.0.1:7070`.
pub fn answers(address: &str) -> bool {
    let address = address.strip_prefix("http://").and_then(|address| address.parse::<SocketAddr>().ok());
    address.filter(|address| address.ip().is_loopback()).is_some_and(|address| ask(address).unwrap_or(false))
}

fn ask(address: SocketAddr) -> io::Result<bool> {
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

/// Returns the announcements of this machine, the newest first, whether or not their servers still run.
fn known(state: &Path) -> Result<Vec<Announcement>, String> {
    let folder = announcements(state);
    if !is_private_folder(&folder)? {
        return Ok(Vec::new());
    }
    let mut found: Vec<_> = all(&folder).map(|(_, found)| found).collect();
    found.retain(|found| found.host == host_name());
    found.sort_by_key(|found| std::cmp::Reverse(found.started_us));
    Ok(found)
}

/// Returns the announcements in a folder with their files. What cannot be read, or is not of this user, is left out.
fn all(folder: &Path) -> impl Iterator<Item = (PathBuf, Announcement)> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension() == Some(OsStr::new("json"))).take(MOST).filter_map(|path| {
        let found = serde_json::from_str(&read_own(&path, MOST_BYTES)?).ok()?;
        Some((path, found))
    })
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

    fn of(address: String, host: String, started_us: i64) -> Announcement {
        Announcement { address, pid: 1, host, started_us, secret: None, token: None, is_background: false }
    }

    fn put(state: &Path, name: &str, announcement: &Announcement) {
        create_private_folder(&state.join(FOLDER)).unwrap();
        fs::write(state.join(FOLDER).join(name), serde_json::to_vec(announcement).unwrap()).unwrap();
    }

    #[test]
    fn the_newest_server_that_answers_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        assert_eq!(Announcement::newest(state), Ok(None));
        let old = of(format!("http://{}", answering(OK)), host_name(), 1);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        put(state, "1.json", &old);
        put(state, "2.json", &of(format!("http://{closed}"), host_name(), 2));
        put(state, "3.json", &of(format!("http://{}", answering("HTTP/1.1 404 Not Found\r\n\r\n")), host_name(), 3));
        put(state, "4.json", &of(format!("http://{}", answering(OK)), "another machine".to_owned(), 4));
        put(state, "5.json", &of("http://192.0.2.1:7070".to_owned(), host_name(), 5));
        fs::write(state.join(FOLDER).join("6.json"), "{").unwrap();
        assert_eq!(Announcement::newest(state), Ok(Some(old)));
    }

    #[test]
    fn an_announcement_lasts_as_long_as_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let (state, address) = (folder.path(), answering(OK));
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        put(state, "1.json", &of(format!("http://{closed}"), host_name(), 9));
        let keys = Keys { secret: "secret".to_owned(), token: Some("token".to_owned()) };
        let announced = Announcement::publish(state, address, Some(&keys), false).unwrap();
        let found = Announcement::newest(state).unwrap().unwrap();
        assert_eq!((found.secret.as_deref(), found.token.as_deref()), (Some("secret"), Some("token")));
        assert!(!format!("{found:?}").contains("secret"));
        #[cfg(unix)]
        {
            let mode = |path: PathBuf| std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).unwrap()) & 0o7777;
            let file = format!("{}.json", std::process::id());
            assert_eq!((mode(state.join(FOLDER)), mode(state.join(FOLDER).join(file))), (0o700, 0o600));
        }
        assert_eq!((found.address, found.pid), (format!("http://{address}"), std::process::id()));
        assert!(!state.join(FOLDER).join("1.json").exists(), "the file of a server that is gone is removed");
        drop(announced);
        assert_eq!(Announcement::newest(state), Ok(None));
        assert_eq!(fs::read_dir(state.join(FOLDER)).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_can_access_is_neither_read_nor_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (state, servers) = (folder.path(), folder.path().join(FOLDER));
        put(state, "1.json", &of(format!("http://{}", answering(OK)), host_name(), 1));
        assert!(Announcement::newest(state).unwrap().is_some());
        fs::set_permissions(&servers, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = Announcement::publish(state, answering(OK), None, true).unwrap_err();
        assert!(refused.contains("chmod 700 "), "{refused}");
        assert_eq!((Announcement::newest(state), Announcement::all(state)), (Err(refused.clone()), Err(refused)));
        assert_eq!(fs::read_dir(&servers).unwrap().count(), 1);
    }

    #[test]
    fn a_token_is_for_the_very_address_that_was_announced() {
        let announced = of("http://127.0.0.1:7070".to_owned(), host_name(), 1);
        for (address, is_at) in [
            ("http://127.0.0.1:7070", true),
            (" http://127.0.0.1:7070/ ", true),
            ("127.0.0.1:7070", true),
            ("http://localhost:7070", false),
            ("http://[::1]:7070", false),
            ("https://127.0.0.1:7070", false),
            ("http://127.0.0.1:7071", false),
            ("http://127.0.0.1:7070/tools", false),
        ] {
            assert_eq!(announced.is_at(address), is_at, "{address}");
        }
    }
}
