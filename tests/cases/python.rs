//! Runs the tests of the Python package: those for any Python, and those with real PyTorch jobs.
//!
//! `VRAMSCOPE_TORCH_PYTHON` names a Python (or a program that starts one) with torch and a real or simulated GPU. Without
//! it, the tests with PyTorch are skipped, with a message.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tests::server::Server;
use tests::tls::Authority;
use tests::{Folder, artifact, program, tls, workspace};

/// Returns the Python with torch. Without one, prints that the test is skipped.
fn torch_python(test: &str) -> Option<OsString> {
    let python = std::env::var_os("VRAMSCOPE_TORCH_PYTHON").filter(|python| !python.is_empty());
    if python.is_none() {
        eprintln!("{test} skipped: VRAMSCOPE_TORCH_PYTHON names no Python with torch");
    }
    python
}

/// Returns the path of the library that a job loads.
fn library() -> Result<PathBuf> {
    artifact("libvramscope_pluggable.so")
}

#[test]
fn pytorch_allocates_through_the_library() -> Result<()> {
    let Some(python) = torch_python("pytorch_allocates_through_the_library") else { return Ok(()) };
    let output = Command::new(python)
        .current_dir(workspace("collector/python/tests"))
        .args(["-m", "unittest", "-v", "test_allocator"])
        .env("VRAMSCOPE_LIBRARY", library()?)
        .env("VRAMSCOPE_PROGRAM", program::path()?)
        .output()
        .context("starting Python")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    // A run in which every test is skipped does not count.
    ensure!(errors.contains("test_a_training_loop_is_the_same") && !errors.contains("no GPU that it sees"), "{errors}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn stacks_are_gathered_in_any_python() -> Result<()> {
    let folder = tests::fakecuda::FakeFolder::new("stacks_are_gathered_in_any_python")?;
    let mut command = Command::new("python3");
    folder.serve(&mut command);
    let output = command
        .arg(workspace("collector/python/tests/test_allocator_stacks.py"))
        .env("VRAMSCOPE_LIBRARY", library()?)
        .output();
    let Ok(output) = output else {
        eprintln!("stacks_are_gathered_in_any_python skipped: there is no python3");
        return Ok(());
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && errors.contains("Ran 1 test") && !errors.contains("skipped"), "{errors}");
    Ok(())
}

/// Records a thousand events as the environment says, without torch. Prints the session and the result.
const RECORDING: &str = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
from vramscope import _config, _library, _torch
config = _config.from_environment()
library = _library.Library(_library.find(None))
config.to = library.address(config.to)
device = {"number": 0, "name": "none", "capacity": 1 << 30}
library.start({**_torch.recording(config), "devices": [device], "flush_millis": 10})
for at in range(1000):
    library._event(0, _library.CODES["alloc"], 4096 * (at + 1), 512, 0, 0, 0, 0, 0)
session = library.session()
print(json.dumps({**library.finish(int(sys.argv[2])), "session": session, "to": config.to}))
"#;

#[cfg(unix)]
#[test]
fn a_recording_from_python_arrives_over_tls_if_the_authority_is_known() -> Result<()> {
    let folder = Folder::new("python-tls")?;
    let (authority, stranger) = (Authority::new()?, Folder::new("python-stranger")?);
    let server = Server::start_encrypted(&folder, &authority, &[])?;
    let library = library()?;
    let record = |ca_file: PathBuf, patience: &str| {
        let mut python = Command::new("python3");
        python.args(["-c", RECORDING]).arg(workspace("collector/python")).arg(patience).env_remove("VRAMSCOPE_OUT");
        python.env("VRAMSCOPE_LIBRARY", &library).env("VRAMSCOPE_TO", server.url()).env("VRAMSCOPE_CA_FILE", ca_file);
        python.output()
    };
    let Ok(output) = record(authority.write(&folder)?, "20000") else {
        eprintln!("a_recording_from_python_arrives_over_tls skipped: there is no python3");
        return Ok(());
    };
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let session = result["session"].as_str().context("no session")?;
    assert_eq!((result["sent_events"].as_u64(), result["undelivered"].as_u64()), (Some(1_000), Some(0)), "{result}");
    assert_eq!(result["to"].as_str(), Some(server.url().trim_end_matches('/')));
    let path = format!("/api/v1/sessions/{session}");
    let stored = tls::get(server.address(), &authority.client()?, &path, &[])?;
    let stored: serde_json::Value = serde_json::from_slice(&stored.body)?;
    assert_eq!((stored["state"].as_str(), stored["events"].as_u64()), (Some("ended"), Some(1_000)), "{stored}");

    let output = record(Authority::new()?.write(&stranger)?, "500")?;
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(result["undelivered"].as_u64(), Some(1_000), "{result}");
    let trouble = result["trouble"].as_str().unwrap_or_default();
    assert!(trouble.contains("not issued by an authority in") && trouble.contains("VRAMSCOPE_CA_FILE"), "{result}");
    assert_eq!(result["cause"], "certificate", "{result}");

    let output = record(stranger.join("none"), "500")?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("none can't be read"), "{error}");
    Ok(())
}

/// Records to a disk that fills up, until it has room again. Prints what was said, and the result.
const FILLING: &str = r#"
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from vramscope import _delivery, _library
disk, said = sys.argv[2], []
out = os.path.join(disk, "run.vramscope")
library = _library.Library(_library.find(None))
library.start({"out": out, "devices": [{"number": 0, "name": "none", "capacity": 1 << 30}], "flush_millis": 10})
delivery = _delivery.Delivery(library, None, out, said.append)
delivery.start("every event")
made, longest = 0, 0
def record():
    global made, longest
    for at in range(1000):
        begun = time.perf_counter()
        library._event(0, _library.CODES["alloc"], 4096 * (made * 7919 % 100003), 512, 0, 0, 0, 0, 0)
        made, longest = made + 1, max(longest, time.perf_counter() - begun)
def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, said
        record()
        time.sleep(0.005)
record()
assert library.flush(20000)
with open(os.path.join(disk, "ballast"), "wb", buffering=0) as ballast:
    for size in (4096, 1):
        try:
            while ballast.write(bytes(size)):
                pass
        except OSError:
            pass
until(lambda: len(said) > 1)
assert not library.flush(20000), "it is not written"
record()
os.unlink(os.path.join(disk, "ballast"))
until(lambda: len(said) > 2)
record()
print(json.dumps({**library.finish(20000), "made": made, "longest": longest, "said": said}))
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_recording_from_python_goes_on_once_its_disk_has_room_again() -> Result<()> {
    let Some(disk) = Folder::disk("python-full", 1)? else {
        eprintln!("skipped: mounting a small disk needs rights that this user has not");
        return Ok(());
    };
    let mut python = Command::new("python3");
    python.args(["-c", FILLING]).arg(workspace("collector/python")).arg(&disk).env_remove("VRAMSCOPE_OUT");
    let Ok(output) = python.env("VRAMSCOPE_LIBRARY", library()?).output() else {
        eprintln!("skipped: there is no python3");
        return Ok(());
    };
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let file = disk.join("run.vramscope");
    let name = file.display();
    let said: Vec<_> =
        result["said"].as_array().context("nothing was said")?.iter().filter_map(|of| of.as_str()).collect();
    let full = format!("{name}: the disk is full. Make room: events that have none are left out and counted.");
    assert_eq!(said[1..], [&*full, "The disk has room again."]);
    let number = |key: &str| result[key].as_u64().unwrap_or_default();
    assert_eq!((number("events") + number("lost"), number("unwritten")), (number("made"), 0), "{result}");
    ensure!(number("lost") > 0 && result["longest"].as_f64() < Some(0.5), "{result}");
    let failure = result["failure"].as_str().unwrap_or_default();
    ensure!(failure.starts_with(&format!("{name}: its disk was full for a time, and ")), "{result}");
    let report = program::run(&["report", "--json", file.to_str().context("a path")?])?;
    let report: serde_json::Value = serde_json::from_slice(&report.stdout)?;
    assert_eq!(report["files"][0]["devices"][0]["events"]["alloc"].as_u64(), Some(number("events")), "{report}");
    Ok(())
}

/// Shares a file and a snapshot, and prints the links; then the reason why a third is refused.
const SHARING: &str = r#"
import json, pickle, sys
sys.path.insert(0, sys.argv[1])
import vramscope
file, server = sys.argv[2:]
with open(file, "rb") as opened:
    snapshot = pickle.load(opened)
links = [
    vramscope.share(file, server, expires="2h", password="open sesame", name="run 7"),
    vramscope.share(snapshot, server, expires=None),
]
refused = []
for trace, options in [(file + ".none", {}), (file, {"expires": "soon"}), (file, {"program": "/nowhere"}), (None, {})]:
    try:
        vramscope.share(trace, server, **options)
    except vramscope.ShareError as error:
        refused.append(str(error))
print(json.dumps({"links": [[link, link.delete_token] for link in links], "refused": refused}))
"#;

#[test]
fn a_link_from_python_opens_and_is_deleted_by_its_token() -> Result<()> {
    let server = Server::start()?;
    let mut python = Command::new("python3");
    python.args(["-c", SHARING]).arg(workspace("collector/python")).arg(workspace("tests/fixtures/two_devices.pickle"));
    python.arg(server.url()).env("VRAMSCOPE_PROGRAM", program::path()?).env_remove("VRAMSCOPE_TO");
    let Ok(output) = python.output() else {
        eprintln!("a_link_from_python skipped: there is no python3");
        return Ok(());
    };
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let token = |at: usize| -> Result<&str> {
        let link = said["links"][at][0].as_str().context("no link")?;
        link.strip_prefix(&server.url()).and_then(|path| path.strip_prefix("s-")).with_context(|| link.to_owned())
    };
    let first = server.get(&format!("/api/v1/traces/{}", token(0)?))?;
    assert_eq!(first.status, 401, "{}", first.text());
    let second = server.get(&format!("/api/v1/traces/{}", token(1)?))?;
    let second: serde_json::Value = serde_json::from_slice(&second.body)?;
    assert_eq!((&second["events"], &second["expires_us"]), (&15.into(), &serde_json::Value::Null), "{second}");
    for at in 0..2 {
        let delete = said["links"][at][1].as_str().context("no delete token")?;
        assert_eq!((delete.len(), delete == token(at)?), (39, false));
    }
    let refused = said["refused"].as_array().context("no refusals")?;
    for (reason, wanted) in
        refused.iter().zip(["no such file", "90m, 12h or 30d, or never", "not found", "use the GPU"])
    {
        assert!(reason.as_str().is_some_and(|reason| reason.contains(wanted)), "{reason}: {wanted}");
    }
    assert_eq!(refused.len(), 4, "{said}");
    Ok(())
}

#[test]
fn the_package_passes_its_tests() -> Result<()> {
    let mut python = Command::new("python3");
    python.current_dir(workspace("collector/python/tests")).args(["-m", "unittest", "discover", "-p", "test_*.py"]);
    // Servers of the person who runs the tests must not be found.
    let state = Folder::new("state")?;
    python.env("XDG_STATE_HOME", &*state);
    if torch_python("the jobs of the_package_passes_its_tests").is_some() {
        python.env("VRAMSCOPE_LIBRARY", library()?);
        python.env("VRAMSCOPE_TO_PICKLE", artifact("examples/recording_to_pickle")?);
    }
    let output = python.output().context("running python3")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
