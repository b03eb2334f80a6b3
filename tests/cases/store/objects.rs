//! The program with its sealed segments in an S3 server.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, http, s3};

/// Long enough for an upload on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const STORE: &str = "s3://traces/team";

/// An S3 server with its folder, and a server's folder.
struct Place {
    objects: Folder,
    variables: Vec<(String, String)>,
}

impl Place {
    fn new() -> Result<Self> {
        let objects = Folder::new("s3")?;
        let variables = s3::serve(&objects)?;
        Ok(Self { objects, variables })
    }

    fn start(&self, folder: &Path) -> Result<Server> {
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        Server::start_logging(folder, &["--store", STORE], &variables)?.loaded()
    }

    /// Returns the objects of a session.
    fn objects(&self, session: &str) -> Vec<PathBuf> {
        let folder = self.objects.join(s3::BUCKET).join("team/segments").join(session);
        let entries = folder.read_dir().into_iter().flatten();
        entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
    }

    /// Waits until the objects of a session have a property.
    fn wait(&self, session: &str, what: &str, is_so: impl Fn(&[PathBuf]) -> bool) -> Result<()> {
        let begun = Instant::now();
        while !is_so(&self.objects(session)) {
            ensure!(begun.elapsed() < PATIENCE, "{what}: {:?}", self.objects(session));
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// Stops a server and checks that it complained about nothing.
fn stop(server: Server, folder: &Path) -> Result<()> {
    let log = server.log(folder)?;
    ensure!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
    Ok(())
}

fn send(server: &Server, stream: &Stream, batches: u64) -> Result<()> {
    let (mut peer, next) = Peer::hello(server.address(), &stream.hello)?;
    for seq in next..=batches {
        peer.batch(seq, stream.batch(seq))?;
    }
    peer.acked(batches)?;
    if batches == stream.last() {
        peer.goodbye(batches)?;
    }
    Ok(())
}

/// Checks a session's download, and what a viewer sees of it.
fn check(server: &Server, stream: &Stream) -> Result<()> {
    let session = stream.session();
    let download = server.get(&format!("/api/v1/sessions/{session}/trace?format=vramscope"))?;
    ensure!(download.status == 200 && download.body == stream.file, "{} bytes", download.body.len());
    ensure!(server.get(&format!("/api/v1/sessions/{session}/trace?format=pickle"))?.status == 200);
    ensure!(server.get(&format!("/api/v1/sessions/{session}/stats"))?.status == 200);
    let (batches, gaps) = Peer::viewer(server.address(), session, 0)?.batches(stream.last())?;
    ensure!(gaps.is_empty() && batches.len() as u64 == stream.last(), "{} batches, {gaps:?}", batches.len());
    Ok(())
}

fn shown(server: &Server, session: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&server.get(&format!("/api/v1/sessions/{session}"))?.body)?)
}

#[test]
fn a_server_keeps_its_sessions_in_an_object_store() -> Result<()> {
    let place = Place::new()?;
    let (first, second) = (Folder::new("first")?, Folder::new("second")?);
    let (ended, cut) = (Stream::new(500, 10, 200), Stream::new(501, 10, 200));
    let server = place.start(&first)?;
    send(&server, &ended, ended.last())?;
    send(&server, &cut, 5)?;
    check(&server, &ended)?;
    place.wait(ended.session(), "the segment that ended arrives", |objects| objects.len() == 1)?;
    check(&server, &ended)?;
    let head = format!("PUT /api/v1/sessions/{}/pin HTTP/1.1\r\nHost: {}\r\n", ended.session(), server.address());
    let body = "{\"pinned\":true}";
    let request = format!(
        "{head}Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    ensure!(http::send(server.address(), &request)?.status == 204);
    stop(server, &first)?;

    // Another machine takes over: what was uploaded is there, with its marks.
    let server = place.start(&second)?;
    ensure!(shown(&server, ended.session())?["pinned"] == true);
    check(&server, &ended)?;
    stop(server, &second)?;

    // On the first one, the session that was cut goes on, and the other is deleted.
    let server = place.start(&first)?;
    send(&server, &cut, cut.last())?;
    check(&server, &cut)?;
    let head = http::head("DELETE", server.address(), &format!("/api/v1/sessions/{}", ended.session()), &[]);
    ensure!(http::send(server.address(), &head)?.status == 204);
    ensure!(place.objects(ended.session()).is_empty());
    place.wait(cut.session(), "all of it arrives", |objects| !objects.is_empty())?;
    check(&server, &cut)?;
    stop(server, &first)
}

#[test]
fn a_server_says_why_it_cannot_use_an_object_store() -> Result<()> {
    let (folder, place) = (Folder::new("refused")?, Place::new()?);
    let wrong: Vec<_> =
        place.variables.iter().map(|(name, value)| (&**name, value.replace("secret", "guess"))).collect();
    let wrong: Vec<_> = wrong.iter().map(|(name, value)| (*name, &**value)).collect();
    for (url, variables, want) in
        [(STORE, &wrong[..], "credentials"), ("ftp://traces", &[], "ftp://traces"), ("traces", &[], "traces")]
    {
        let mut command = std::process::Command::new(tests::program::path()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&*folder).args(["--store", url]);
        let output = command.envs(variables.iter().copied()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && said.contains(want) && !said.contains("panicked"), "{url}: {said}");
    }
    Ok(())
}
