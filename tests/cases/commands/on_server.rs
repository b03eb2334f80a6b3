//! Where a command reads a file: jobs of a server, a shared trace, and baselines that a server keeps.

use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tests::http::{self, Response};
use tests::program;
use tests::server::Server;

/// A server, to which commands talk by its variable.
struct Site {
    server: Server,
}

impl Site {
    fn start() -> Result<Self> {
        Ok(Self { server: Server::start()? })
    }

    /// Runs the program. Returns the exit code, and what it prints, or else says.
    fn run(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let mut command = Command::new(program::path()?);
        command.args(arguments).env("VRAMSCOPE_TO", self.server.url()).env_remove("VRAMSCOPE_TOKEN");
        let output = command.output()?;
        let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        Ok((output.status.code(), String::from_utf8(said)?))
    }

    /// Runs the program, which must succeed.
    fn done(&self, arguments: &[&str]) -> Result<String> {
        let (code, said) = self.run(arguments)?;
        ensure!(code == Some(0), "{arguments:?}: {said}");
        Ok(said)
    }

    /// Trains with a batch of this size, as a job of this name.
    fn train(&self, name: &str, batch: u32) -> Result<()> {
        let batch = format!("batch={batch}");
        let to = self.server.url();
        let run =
            ["run", "transformer", "layers=2", &batch, "--steps", "3", "--rate", "0", "--to", &to, "--name", name];
        self.done(&run).map(drop)
    }

    /// Sends a request with a body, and a header.
    fn put(&self, path: &str, header: (&str, &str), body: &str) -> Result<Response> {
        let length = body.len().to_string();
        let headers = [("content-type", "application/json"), ("content-length", &length), header];
        let head = http::head("PUT", self.server.address(), path, &headers);
        http::send(self.server.address(), &format!("{head}{body}"))
    }
}

#[test]
fn jobs_and_shared_traces_are_read_like_files() -> Result<()> {
    let site = Site::start()?;
    site.train("before", 2)?;
    site.train("after", 3)?;
    let said = site.done(&["diff", "job:before", "job:after"])?;
    ensure!(said.contains("higher") && said.contains("before") && said.contains("after"), "{said}");
    let said = site.done(&["doctor", "job:after"])?;
    ensure!(said.starts_with("after\n"), "{said}");

    let folder = tests::Folder::new("on-server")?;
    let file = folder.join("usual.vramscope").to_string_lossy().into_owned();
    site.done(&["run", "transformer", "layers=2", "batch=2", "--steps", "3", "--out", &file])?;
    let link = site.done(&["push", &file, "--name", "the usual run"])?;
    let link = link.trim();
    let said = site.done(&["diff", link, "job:after"])?;
    let token = link.rsplit("s-").next().context("a link has a token")?;
    ensure!(said.contains("the usual run") && !said.contains(token), "{said}");

    // An error says what to do instead.
    for (name, words) in [
        ("job:aftre", "Did you mean after?"),
        ("job:after/7", "The job has no such rank"),
        ("baseline:none", "The server has no baseline of this name"),
        ("https://127.0.0.1/no-link", "This is not a link to a shared trace"),
    ] {
        let (code, said) = site.run(&["diff", name, "job:after"])?;
        ensure!(code == Some(2) && said.contains(words), "{name}: {said}");
    }
    Ok(())
}

#[test]
fn a_server_keeps_baselines_which_runs_are_checked_against() -> Result<()> {
    let site = Site::start()?;
    for (name, batch) in [("usual", 2), ("larger", 3)] {
        site.train(name, batch)?;
    }
    for count in ["1 run", "2 runs", "2 runs"] {
        let said = site.done(&["baseline", "set", "baseline:nightly", "job:usual", "--keep", "2"])?;
        ensure!(said.starts_with(&format!("nightly has {count}: ")), "{said}");
    }
    let (code, said) = site.run(&["diff", "baseline:nightly", "job:larger", "--fail-if", "peak+1%"])?;
    ensure!(code == Some(1), "{said}");
    let folder = tests::Folder::new("on-server-check")?;
    let config = folder.join("vramscope.toml");
    std::fs::write(&config, "baseline = \"baseline:nightly\"\n[[budget]]\nrule = \"peak+1%\"\n")?;
    let config = config.to_string_lossy();
    for (run, code) in [("job:usual", 0), ("job:larger", 1)] {
        let (got, said) = site.run(&["check", run, "--config", &config])?;
        ensure!(got == Some(code), "{run}: {said}");
    }
    // Jobs that add a run at the same time lose none.
    let add = ["baseline", "set", "baseline:together", "job:usual", "--keep", "20"];
    thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| site.done(&add))).collect();
        all.into_iter().try_for_each(|adding| adding.join().unwrap_or_else(|_| bail!("it panicked")).map(drop))
    })?;
    ensure!(site.done(&add)?.starts_with("together has 7 runs: "), "all are there");
    let (code, said) = site.run(&["baseline", "set", "baseline:../nightly", "job:usual"])?;
    ensure!(code == Some(2) && said.contains("The name of a baseline has"), "{said}");
    let (code, said) = site.run(&["baseline", "set", "job:usual", "job:usual"])?;
    ensure!(code == Some(2) && said.contains("is no baseline"), "{said}");
    Ok(())
}

#[test]
fn a_baseline_is_replaced_only_by_who_has_seen_its_last_version() -> Result<()> {
    let site = Site::start()?;
    site.train("usual", 2)?;
    site.done(&["baseline", "set", "baseline:nightly", "job:usual"])?;
    let path = "/api/v1/baselines/nightly";
    let first = site.server.get(path)?;
    let (tag, body) = (first.header("etag").to_owned(), first.text());
    let new = ("if-none-match", "*");
    let other = body.replace("usual", "other");
    for (header, body, status, code) in [
        (new, &body, 412, "changed"),
        (("if-match", "\"0\""), &body, 412, "changed"),
        (("if-match", &*tag), &other, 204, ""),
        (("if-match", &*tag), &body, 412, "changed"),
        (new, &"{}".to_owned(), 400, "malformed"),
        (new, &"{\"vramscope_baseline\":1,\"runs\":[]}".to_owned(), 400, "malformed"),
        (new, &"{\"vramscope_baseline\":9,\"runs\":[]}".to_owned(), 400, "malformed"),
        (new, &String::new(), 400, "malformed"),
    ] {
        let response = site.put(path, header, body)?;
        ensure!(response.status == status && response.text().contains(code), "{header:?} {}", response.text());
    }
    ensure!(site.server.get(path)?.text() == other, "the last version is kept");
    for name in [".hidden", "a%2Fb", "..%2F..%2Flock", &"x".repeat(65)] {
        let response = site.put(&format!("/api/v1/baselines/{name}"), new, &body)?;
        ensure!(response.status == 400, "{name}: {}", response.status);
    }
    let listed: Value = serde_json::from_slice(&site.server.get("/api/v1/baselines")?.body)?;
    ensure!(listed["baselines"].as_array().is_some_and(|all| all.len() == 1), "{listed}");
    let head = http::head("DELETE", site.server.address(), path, &[]);
    for status in [204, 404] {
        ensure!(http::send(site.server.address(), &head)?.status == status);
    }
    ensure!(site.server.get(path)?.status == 404);
    Ok(())
}
