//! Files whose names hold what a terminal obeys: no command prints it, whatever the form and the stream.

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use format::import::Importer;
use format::{Device, Fault, Header};
use serde_json::{Value, json};
use tests::{Folder, program, workspace};
use trace::Settings;
use trace::limits::ImportLimits;
use trace::text::is_hidden;

/// A title of the window, a cleared screen, colors, a line of its own, and text that runs backwards or is not seen.
const HOSTILE: &str = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x7f\u{9b}31m\u{85}\r\n\tforged: nothing found\
                       \u{202e}\u{2066}\u{200b}\u{200f}\u{feff}\u{2028}\u{e0041}";
/// How the line begins that is not the program's.
const FORGED: &str = "forged";

/// Replaces every name and text of a snapshot.
fn poison(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(poison),
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), &*value) {
                    ("filename", _) => *value = json!(format!("/home/{HOSTILE}/{HOSTILE}.py")),
                    ("name", Value::String(name)) => *value = json!(format!("{name}{HOSTILE}")),
                    ("user_metadata" | "compile_context", _) => *value = json!(HOSTILE),
                    ("PYTORCH_CUDA_ALLOC_CONF", _) => *value = json!(format!("max_split_size_mb:200,{HOSTILE}:1")),
                    // Nobody knows this one.
                    ("action", Value::String(action)) if action == "snapshot" => *value = json!(HOSTILE),
                    _ => poison(value),
                }
            }
        }
        _ => {}
    }
}

/// Writes a snapshot and a recording of it into a folder, and a script, a text and other files that commands read. `name` is a
/// part of their names.
fn files(folder: &Path, name: &str) -> Result<Vec<String>> {
    // JSON has no such number, though Python writes it.
    let plain = fs::read_to_string(workspace("tests/fixtures/current.json"))?.replace("NaN", "null");
    let mut snapshot: Value = serde_json::from_str(&plain)?;
    poison(&mut snapshot);
    let snapshot = serde_json::to_vec(&snapshot)?;
    let mut importer = Importer::new(ImportLimits::default());
    importer.push(&snapshot)?;
    let imported = importer.finish()?;
    let text = || HOSTILE.to_owned();
    let header = Header {
        program: text(),
        name: text(),
        host: text(),
        job: text(),
        allocator: text(),
        clock: text(),
        devices: vec![Device { number: 0, name: text(), capacity: 1 << 34 }],
        faults: vec![Fault { is_cut: false, message: text() }],
        // PyTorch reads settings of several lines, so that runs can be repeated under these.
        settings: Settings {
            conf: "max_split_size_mb:64,\n\tgarbage_collection_threshold:0.5,\r\n\u{b}".to_owned(),
            as_written: vec![(text(), text())],
            ..imported.snapshot.settings.clone()
        },
        ..Header::default()
    };
    let recording = format::write(&header, &imported.snapshot);
    let foreign = format::write(&Header { torch: text(), ..header }, &imported.snapshot);
    let pasted =
        format!("CUDA out of memory. Tried to allocate 1.00 GiB. {HOSTILE} GPU 0 has a total capacity of 2.00 GiB");
    let script = json!({"capacity_bytes": 1 << 30, "config": HOSTILE, "ops": [["malloc", HOSTILE, 512, 0], [HOSTILE]]});
    let config = json!({"model_type": HOSTILE, "architectures": [HOSTILE], "hidden_size": HOSTILE});
    let all = [
        ("snapshot.json", snapshot),
        ("recording.vramscope", recording),
        ("foreign.vramscope", foreign),
        ("pasted.txt", pasted.into_bytes()),
        ("script.json", serde_json::to_vec(&script)?),
        ("config.json", serde_json::to_vec(&config)?),
        ("garbage", HOSTILE.as_bytes().to_vec()),
        ("tokens", format!("{HOSTILE} read sha256:{HOSTILE}\n").into_bytes()),
    ];
    let write = |(ending, bytes): (&str, Vec<u8>)| {
        let path = folder.join(format!("{name}{ending}"));
        fs::write(&path, bytes)?;
        Ok(path.to_str().context("a path")?.to_owned())
    };
    all.into_iter().map(write).collect()
}

/// Checks that a text has lines and visible characters only, none of them begun by a name.
fn check(arguments: &[&str], text: &str) -> Result<()> {
    let hidden = text.chars().find(|c| *c != '\n' && is_hidden(*c));
    ensure!(hidden.is_none(), "{arguments:?} prints {hidden:?}: {text:?}");
    let forged = text.lines().find(|line| line.trim_start().starts_with(FORGED));
    ensure!(forged.is_none(), "{arguments:?} prints a line that is not its own: {text}");
    Ok(())
}

fn check_both(arguments: &[&str], output: &Output) -> Result<()> {
    for bytes in [&output.stdout, &output.stderr] {
        check(arguments, std::str::from_utf8(bytes)?)?;
    }
    Ok(())
}

#[test]
fn no_command_prints_what_a_terminal_obeys() -> Result<()> {
    let folder = Folder::new("hostile")?;
    // The folder is as hostile as what is in it, where the system allows that.
    let place = folder.join(format!("folder{HOSTILE}").replace('/', "-"));
    fs::create_dir(&place)?;
    let files = files(&place, HOSTILE)?;
    let [snapshot, recording, foreign, pasted, script, config, garbage, tokens] = &files[..] else {
        anyhow::bail!("{} files", files.len())
    };
    let out = |ending: &str| place.join(format!("out{ending}")).to_string_lossy().into_owned();
    let (stripped, repeated, page) = (out("1.vramscope"), out("2.vramscope"), out("3.html"));
    let (baseline, contract) = (out("4.json"), out("5.toml"));
    let budget = "[[budget]]\nline = \".py\"\nmost = \"1KiB\"\n[[budget]]\nrule = \"line+1KiB\"\n";
    fs::write(&contract, format!("baseline = \"out4.json\"\n{budget}"))?;
    let mut printed_names = 0;
    for file in [snapshot, recording] {
        for arguments in [
            &["doctor", file][..],
            &["doctor", "--json", file],
            &["report", file],
            &["report", "--json", file],
            &["curves", file],
            &["curves", "--json", file],
            &["whatif", file, "--conf", "expandable_segments:True"],
            &["whatif", "--json", file],
            &["whatif", file, "--out", &repeated, "--force"],
            &["tune", file],
            &["plan", file, "--save", "500GiB", "-v"],
            &["plan", "--json", file, "--save", "1MiB"],
            &["diff", file, file],
            &["diff", file, "--at", "event:1", "--at", "end"],
            &["baseline", "set", &baseline, file],
            &["check", file, "--config", &contract],
            &["check", file, "--config", &contract, "--markdown"],
            &["tune", "--json", file, "--goal", "fit"],
            &["bench-allocators", file],
            &["bench-allocators", file, "--conf", ""],
            &["bench-allocators", "--json", file, "--conf", ""],
            &["strip", "--preview", file],
            &["strip", "--preview", "--keep-places", "--keep-metadata", "--paths", "whole", file],
            &["strip", "--out", &stripped, "--force", file],
            &["export", "--out", &page, "--force", file],
            &["push", "--to", "http://127.0.0.1:9", file],
        ] {
            let output = program::run(arguments)?;
            check_both(arguments, &output)?;
            let text = String::from_utf8_lossy(&output.stdout);
            printed_names += usize::from(text.contains(FORGED));
            if arguments.contains(&"--json") && output.status.code() != Some(2) {
                serde_json::from_str::<Value>(&text)?;
            }
        }
    }
    ensure!(printed_names > 10, "names are not printed at all");
    let missing = out("missing");
    let words = format!("--{HOSTILE}");
    for arguments in [
        &["doctor", pasted][..],
        &["doctor", "--json", pasted],
        &["doctor", garbage],
        &["report", garbage, &missing],
        &["report", "--json", garbage, &missing],
        &["report", foreign],
        &["tune", foreign],
        &["plan", foreign, "--save", "1GiB"],
        &["diff", foreign, foreign],
        &["whatif", foreign],
        &["replay", script],
        &["replay", garbage],
        &["budget", "--config", config],
        &["budget", "--config", garbage],
        &["run", "alternating", "--out", &stripped],
        &["run", HOSTILE],
        &["sweep", HOSTILE, HOSTILE],
        &["sweep", "transformer", HOSTILE],
        &["store", "check", "--data", garbage],
        &["serve", "--token-file", tokens],
        &["serve", "--log", HOSTILE],
        &["token", "new", "--name", HOSTILE, "--role", HOSTILE],
        &["pull", HOSTILE],
        &["unshare", HOSTILE],
        &["stop", HOSTILE],
        &["man", HOSTILE],
        &["man", "--out", &out("man")],
        &[HOSTILE],
        &[&words],
        &["report", &words],
        &["curves", snapshot, "--device", HOSTILE],
        &["whatif", snapshot, "--conf", HOSTILE],
        &["whatif", snapshot, "--torch", HOSTILE],
        &["whatif", snapshot, "--card", HOSTILE],
        &["plan", snapshot, "--fit", HOSTILE],
        &["plan", snapshot, "--save", HOSTILE],
    ] {
        check_both(arguments, &program::run(arguments)?)?;
    }
    Ok(())
}

/// Returns a text without the sequences by which the program colors words and rewrites its line of progress.
fn without_own(shown: &str) -> String {
    let colors = [31, 32, 33, 36].map(|color| format!("\x1b[1m\x1b[{color}m"));
    let own = colors.iter().map(String::as_str).chain(["\x1b[34m", "\x1b[1m", "\x1b[0m", "\r\x1b[K"]);
    own.fold(shown.to_owned(), |text, own| text.replace(own, "")).replace("\r\n", "\n")
}

#[test]
fn a_terminal_gets_the_programs_own_colors_only() -> Result<()> {
    let folder = Folder::new("hostile")?;
    let files = files(&folder, HOSTILE)?;
    for arguments in [
        &["doctor", &files[0]][..],
        &["report", &files[1]],
        &["tune", &files[0]],
        &["plan", &files[1], "--save", "500GiB", "-v"],
        &["strip", "--preview", &files[1]],
        &["report", &files[6]],
        &["run", HOSTILE],
        &["report", "--\x1b[31m", &files[0]],
    ] {
        check(arguments, &without_own(&program::on_terminal(70, arguments, &[])?))?;
    }
    Ok(())
}

#[test]
fn shells_get_the_programs_own_completions() -> Result<()> {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = String::from_utf8(program::run(&["completions", shell])?.stdout)?;
        ensure!(!script.contains("\\u0"), "{shell}: a character of the script was taken for a name's");
    }
    Ok(())
}
