//! The wheel: what is in it, and the way from an empty virtual environment to the page.
//!
//! The wheel is made here from the built program, or is the one that `VRAMSCOPE_WHEEL` names. One that promises to run on
//! other machines must be small and need no newer glibc than its tag says.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::server::Server;
use tests::{Folder, artifact, http, program, workspace};

/// The most bytes of an installed wheel: its size below 25 MB is a promise.
const INSTALLED_BYTES: u64 = 25_000_000;

/// Prints what a wheel holds, as JSON, after comparing each file with the record.
const CONTENT: &str = r#"
import base64, csv, email, hashlib, io, json, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
assert len(names) == len(set(names)), "a file is there twice"
info = next(name for name in names if name.endswith(".dist-info/RECORD"))[: -len("RECORD")]
rows = list(csv.reader(io.StringIO(wheel.read(info + "RECORD").decode())))
assert [row[0] for row in rows] == names, "the record lists other files"
for name, digest, size in rows[:-1]:
    data = wheel.read(name)
    kind, _, have = digest.partition("=")
    want = base64.urlsafe_b64encode(hashlib.new(kind, data).digest()).rstrip(b"=").decode()
    assert (have, int(size)) == (want, len(data)), name
assert rows[-1] == [info + "RECORD", "", ""]
about = email.message_from_bytes(wheel.read(info + "METADATA"))
tags = email.message_from_bytes(wheel.read(info + "WHEEL")).get_all("Tag")
print(json.dumps({
    "names": names,
    "modes": {name: wheel.getinfo(name).external_attr >> 16 for name in names},
    "bytes": sum(item.file_size for item in wheel.infolist()),
    "metadata": {name: about.get_all(name) for name in about.keys()},
    "description": about.get_payload(),
    "tags": tags,
}))
"#;

/// Prints, as JSON, what the package finds in the environment that it is installed in.
const INSTALLED: &str = r#"
import importlib.metadata, json, vramscope
from vramscope import _library, _share
library = str(_library.find())
_library.Library(library)
print(json.dumps({
    "library": library,
    "package": vramscope.__file__,
    "program": str(_share.find()),
    "version": importlib.metadata.version("vramscope"),
}))
"#;

/// Records some allocations of a job, and prints the session's id.
const JOB: &str = r#"
import sys, torch, vramscope
agent = vramscope.attach(sys.argv[1], mode="events")
for size in range(1, 101):
    tensor = torch.empty(size << 10, device="cuda")
vramscope.detach()
print(agent.session)
"#;

/// Returns the text of what a command prints, if it succeeds.
fn printed(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    Ok(String::from_utf8(stdout)?)
}

/// Returns a Python that runs code with an argument.
fn python(program: impl AsRef<OsStr>, code: &str, argument: impl AsRef<OsStr>) -> Command {
    let mut python = Command::new(program);
    python.args(["-c", code]).arg(argument);
    let given = ["VRAMSCOPE_LIBRARY", "VRAMSCOPE_DRIVER", "VRAMSCOPE_PROGRAM"];
    for name in ["PYTHONPATH", "VRAMSCOPE_TO", "VRAMSCOPE_OUT"].into_iter().chain(given) {
        python.env_remove(name);
    }
    python
}

/// Returns the wheel, made in `folder` unless it is given.
fn wheel(folder: &Path) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("VRAMSCOPE_WHEEL") {
        return Ok(workspace("").join(given));
    }
    let build = "import sys; sys.path.insert(0, '.'); import packager; print(packager.build_wheel(sys.argv[1]))";
    let mut python = python("python3", build, folder);
    python.current_dir(workspace("collector/python")).env("VRAMSCOPE_PROGRAM", program::path()?);
    python.env("VRAMSCOPE_LIBRARY", artifact("libvramscope_pluggable.so")?);
    python.env("VRAMSCOPE_DRIVER", artifact("libfakecuda.so")?);
    Ok(folder.join(printed(&mut python)?.trim()))
}

/// Checks the files, their modes, and what the metadata says.
fn check_content(wheel: &Path) -> Result<()> {
    let content: Value = serde_json::from_str(&printed(&mut python("python3", CONTENT, wheel))?)?;
    let names: BTreeSet<&str> = content["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let version = env!("CARGO_PKG_VERSION");
    let (info, scripts) = (format!("vramscope-{version}.dist-info/"), format!("vramscope-{version}.data/scripts/"));
    let program = format!("{scripts}vramscope");
    let mut wanted = vec![
        "vramscope.pth".to_owned(),
        "vramscope/__init__.py".to_owned(),
        "vramscope/libvramscope_pluggable.so".to_owned(),
        "vramscope/libfakecuda.so".to_owned(),
        program.clone(),
    ];
    wanted.extend(["LICENSE-APACHE", "LICENSE-MIT"].map(|name| format!("{info}licenses/{name}")));
    for folder in ["", "_predict", "_site", "integrations", "tracker"] {
        for file in std::fs::read_dir(workspace("collector/python/vramscope").join(folder))? {
            let name = file?.file_name().to_string_lossy().into_owned();
            if [".py", ".cpp", ".h"].iter().any(|end| name.ends_with(end)) {
                wanted.push(Path::new("vramscope").join(folder).join(name).to_string_lossy().into_owned());
            }
        }
    }
    let missing: Vec<_> = wanted.iter().filter(|name| !names.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?} missing from {names:?}");
    // Nothing else: no caches, no tests, no build script.
    let others: Vec<_> = names
        .iter()
        .filter(|name| !wanted.iter().any(|wanted| wanted == *name))
        .filter(|name| !name.starts_with(&info) && !name.starts_with("vramscope/prebuilt/"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(content["modes"][&program], 0o100_755);
    assert_eq!(content["modes"]["vramscope.pth"], 0o100_644);

    let about = &content["metadata"];
    for (name, want) in [
        ("Metadata-Version", "2.4"),
        ("Name", "vramscope"),
        ("Version", version),
        ("License-Expression", "MIT OR Apache-2.0"),
        ("Requires-Python", ">=3.9"),
        ("Description-Content-Type", "text/markdown; charset=UTF-8"),
    ] {
        assert_eq!(about[name], Value::from(vec![want]), "{name}");
    }
    assert_eq!(about["Requires-Dist"], Value::Null, "the package has no dependencies");
    assert!(about["Classifier"].as_array().is_some_and(|classifiers| classifiers.len() > 10), "{about}");
    assert!(content["description"].as_str().is_some_and(|text| text.contains("## Watch a job")), "no description");

    let tag = content["tags"][0].as_str().context("no tag")?;
    let file = wheel.file_name().and_then(OsStr::to_str).context("no name")?;
    assert_eq!(file, format!("vramscope-{version}-{tag}.whl"));
    if let Some(platform) = tag.strip_prefix("py3-none-manylinux_") {
        let bytes = content["bytes"].as_u64().unwrap_or(u64::MAX);
        assert!(bytes < INSTALLED_BYTES, "{bytes} bytes installed");
        let mut parts = platform.split('_').filter_map(|part| part.parse().ok());
        let most = (parts.next().context("no glibc")?, parts.next().context("no glibc")?);
        let natives: Vec<_> = names.iter().filter(|name| name.ends_with(".so") || **name == program).collect();
        // The program, the library, and a tracker for each release with one.
        assert!(natives.len() >= 7, "{natives:?}");
        check_glibc(wheel, &natives, most)?;
    }
    Ok(())
}

/// Checks that no file needs a newer glibc.
fn check_glibc(wheel: &Path, natives: &[&&str], most: (u32, u32)) -> Result<()> {
    let folder = Folder::new("wheel-natives")?;
    printed(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&*folder))?;
    for name in natives {
        let needs = printed(Command::new("readelf").args(["-VW"]).arg(folder.join(name)))?;
        let versions: Vec<(u32, u32)> = needs
            .split("GLIBC_")
            .skip(1)
            .filter_map(|rest| {
                let version = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
                let mut parts = version.split('.').map(str::parse);
                Some((parts.next()?.ok()?, parts.next()?.ok()?))
            })
            .collect();
        assert!(!versions.is_empty(), "{name} names no version of glibc");
        assert!(versions.iter().all(|version| *version <= most), "{name}: {versions:?}");
    }
    Ok(())
}

/// Fetches the page and the files that it names, as a browser does.
fn check_page(server: &Server) -> Result<()> {
    let index = server.get("/")?;
    let text = index.text();
    let paths: Vec<&str> = text.split(['"', '\'']).filter(|part| part.contains('-') && part.contains('.')).collect();
    let files: Vec<&str> = paths.into_iter().filter(|path| path.ends_with(".js") || path.ends_with(".wasm")).collect();
    assert!(index.status == 200 && files.iter().any(|path| path.ends_with(".wasm")), "{text}");
    for path in files {
        let path = format!("/{}", path.trim_start_matches(['.', '/']));
        let packed = http::get(server.address(), &path, &[("Accept-Encoding", "br")])?;
        assert_eq!((packed.status, packed.header("content-encoding")), (200, "br"), "{path}");
        // A client that knows no coding gets the same file unpacked.
        let plain = server.get(&path)?;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, ""), "{path}");
        assert!(plain.body.len() > packed.body.len(), "{path}");
        if path.ends_with(".wasm") {
            assert_eq!(plain.body.get(..4), Some(&b"\0asm"[..]), "{path}");
        }
    }
    Ok(())
}

/// Returns what a real job sent to a server, if there is a Python with torch. It runs the installed package.
fn check_job(server: &Server, site: &Path) -> Result<()> {
    let Some(torch) = std::env::var_os("VRAMSCOPE_TORCH_PYTHON").filter(|python| !python.is_empty()) else {
        eprintln!(
            "the job of a_wheel_is_all_that_is_needed skipped: VRAMSCOPE_TORCH_PYTHON names no Python with torch"
        );
        return Ok(());
    };
    let folder = Folder::new("wheel-job")?;
    let mut job = python(torch, JOB, server.url());
    job.current_dir(&*folder).env("PYTHONPATH", site).env("VRAMSCOPE_CACHE", folder.join("cache"));
    let session = printed(&mut job)?;
    let session = server.get(&format!("/api/v1/sessions/{}", session.trim()))?.text();
    let session: Value = serde_json::from_str(&session)?;
    assert_eq!(session["state"], "ended", "{session}");
    assert!(session["events"].as_u64() >= Some(199), "{session}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs a program with the page: tests/run has it"]
fn a_wheel_is_all_that_is_needed() -> Result<()> {
    let folder = Folder::new("wheel")?;
    let wheel = wheel(&folder)?;
    check_content(&wheel)?;

    // No cargo, no Node, no compiler, no other Python.
    let (venv, nothing) = (folder.join("venv"), folder.join("nothing"));
    std::fs::create_dir(&nothing)?;
    printed(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let bin = venv.join("bin");
    let path: OsString = std::env::join_paths([&bin, &nothing])?;
    let within = |mut command: Command| {
        command.env("PATH", &path).env_remove("VRAMSCOPE_TO").current_dir(&nothing);
        command
    };
    let mut pip = Command::new(bin.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]).arg(&wheel);
    printed(&mut within(pip))?;

    let installed = printed(&mut within(python(bin.join("python"), INSTALLED, "")))?;
    let installed: Value = serde_json::from_str(&installed)?;
    assert_eq!(installed["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(installed["program"], bin.join("vramscope").to_string_lossy().as_ref());
    let package = PathBuf::from(installed["package"].as_str().unwrap_or_default());
    let site = package.ancestors().nth(2).context("the package is nowhere")?.to_owned();
    assert!(site.starts_with(&venv), "{installed}");
    assert_eq!(installed["library"], site.join("vramscope/libvramscope_pluggable.so").to_string_lossy().as_ref());
    assert!(site.join("vramscope.pth").is_file());

    let program = |arguments: &[&str]| {
        let mut command = within(Command::new(bin.join("vramscope")));
        command.args(arguments);
        command
    };
    assert_eq!(printed(&mut program(&["--version"]))?, format!("vramscope {}\n", env!("CARGO_PKG_VERSION")));
    let words = ["run", "variable-length", "--steps", "50", "--capacity", "13GiB", "--out", "x.vramscope"];
    let run = program(&words).output()?;
    assert!(nothing.join("x.vramscope").is_file(), "{}", String::from_utf8_lossy(&run.stderr));
    let report = program(&["report", "x.vramscope"]).output()?;
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("\nFragmented: ") && report.contains("train.py:"), "{report}");

    let data = folder.join("data");
    let server = Server::start_program(&bin.join("vramscope"), &data)?;
    check_page(&server)?;
    check_job(&server, &site)
}
