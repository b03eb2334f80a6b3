//! `vramscope watch`: a job under it behaves as without it, and what it recorded is summed up.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::server::Server;
use tests::{Folder, program};

/// A folder with scripts, and a server that jobs send to.
struct Bench {
    folder: Folder,
    server: Server,
}

impl Bench {
    fn new() -> Result<Self> {
        Ok(Self { folder: Folder::new("watch")?, server: Server::start()? })
    }

    /// Returns the command that watches a program, in the bench's folder.
    fn watch(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = bare(&self.folder)?;
        command.args(["watch", "--to", &self.server.url()]).args(arguments);
        Ok(command)
    }

    fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join(name);
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }
}

/// Returns the program, without what the person who runs the tests has set.
fn bare(folder: &Path) -> Result<Command> {
    let mut command = Command::new(program::path()?);
    for variable in ["VRAMSCOPE_TO", "VRAMSCOPE_OUT", "VRAMSCOPE_JOB", "PYTHONPATH", "SSH_CONNECTION"] {
        command.env_remove(variable);
    }
    command.current_dir(folder).env("XDG_STATE_HOME", folder.join("state")).env("XDG_DATA_HOME", folder.join("data"));
    command.env("VRAMSCOPE_LOG", "error");
    Ok(command)
}

/// Waits until a server has announced itself, which it does under another name first.
fn wait_for_announcement(folder: &Path) {
    let is_there = |entry: fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "json");
    let servers = || fs::read_dir(folder.join("state/vramscope/servers"));
    while !servers().is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_there))) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the lines that the program added to what the job printed.
fn own_lines(output: &Output) -> Vec<String> {
    text(&output.stderr).lines().filter_map(|line| line.strip_prefix("vramscope: ")).map(str::to_owned).collect()
}

const SCRIPT: &str = "\
import pickle, sys
class Item: pass
print(sys.argv, __file__, __name__, sys.path[0], pickle.loads(pickle.dumps(Item())).__class__.__module__)
print('trouble', file=sys.stderr)
data = sys.stdin.read()
sys.exit(len(data))
";

#[test]
fn a_script_runs_as_under_plain_python() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("train.py", SCRIPT)?;
    let input = bench.folder.join("input");
    fs::write(&input, "four")?;
    let plain = Command::new("python3")
        .args(["train.py", "--lr", "3"])
        .current_dir(&*bench.folder)
        .stdin(fs::File::open(&input)?)
        .output()
        .context("this test needs python3")?;
    let watched = bench.watch(&["train.py", "--lr", "3"])?.stdin(fs::File::open(&input)?).output()?;
    assert_eq!(text(&watched.stdout), text(&plain.stdout));
    assert_eq!((watched.status.code(), plain.status.code()), (Some(4), Some(4)));
    let lines = own_lines(&watched);
    // The package may be installed where the tests run.
    let link = format!("Watch it at {}#job=train.py-", bench.server.url());
    assert!([&*link, "Nothing will be recorded: "].iter().any(|start| lines[0].starts_with(start)), "{lines:?}");
    assert!(lines[1].starts_with("Nothing was recorded: ") && lines.len() == 2, "{lines:?}");
    let others: Vec<_> =
        text(&watched.stderr).lines().filter(|line| !line.starts_with("vramscope: ")).map(str::to_owned).collect();
    assert_eq!(others, ["trouble"]);
    Ok(())
}

#[test]
fn modules_and_other_programs_run_too() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("mod.py", "import sys\nprint(sys.argv[1:], __spec__.name)\n")?;
    for (arguments, wanted) in [
        (vec!["-m", "mod", "-m", "--to", "x"], "['-m', '--to', 'x'] mod\n"),
        (vec!["--", "sh", "-c", "echo $VRAMSCOPE_TO $0", "word"], "URL word\n"),
        (vec!["sh", "-c", "exit 0"], ""),
    ] {
        let output = bench.watch(&arguments)?.output()?;
        assert_eq!(text(&output.stdout), wanted.replace("URL", &bench.server.url()), "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {}", text(&output.stderr));
    }
    Ok(())
}

#[test]
fn the_program_ends_as_the_job_did() -> Result<()> {
    let bench = Bench::new()?;
    for (script, wanted, said) in [
        ("exit 7", (Some(7), None), None),
        ("kill -TERM $$", (None, Some(15)), Some("The job was ended by SIGTERM")),
        ("kill -KILL $$", (None, Some(9)), Some("The job was ended by SIGKILL")),
        ("sh -c 'kill -KILL $$'; exit $?", (Some(137), None), Some("The job ended with status 137, as after SIGKILL")),
    ] {
        let output = bench.watch(&["sh", "-c", script])?.output()?;
        assert_eq!((output.status.code(), output.status.signal()), wanted, "{script}");
        let lines = own_lines(&output);
        let found = lines.iter().find(|line| line.starts_with("The job "));
        assert_eq!(found.is_some(), said.is_some(), "{lines:?}");
        assert!(said.is_none_or(|said| found.is_some_and(|line| line.starts_with(said))), "{lines:?}");
    }
    Ok(())
}

/// Writes a program that starts a Python, with what precedes and follows `python3`.
fn python(bench: &Bench, name: &str, before: &str, flags: &str) -> Result<String> {
    let path = bench.write(name, &format!("#!/bin/sh\n{before} exec python3 {flags} \"$@\"\n"))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

#[test]
fn a_python_that_does_not_record_is_named_before_the_job_runs() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("job.py", "import sys\nprint('the job runs', file=sys.stderr)\n")?;
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../collector/python");
    let package = package.display();
    let bare = python(&bench, "bare", "", "-I -S")?;
    let idle = python(&bench, "idle", &format!("PYTHONPATH='{package}'"), "-s")?;
    let mended = python(&bench, "mended", &format!("PYTHONPATH=\"$PYTHONPATH:{package}\""), "-s")?;
    for (python, first, last) in [
        (
            &bare,
            format!("Nothing will be recorded: {bare} has no package vramscope. Install it with: "),
            format!("{bare} has no package vramscope. Install it with: "),
        ),
        (
            &idle,
            "Nothing will be recorded unless the job calls vramscope.attach(): ".to_owned(),
            format!("the recorder never started in {idle}. Install it with: "),
        ),
        (&mended, "Watch it at ".to_owned(), "the job did not load PyTorch.".to_owned()),
    ] {
        let output = bench.watch(&["--python", python, "job.py"])?.output()?;
        let said = text(&output.stderr);
        let lines: Vec<_> = said.lines().collect();
        let job = lines.iter().position(|line| *line == "the job runs").context(said.clone())?;
        assert!(lines[0].starts_with(&format!("vramscope: {first}")), "{said}");
        // A link to nothing is worse than none.
        let has_link = lines[..job].iter().any(|line| line.contains("Watch it at "));
        assert_eq!(has_link, *python != bare, "{said}");
        assert!(lines[job + 1].starts_with(&format!("vramscope: Nothing was recorded: {last}")), "{said}");
        assert_eq!((lines.len(), output.status.code()), (job + 2, Some(0)), "{said}");
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_python_that_a_launcher_runs_is_named_while_it_runs() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("job.py", "input()\n")?;
    let launcher = python(&bench, "launcher", "", "-I -S")?;
    let mut job = bench.watch(&[&launcher, "job.py"])?;
    let mut child = job.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stderr.take().context("no output")?).lines();
    let first = lines.next().context("nothing was said")??;
    assert!(first.starts_with("vramscope: Watch it at "), "{first}");
    // The job runs until it is told to end, after that.
    let second = lines.next().context("nothing else was said")??;
    assert!(second.starts_with("vramscope: The recorder has not started in "), "{second}");
    drop(child.stdin.take());
    let last = lines.last().context("nothing was said at the end")??;
    assert!(last.contains("the recorder never started in a Python of the job on this machine"), "{last}");
    child.wait()?;
    Ok(())
}

/// Returns a command that runs another one from a shell, after what `before` tells the shell.
fn from_shell(before: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before} exec \"$0\" \"$@\"")]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}

/// Counts its signals, and says when it is ready.
const COUNT: &str = "\
import signal, sys, time
seen = []
for name in ('SIGINT', 'SIGTERM', 'SIGUSR1'):
    signal.signal(getattr(signal, name), lambda number, frame: seen.append(number))
print('ready', flush=True)
until = time.monotonic() + 20
while not seen and time.monotonic() < until: time.sleep(0.02)
# A second one would arrive at once.
time.sleep(0.3)
print(seen)
";

/// Survives a signal that is ignored where it was started, and would be ended by it elsewhere.
const STAY: &str = "\
import time
print('ready', flush=True)
time.sleep(0.5)
print('stayed')
";

#[test]
fn a_signal_to_the_program_reaches_the_job_once() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("count.py", COUNT)?;
    bench.write("stay.py", STAY)?;
    // Scripts start programs in the background with SIGINT ignored, `nohup` with SIGHUP. A job may have handlers anyway.
    let ignoring = "trap '' INT TERM HUP;";
    for (before, script, signal, wanted) in [
        ("", "count.py", "-INT", "[2]"),
        ("", "count.py", "-TERM", "[15]"),
        ("", "count.py", "-USR1", "[10]"),
        (ignoring, "count.py", "-INT", "[2]"),
        (ignoring, "count.py", "-TERM", "[15]"),
        (ignoring, "stay.py", "-HUP", "stayed"),
        (ignoring, "stay.py", "-TERM", "stayed"),
    ] {
        let mut command = from_shell(before, &bench.watch(&[script])?);
        let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        ensure!(Command::new("kill").args([signal, &child.id().to_string()]).status()?.success());
        let mut rest = String::new();
        out.read_to_string(&mut rest)?;
        let what = format!("{before} {script} {signal}");
        assert_eq!((rest.trim(), child.wait()?.code()), (wanted, Some(0)), "{what}");
    }
    Ok(())
}

#[test]
fn a_job_is_summed_up() -> Result<()> {
    let bench = Bench::new()?;
    let run = format!("{} run variable-length --steps 2 --rate 0 --to $VRAMSCOPE_TO", program::path()?.display());
    let output = bench.watch(&["sh", "-c", &run])?.output()?;
    let lines = own_lines(&output);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(lines[0].starts_with("Watch it at "), "{lines:?}");
    assert!(lines[1].starts_with("Peak ") && lines[1].ends_with(" after the first event"), "{lines:?}");
    assert!(lines[2].starts_with("Largest then: "), "{lines:?}");
    assert!(lines[3].ends_with(" events, nothing lost"), "{lines:?}");
    assert_eq!(lines[4].strip_prefix("The recording is at "), lines[0].strip_prefix("Watch it at "), "{lines:?}");
    Ok(())
}

#[test]
fn a_server_is_started_found_again_and_stopped() -> Result<()> {
    let folder = Folder::new("watch-server")?;
    let servers = || fs::read_dir(folder.join("state/vramscope/servers")).map_or(0, Iterator::count);
    let watch = |arguments: &[&str]| -> Result<String> {
        let output = bare(&folder)?.arg("watch").args(arguments).args(["sh", "-c", "exit 0"]).output()?;
        ensure!(output.status.success(), "{}", text(&output.stderr));
        Ok(own_lines(&output).swap_remove(0))
    };
    let first = watch(&[])?;
    assert!(first.ends_with(" (its server keeps running; vramscope stop ends it)"), "{first}");
    assert_eq!(servers(), 1);
    let second = watch(&["--stop-server"])?;
    let place = |line: &str| line.split("#job=").next().map(str::to_owned);
    assert_eq!(place(&first), place(&second), "the running server is used");
    assert_eq!(servers(), 1, "only a server that was started for the job is stopped");
    let stop = || bare(&folder)?.arg("stop").output().context("stopping");
    let stopped = stop()?;
    assert!(text(&stopped.stdout).starts_with("Stopped the server at http://127.0.0.1:"), "{}", text(&stopped.stderr));
    assert_eq!((servers(), stopped.status.code()), (0, Some(0)));
    assert_eq!(stop()?.status.code(), Some(2), "there is none");
    watch(&["--stop-server"])?;
    assert_eq!(servers(), 0, "the server was stopped with the job");
    Ok(())
}

#[test]
fn a_job_is_listed_opened_and_shared_by_the_server_that_was_started_for_it() -> Result<()> {
    let folder = Folder::new("watch-list")?;
    let run = |arguments: &[&str]| -> Result<Output> { Ok(bare(&folder)?.args(arguments).output()?) };
    let job = format!("{} run variable-length --steps 2 --rate 0 --to $VRAMSCOPE_TO", program::path()?.display());
    let tried = || -> Result<()> {
        let watched = run(&["watch", "sh", "-c", &job])?;
        let link = own_lines(&watched).swap_remove(0);
        let name =
            link.split_once("#job=").and_then(|(_, rest)| rest.split(' ').next()).context(link.clone())?.to_owned();
        let listed = text(&run(&["ls"])?.stdout);
        ensure!(listed.starts_with(&name) && listed.contains("  ended  ") && listed.contains(" events, "), "{listed}");
        let json: serde_json::Value = serde_json::from_slice(&run(&["ls", "--json"])?.stdout)?;
        let id = json[0]["id"].as_str().context("no id")?;
        for (given, wanted) in [(name.as_str(), format!("#job={name}")), (id, format!("#session={id}"))] {
            let opened = text(&run(&["open", given, "--no-browser"])?.stdout);
            ensure!(opened.starts_with("Opened at http://") && opened.trim().ends_with(&wanted), "{opened}");
        }
        let unknown = run(&["open", "nothing-like-it"])?;
        ensure!(text(&unknown.stderr).contains("nor a job of the running server"), "{}", text(&unknown.stderr));
        // The same server is found by what shares a trace.
        let file = folder.join("run.pickle").to_string_lossy().into_owned();
        let written = run(&["run", "leak", "--steps", "2", "--out", &file])?;
        ensure!(text(&written.stdout).ends_with(&format!("→ vramscope doctor {file}\n")), "{}", text(&written.stdout));
        let shared = run(&["push", &file])?;
        let page = link.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).context(link.clone())?.0;
        ensure!(text(&shared.stdout).starts_with(&format!("http://{page}/s-")), "{}", text(&shared.stderr));
        // It draws on terminals only.
        ensure!(text(&run(&["top"])?.stderr).contains("top draws on a terminal"));
        Ok(())
    }();
    run(&["stop"])?;
    tried
}

#[test]
fn a_server_that_was_started_by_hand_is_stopped_by_name_only() -> Result<()> {
    let folder = Folder::new("by-hand")?;
    let mut server = bare(&folder)?.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn()?;
    wait_for_announcement(&folder);
    let stop = |arguments: &[&str]| bare(&folder)?.arg("stop").args(arguments).output().context("stopping");
    let tried = || -> Result<()> {
        let refused = stop(&[])?;
        let said = text(&refused.stderr);
        ensure!(
            refused.status.code() == Some(2) && said.contains("was started by hand. Stop it there with Ctrl-C"),
            "{said}"
        );
        let stopped = stop(&["--all"])?;
        ensure!(text(&stopped.stdout).starts_with("Stopped the server at "), "{}", text(&stopped.stderr));
        Ok(())
    }();
    if tried.is_err() {
        server.kill()?;
    }
    server.wait()?;
    tried
}

#[test]
fn a_server_that_is_not_there_is_told_of_at_once_and_the_file_is_summed_up() -> Result<()> {
    let folder = Folder::new("watch-away")?;
    let file = folder.join("run.vramscope").to_string_lossy().into_owned();
    let job = format!("{} run variable-length --steps 2 --out {file}", program::path()?.display());
    let mut command = bare(&folder)?;
    // Nothing listens at a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    command.args(["watch", "--to", &format!("http://127.0.0.1:{port}"), "--out", &file, "sh", "-c", &job]);
    let begun = std::time::Instant::now();
    let output = command.output()?;
    let lines = own_lines(&output);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(lines[0].starts_with("No server answers at http://127.0.0.1:"), "{lines:?}");
    assert!(lines[1].starts_with("Nothing reached http://127.0.0.1:"), "{lines:?}");
    assert!(lines[2].starts_with("Peak ") && lines[3].starts_with("Largest then: "), "{lines:?}");
    assert_eq!(lines[4..], [format!("Wrote {file}"), format!("→ vramscope doctor {file}")], "{lines:?}");
    // Six attempts, with their pauses, would take 15 s.
    assert!(begun.elapsed().as_secs() < 12, "{:?}", begun.elapsed());
    Ok(())
}

#[test]
fn what_can_not_be_run_is_refused() -> Result<()> {
    let bench = Bench::new()?;
    for (arguments, wanted) in [
        (vec![], "Name a program to run"),
        (vec!["/nowhere/program"], "/nowhere/program is neither a script here nor a program"),
        (vec!["--python", "/nowhere/python", "-m", "x"], "/nowhere/python can't be started"),
        (vec!["x.py"], "There is no script x.py."),
        (vec!["--out", "nowhere/x.vramscope", "sh"], "there is no folder nowhere"),
        (vec!["--out", "x.pickle", "sh"], "End its name with .vramscope"),
        (vec!["--mode", "evnts", "sh"], "auto, events, budget"),
        (vec!["--opne", "sh"], "Did you mean --open?"),
    ] {
        let output = bench.watch(&arguments)?.output()?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(wanted), "{}", text(&output.stderr));
    }
    Ok(())
}

#[test]
fn a_file_is_shown_by_the_server_that_runs() -> Result<()> {
    let folder = Folder::new("open")?;
    let file = folder.join("a b.pickle");
    fs::write(&file, b"content")?;
    let mut server = bare(&folder)?.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn()?;
    let mut greeting = String::new();
    BufReader::new(server.stdout.take().context("no output")?).read_line(&mut greeting)?;
    let shown = || -> Result<()> {
        wait_for_announcement(&folder);
        let output = bare(&folder)?.arg(&file).output()?;
        let line = text(&output.stdout);
        ensure!(output.status.success(), "{}", text(&output.stderr));
        let (page, part) = line
            .trim()
            .strip_prefix("Opened at http://")
            .and_then(|rest| rest.split_once("/#open="))
            .context(line.clone())?;
        let answer = tests::http::get(page.parse()?, &format!("/api/v1/files/{part}"), &[])?;
        assert_eq!((answer.status, answer.text().as_str()), (200, "content"));
        assert!(part.ends_with("/a%20b.pickle"), "{part}");
        let (id, name) = part.split_once('/').context("no name")?;
        let wrong = tests::http::get(page.parse()?, &format!("/api/v1/files/{}/{name}", "0".repeat(id.len())), &[])?;
        assert_eq!(wrong.status, 404);
        Ok(())
    }();
    server.kill()?;
    server.wait()?;
    shown?;
    let output = bare(&folder)?.arg("repotr").output()?;
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("neither a command nor a file"), "{}", text(&output.stderr));
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_a_full_disk_keeps_from_starting_is_told_of() -> Result<()> {
    let Some(disk) = Folder::disk("watch-full", 1)? else {
        eprintln!("skipped: mounting a small disk needs rights that this user has not");
        return Ok(());
    };
    let mut ballast = fs::File::create(disk.join("ballast"))?;
    while std::io::Write::write_all(&mut ballast, &[1; 4_096]).is_ok() {}
    let output = bare(&disk)?.args(["watch", "--stop-server", "sh", "-c", "true"]).output()?;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    ensure!(said.contains("none could be started") && said.contains("server.log: the disk is full."), "{said}");
    drop(ballast);
    fs::remove_file(disk.join("ballast"))?;
    let output = bare(&disk)?.args(["watch", "--stop-server", "sh", "-c", "true"]).output()?;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    Ok(())
}

/// Starts a server in a folder as where the system does not tell users apart. Returns it, with the first lines that it prints.
fn blind(folder: &Path) -> Result<(Child, [String; 2])> {
    let mut command = bare(folder)?;
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("VRAMSCOPE_USERS_UNKNOWN", "1");
    let mut server = command.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(server.stdout.take().context("no output")?).lines();
    let mut next = || Ok::<_, anyhow::Error>(lines.next().context("no line")??);
    let lines = [next()?, next()?];
    wait_for_announcement(folder);
    Ok((server, lines))
}

#[test]
fn where_users_are_not_told_apart_programs_find_the_token_and_links_carry_it() -> Result<()> {
    let folder = Folder::new("blind")?;
    let file = folder.join("job.pickle");
    fs::write(&file, b"content")?;
    let (mut server, [greeting, link]) = blind(&folder)?;
    let tried = || -> Result<()> {
        assert!(greeting.ends_with(", opened by a link with a token"), "{greeting}");
        let page = link.strip_prefix("Open it with ").context(link.clone())?;
        let (address, token) = page.split_once("/#token=").context(link.clone())?;
        let bearer = format!("Bearer {token}");
        let server = address.strip_prefix("http://").context("no address")?.parse()?;
        // The token of another server is set, as many have it.
        let run = |arguments: &[&str]| -> Result<Output> {
            Ok(bare(&folder)?.args(arguments).env("VRAMSCOPE_TOKEN", "the-token-of-another-server").output()?)
        };
        let output = run(&[&*file.to_string_lossy()])?;
        let line = text(&output.stdout);
        let opened = line.trim().strip_prefix(&format!("Opened at {page}&open=")).context(line.clone())?;
        let path = format!("/api/v1/files/{opened}");
        assert_eq!(tests::http::get(server, &path, &[])?.status, 401);
        assert_eq!(tests::http::get(server, &path, &[("Authorization", &bearer)])?.text(), "content");

        let job = format!("{} run variable-length --steps 2 --rate 0 --to $VRAMSCOPE_TO", program::path()?.display());
        for arguments in [&["watch"][..], &["watch", "--to", address]] {
            let output = run(&[arguments, &["sh", "-c", &format!("echo $VRAMSCOPE_TOKEN; {job}")]].concat())?;
            let lines = own_lines(&output);
            assert!(lines[0].starts_with(&format!("Watch it at {page}&job=")), "{lines:?}");
            assert!(lines.iter().any(|line| line.ends_with(" events, nothing lost")), "{lines:?}");
            assert!(text(&output.stdout).starts_with(token), "{}", text(&output.stdout));
        }
        Ok(())
    }();
    server.kill()?;
    server.wait()?;
    tried
}

#[test]
fn a_server_in_the_background_writes_no_token_into_its_log() -> Result<()> {
    let folder = Folder::new("background")?;
    let watch = || -> Result<Vec<String>> {
        let output =
            bare(&folder)?.args(["watch", "sh", "-c", "exit 0"]).env("VRAMSCOPE_USERS_UNKNOWN", "1").output()?;
        ensure!(output.status.success(), "{}", text(&output.stderr));
        Ok(own_lines(&output))
    };
    let lines = watch();
    let log = folder.join("state/vramscope/server.log");
    let said = (fs::read_to_string(&log), fs::metadata(&log));
    bare(&folder)?.arg("stop").output()?;
    let line = &lines?[0];
    let (_, token) = line.split_once("/#token=").with_context(|| line.clone())?;
    let (token, _) = token.split_once("&job=").with_context(|| line.clone())?;
    let (said, metadata) = (said.0?, said.1?);
    assert!(said.contains("Vramscope is at") && !said.contains(token), "{said}");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    Ok(())
}

#[test]
fn announcements_that_others_could_read_or_change_are_refused() -> Result<()> {
    let folder = Folder::new("announcements")?;
    let servers = folder.join("state/vramscope/servers");
    fs::create_dir_all(&servers)?;
    fs::set_permissions(&servers, fs::Permissions::from_mode(0o755))?;
    let wanted = format!("Run: chmod 700 {}", servers.display());
    for arguments in [&["watch", "sh", "-c", "exit 0"][..], &["stop"], &["serve", "--background"]] {
        let output = bare(&folder)?.args(arguments).output()?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(&wanted), "{arguments:?}: {}", text(&output.stderr));
    }
    // Files are opened all the same, by a server of their own.
    let file = folder.join("job.pickle");
    fs::write(&file, b"content")?;
    let mut command = bare(&folder)?;
    let mut child = command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let opened = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("Opened at ")));
    child.kill()?;
    child.wait()?;
    let mut said = String::new();
    child.stderr.take().context("no output")?.read_to_string(&mut said)?;
    assert!(opened.is_some() && said.contains(&wanted), "{said}");
    Ok(())
}

#[test]
fn a_job_at_the_far_end_of_a_tunnel_needs_only_a_token_that_sends() -> Result<()> {
    let folder = Folder::new("tunnel")?;
    let tokens = folder.secret("tokens", "jobs ingest the-token-of-the-jobs\npeople read the-token-of-the-people\n")?;
    let server = Server::start_in(&folder, &["--tokens", &tokens])?;
    let tunnel = tests::proxy::Proxy::to(server.address())?.address();
    let job = format!("{} run variable-length --steps 2 --rate 0 --to $VRAMSCOPE_TO", program::path()?.display());
    let mut command = bare(&folder)?;
    command.args(["watch", "--to", &format!("http://{tunnel}"), "sh", "-c", &job]);
    let output = command.env("VRAMSCOPE_TOKEN", "the-token-of-the-jobs").output()?;
    let lines = own_lines(&output);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let link = lines[0].strip_prefix("Watch it at ").context("no link")?;
    assert!(!link.contains("token"), "{link}");
    assert!(lines[1].starts_with(&format!("What was recorded is at {link}. The token may not read it")), "{lines:?}");
    let list = |bearer| tests::http::get(tunnel, "/api/v1/sessions", &[("Authorization", bearer)]);
    assert_eq!((list("")?.status, list("Bearer the-token-of-the-jobs")?.status), (401, 403));
    assert!(list("Bearer the-token-of-the-people")?.text().contains("\"state\":\"ended\""));
    Ok(())
}
