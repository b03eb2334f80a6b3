//! The program with its sealed segments in an S3 server.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;
use tests::peer::Peer;
use tests::server::Server;
use tests::stream::Stream;
use tests::{Folder, files_in, http, s3};
use wire::Hello;

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
        self.start_unready(folder)?.loaded()
    }

    /// Starts a server, and doesn't wait until it has looked through the store.
    fn start_unready(&self, folder: &Path) -> Result<Server> {
        let variables: Vec<_> = self.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        Server::start_logging(folder, &["--store", STORE], &variables)
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
    // Like every collector, it says which batch it still has.
    let hello = Hello { first: 1, ..stream.hello.clone() };
    let (mut peer, next) = Peer::hello(server.address(), &hello)?;
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

/// An object store that accepts every request and never answers. Returns the variables that a client needs.
fn silent() -> Result<Vec<(String, String)>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        let sockets: Vec<_> = listener.incoming().collect();
        drop(sockets);
    });
    let variables = [
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_ENDPOINT", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    Ok(variables.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

#[test]
fn a_store_that_never_answers_keeps_no_job_and_no_stop_waiting() -> Result<()> {
    let (folder, objects) = (Folder::new("silent")?, Folder::new("s3")?);
    let stream = Stream::new(502, 10, 200);
    let place = Place { objects, variables: silent()? };
    let begun = Instant::now();
    let server = place.start_unready(&folder)?;
    ensure!(begun.elapsed() < Duration::from_secs(10), "the port opened after {:?}", begun.elapsed());
    let ready = server.get("/api/v1/health/ready")?;
    ensure!(ready.status == 503 && ready.text().contains("has not answered"), "{} {}", ready.status, ready.text());
    let begun = Instant::now();
    send(&server, &stream, stream.last())?;
    ensure!(begun.elapsed() < Duration::from_secs(10), "a new job waited {:?}", begun.elapsed());
    let (seconds, is_good) = server.stop()?;
    ensure!(is_good && seconds < 12.0, "it took {seconds} s to stop");

    // The store answers again: what was recorded meanwhile arrives there.
    let place = Place { variables: s3::serve(&place.objects)?, ..place };
    let server = place.start(&folder)?;
    check(&server, &stream)?;
    place.wait(stream.session(), "it arrives", |objects| objects.len() == 1)?;
    ensure!(server.get("/api/v1/health/ready")?.status == 200);
    stop(server, &folder)
}

#[test]
fn a_segment_that_the_store_refuses_keeps_no_other_waiting() -> Result<()> {
    let (place, folder) = (Place::new()?, Folder::new("refusing")?);
    let streams: Vec<Stream> = (510..514).map(|seed| Stream::new(seed, 4, 50)).collect();
    let segments = place.objects.join(s3::BUCKET).join("team/segments");
    std::fs::create_dir_all(&segments)?;
    // A file stands where its folder should be.
    let [refused, others @ ..] = &streams[..] else { anyhow::bail!("no streams") };
    std::fs::write(segments.join(refused.session()), b"")?;
    let server = place.start(&folder)?;
    for stream in &streams {
        send(&server, stream, stream.last())?;
    }
    for stream in others {
        place.wait(stream.session(), "the others arrive", |objects| objects.len() == 1)?;
    }
    let begun = Instant::now();
    while !server.get("/metrics")?.text().contains("\nvramscope_uploads_waiting 1\n") {
        ensure!(begun.elapsed() < PATIENCE, "{}", server.get("/metrics")?.text());
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_file(segments.join(refused.session()))?;
    place.wait(refused.session(), "it arrives, too", |objects| objects.len() == 1)?;
    streams.iter().try_for_each(|stream| check(&server, stream))
}

/// An object that is deleted behind the server's back must be missed, whenever the server was killed.
#[test]
fn a_session_whose_object_is_gone_is_there_or_missed_after_a_kill() -> Result<()> {
    let (place, folder) = (Place::new()?, Folder::new("behind")?);
    let stream = Stream::new(520, 10, 200);
    let gone = || -> Result<()> {
        place.wait(stream.session(), "it arrives", |objects| objects.len() == 1)?;
        Ok(place.objects(stream.session()).iter().try_for_each(std::fs::remove_file)?)
    };
    let server = place.start(&folder)?;
    send(&server, &stream, stream.last())?;
    gone()?;
    server.kill()?;
    // The catalogue didn't know it yet, so its local file was still there.
    let server = place.start(&folder)?;
    check(&server, &stream)?;
    place.wait(stream.session(), "it arrives again", |objects| objects.len() == 1)?;
    stop(server, &folder)?;

    let server = place.start(&folder)?;
    gone()?;
    server.kill()?;
    // A server that was stopped before its catalogue knew of the object has kept its local file.
    let is_local = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent().is_some_and(|folder| folder.ends_with("wal")) && name.starts_with(stream.session())
    };
    let is_there = files_in(&folder)?.iter().any(is_local);
    let server = place.start(&folder)?;
    if is_there {
        return check(&server, &stream);
    }
    let shown = shown(&server, stream.session())?;
    ensure!(shown["notes"].to_string().contains("missing from the store"), "{shown}");
    ensure!(shown["lost"].as_u64().is_some_and(|lost| lost > 0), "{shown}");
    Ok(())
}
