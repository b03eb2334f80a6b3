//! A running job, end to end: the program as a job, the program as a server, and failures between them. In every case the
//! server has exactly the events that the job also wrote to a file.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use format::recording::Decoder;
use serde_json::Value;
use tests::proxy::{Network, Proxy};
use tests::server::Server;
use tests::{Folder, program};
use trace::limits::ImportLimits;
use trace::{Event, Snapshot};

/// The timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A job that sends to a server and writes a file.
struct Job(Child);

impl Job {
    fn start(to: &str, out: &Path, steps: u32, rate: u32) -> Result<Self> {
        let mut command = Command::new(program::path()?);
        command.args(["run", "transformer", "--json", "--to", to, "--out"]).arg(out);
        command.args(["--steps", &steps.to_string(), "--rate", &rate.to_string()]);
        Ok(Self(command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().context("starting the job")?))
    }

    /// Waits for the job's end and returns its last line.
    fn finish(self) -> Result<Value> {
        let output = self.0.wait_with_output()?;
        let text = String::from_utf8(output.stdout)?;
        let last = text.lines().last().context("the job printed nothing")?;
        serde_json::from_str(last).with_context(|| format!("no JSON: {last}"))
    }
}

/// Calls `ask` until it returns a value.
fn until<T>(what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        // A server that is being restarted does not answer.
        if let Ok(Some(found)) = ask() {
            return Ok(found);
        }
        if start.elapsed() > TIMEOUT {
            bail!("{what}: timed out after {TIMEOUT:?}");
        }
        sleep(Duration::from_millis(50));
    }
}

fn json(server: &Server, path: &str) -> Result<Value> {
    let response = server.get(path)?;
    ensure!(response.status == 200, "{path}: {} {}", response.status, response.text());
    Ok(serde_json::from_slice(&response.body)?)
}

/// Returns a server's sessions.
fn sessions(server: &Server) -> Result<Vec<Value>> {
    Ok(json(server, "/api/v1/sessions")?["sessions"].as_array().cloned().unwrap_or_default())
}

fn session(server: &Server, id: &str) -> Result<Value> {
    json(server, &format!("/api/v1/sessions/{id}"))
}

/// Downloads a session's trace.
fn trace(server: &Server, id: &str) -> Result<Vec<u8>> {
    let response = server.get(&format!("/api/v1/sessions/{id}/trace?format=vramscope"))?;
    ensure!(response.status == 200, "the trace: {} {}", response.status, response.text());
    Ok(response.body)
}

fn read(bytes: &[u8]) -> Result<Snapshot> {
    let mut decoder = Decoder::new(ImportLimits::default());
    decoder.push(bytes)?;
    Ok(decoder.finish()?.0)
}

/// Checks that two recordings have the same content, and returns their number of events.
fn check_equal(got: &[u8], want: &[u8]) -> Result<u64> {
    let (got, want) = (read(got)?, read(want)?);
    ensure!(got.symbols.stack_count() == want.symbols.stack_count(), "the stacks differ");
    ensure!(got.devices.len() == want.devices.len(), "the devices differ");
    let mut count = 0;
    for (got, want) in got.devices.iter().zip(&want.devices) {
        ensure!(got.losses.is_empty() && want.losses.is_empty(), "events are missing");
        let events = |trace: &trace::DeviceTrace| trace.events.iter().collect::<Vec<Event>>();
        let (have, wanted) = (events(got), events(want));
        ensure!(have.len() == wanted.len(), "{} events, and {} in the file", have.len(), wanted.len());
        for (i, pair) in have.iter().zip(&wanted).enumerate() {
            ensure!(pair.0 == pair.1, "event {i}: {:?}, and in the file {:?}", pair.0, pair.1);
        }
        ensure!(got.segments == want.segments, "the segments differ");
        ensure!(got.annotations == want.annotations, "the marks differ");
        count += have.len() as u64;
    }
    Ok(count)
}

/// Waits until a session is in a state, and returns the session.
fn in_state(server: &Server, id: &str, state: &str) -> Result<Value> {
    until(&format!("{id} {state}"), || Ok(Some(session(server, id)?).filter(|found| found["state"] == state)))
}

/// Checks that the job succeeded and that the server has what is in its file.
fn check_complete(server: &Server, report: &Value, out: &Path) -> Result<()> {
    let id = report["session"].as_str().context("the job printed no session")?;
    let found = in_state(server, id, "ended")?;
    let events = check_equal(&trace(server, id)?, &std::fs::read(out)?)?;
    ensure!(events > 1_000, "too few events to show anything: {events}");
    for (name, want) in [("events_sent", events), ("events_lost", 0)] {
        ensure!(report[name] == want, "{name}: {} and not {want}", report[name]);
    }
    ensure!(found["events"] == events && found["lost"] == 0, "{found}");
    Ok(())
}

#[test]
fn a_job_is_visible_while_it_runs_and_its_trace_equals_its_file() -> Result<()> {
    let folder = Folder::new("whole")?;
    let (server, out) = (Server::start()?, folder.join("whole.vramscope"));
    let job = Job::start(&server.url(), &out, 40, 20_000)?;
    let early = until("a live session", || {
        Ok(sessions(&server)?.into_iter().find(|s| s["state"] == "live" && s["events"].as_u64() > Some(0)))
    })?;
    let id = early["id"].as_str().context("no id")?.to_owned();
    let later = until("more events", || {
        Ok(Some(session(&server, &id)?).filter(|s| s["events"].as_u64() > early["events"].as_u64()))
    })?;
    ensure!(later["devices"][0]["reserved"].as_u64() > Some(0), "{later}");
    // The trace of a running job can be read.
    ensure!(read(&trace(&server, &id)?)?.devices.len() == 1, "the trace of a running job");
    let report = job.finish()?;
    ensure!(report["session"] == id.as_str(), "{report}");
    check_complete(&server, &report, &out)
}

/// Starts a server at the address and with the data of an earlier one.
fn restart(folder: &Path, address: SocketAddr) -> Result<Server> {
    Server::run(folder, &["--listen", &address.to_string()])
}

#[test]
fn a_server_that_is_killed_ten_times_has_every_event_once_and_in_order() -> Result<()> {
    let folder = Folder::new("killed")?;
    let (data, out) = (folder.join("data"), folder.join("killed.vramscope"));
    let mut server = Server::start_in(&data, &[])?;
    let job = Job::start(&server.url(), &out, 150, 20_000)?;
    until("a live session", || Ok(sessions(&server)?.pop()))?;
    for round in 0..10_u64 {
        sleep(Duration::from_millis(300 + 71 * round));
        let address = server.address();
        server.kill()?;
        server = restart(&data, address)?;
    }
    let report = job.finish()?;
    check_complete(&server, &report, &out)
}

#[test]
fn a_cut_network_loses_nothing() -> Result<()> {
    let folder = Folder::new("cut")?;
    let server = Server::start()?;
    for (network, seconds) in [(Network::Silent, cut_seconds()), (Network::Closed, 3)] {
        // The job must last longer than the cut. It makes some six steps a second.
        let steps = 60 + 8 * seconds as u32;
        let out = folder.join(format!("{network:?}.vramscope"));
        let proxy = Proxy::to(server.address())?;
        let before = sessions(&server)?.len();
        let job = Job::start(&format!("http://{}", proxy.address()), &out, steps, 20_000)?;
        until("a live session", || Ok(Some(()).filter(|()| sessions(&server).is_ok_and(|all| all.len() > before))))?;
        proxy.set(network);
        sleep(Duration::from_secs(seconds));
        proxy.set(Network::Up);
        check_complete(&server, &job.finish()?, &out)?;
    }
    Ok(())
}

/// Returns how long the network is cut: `VRAMSCOPE_CUT_SECONDS`, or some seconds.
fn cut_seconds() -> u64 {
    std::env::var("VRAMSCOPE_CUT_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

#[test]
fn a_killed_job_is_lost_and_its_received_events_are_kept() -> Result<()> {
    let folder = Folder::new("lost")?;
    let server = Server::start()?;
    let mut job = Job::start(&server.url(), &folder.join("lost.vramscope"), 100_000, 20_000)?;
    let found = until("events", || Ok(sessions(&server)?.into_iter().find(|s| s["events"].as_u64() > Some(10_000))))?;
    job.0.kill()?;
    job.0.wait()?;
    let id = found["id"].as_str().context("no id")?;
    let found = in_state(&server, id, "lost")?;
    let events: usize = read(&trace(&server, id)?)?.devices.iter().map(|device| device.events.len()).sum();
    ensure!(found["events"] == events && events > 10_000, "{found}, and {events} in its trace");
    Ok(())
}

#[test]
fn two_jobs_with_the_same_name_are_two_sessions() -> Result<()> {
    let folder = Folder::new("two")?;
    let server = Server::start()?;
    let outs = [folder.join("one.vramscope"), folder.join("two.vramscope")];
    let jobs = outs.iter().map(|out| Job::start(&server.url(), out, 30, 20_000)).collect::<Result<Vec<_>>>()?;
    for (job, out) in jobs.into_iter().zip(&outs) {
        check_complete(&server, &job.finish()?, out)?;
    }
    let all = sessions(&server)?;
    ensure!(all.len() == 2 && all[0]["name"] == all[1]["name"] && all[0]["id"] != all[1]["id"], "{all:?}");
    Ok(())
}

#[test]
fn a_server_that_starts_after_the_job_receives_all_of_it() -> Result<()> {
    let folder = Folder::new("late")?;
    let (data, out) = (folder.join("data"), folder.join("late.vramscope"));
    // Reserves a port for later.
    let server = Server::start_in(&data, &[])?;
    let (address, url) = (server.address(), server.url());
    server.kill()?;
    let job = Job::start(&url, &out, 150, 20_000)?;
    sleep(Duration::from_secs(3));
    check_complete(&restart(&data, address)?, &job.finish()?, &out)
}
