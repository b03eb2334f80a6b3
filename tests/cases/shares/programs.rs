//! The commands: push, pull and unshare.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use format::{ChunkReader, PRELUDE_BYTES};
use tests::server::Server;
use tests::{Folder, program};
use trace::limits::ImportLimits;

use super::{Client, fixture};

/// Runs the program in a folder, with a text as its input.
fn run(folder: &Folder, arguments: &[&str], input: &str) -> Result<(bool, String, String)> {
    let mut child = Command::new(program::path()?)
        .args(arguments)
        .current_dir(&**folder)
        .env_remove("VRAMSCOPE_TO")
        .env_remove("VRAMSCOPE_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no input")?.write_all(input.as_bytes())?;
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    Ok((status.success(), String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

/// Returns the unpacked payloads of a recording, end to end.
fn unpacked(recording: &[u8]) -> Vec<u8> {
    let mut payloads = Vec::new();
    let mut reader = ChunkReader::at_chunk(&ImportLimits::default(), PRELUDE_BYTES as u64);
    let visit = &mut |chunk: format::Chunk<'_>| payloads.extend_from_slice(chunk.payload);
    reader.push(&recording[PRELUDE_BYTES..], visit).expect("a recording");
    payloads
}

#[test]
fn a_trace_goes_to_a_server_and_comes_back_without_what_was_private() -> Result<()> {
    let folder = Folder::new("push")?;
    let server = Server::start()?;
    let url = server.url();
    let sample = server.get("/sample.pickle")?.body;
    std::fs::write(folder.join("sample.pickle"), sample)?;
    let file = "sample.pickle";
    let (is_done, link, said) = run(&folder, &["push", file, "--to", &url, "--name", "a run", "--expires", "2h"], "")?;
    assert!(is_done && link.starts_with(&url) && link.lines().count() == 1, "{link}{said}");
    let link = link.trim();
    let (is_done, out, said) = run(&folder, &["pull", link], "")?;
    assert!(is_done && out.starts_with("Wrote a-run.vramscope: "), "{out}{said}");
    let (is_done, _, said) = run(&folder, &["pull", link], "")?;
    assert!(!is_done && said.contains("a-run.vramscope exists already"), "{said}");
    // Home folders and user names of the original are nowhere in what the server has.
    let original = std::fs::read(folder.join(file))?;
    let shared = unpacked(&std::fs::read(folder.join("a-run.vramscope"))?);
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for private in ["/home/", "/ada/"] {
        assert!(has(&original, private), "the sample has no {private}");
        assert!(!has(&shared, private), "the shared trace has {private}");
    }
    // `push` prints the delete token once.
    let (_, again, said) = run(&folder, &["push", file, "--to", &url], "")?;
    assert!(said.contains("It expires on 20") && said.contains("opens nowhere else"), "{said}");
    let delete = said.lines().find_map(|line| line.strip_prefix("Delete token, for vramscope unshare: "));
    let delete = delete.context("no delete token")?;
    for (given, words) in [(delete, "not the delete token of this link"), ("", "No delete token was given")] {
        let (is_done, _, said) = run(&folder, &["unshare", link], given)?;
        assert!(!is_done && said.contains(words), "{said}");
    }
    let (is_done, out, said) = run(&folder, &["unshare", again.trim()], delete)?;
    assert!(is_done && out.contains("deleted"), "{out}{said}");
    let (is_done, _, said) = run(&folder, &["unshare", again.trim()], delete)?;
    assert!(!is_done && said.contains("was deleted, or expired, before"), "{said}");
    let (is_done, _, said) = run(&folder, &["pull", again.trim()], "")?;
    assert!(!is_done && said.contains("was deleted"), "{said}");
    Ok(())
}

#[test]
fn a_copy_tells_what_was_wrong_with_the_file() -> Result<()> {
    let folder = Folder::new("faults")?;
    let server = Server::start_with(&["--share-days", "10"])?;
    let url = server.url();
    let sample = server.get("/sample.pickle")?.body;
    std::fs::write(folder.join("cut.pickle"), &sample[..sample.len() / 2])?;
    let mut damaged = std::fs::read(tests::workspace("tests/fixtures/recording_gap.vramscope"))?;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    std::fs::write(folder.join("damaged.vramscope"), damaged)?;
    for (file, word) in
        [("cut.pickle", "! The file is truncated at byte"), ("damaged.vramscope", "! The file is damaged in 1 place")]
    {
        // A server that allows only ten days gives that, where nothing else was asked for.
        let (is_done, link, said) = run(&folder, &["push", file, "--to", &url], "")?;
        assert!(is_done && said.contains(word), "{said}");
        let (_, _, said) = run(&folder, &["pull", link.trim(), "--force", "-o", "copy.vramscope"], "")?;
        let (_, report, _) = run(&folder, &["report", "copy.vramscope"], "")?;
        assert!(report.contains("This is a copy of a damaged file. About that file: The file is"), "{report}{said}");
        assert!(!report.contains("No events were recorded") && !report.contains("recording paused"), "{report}");
        // A copy of the copy says it once.
        let (_, _, said) = run(&folder, &["strip", "copy.vramscope", "--force", "-o", "again.vramscope"], "")?;
        let (_, report, _) = run(&folder, &["report", "again.vramscope"], "")?;
        assert_eq!(report.matches("This is a copy of a damaged file").count(), 1, "{report}{said}");
    }
    Ok(())
}

#[test]
fn a_password_opens_the_link_and_the_errors_say_what_to_do() -> Result<()> {
    let folder = Folder::new("locked")?;
    let tokens = folder.secret("tokens", "me share,read token-of-mine-0123456789\n")?;
    let server = Server::start_with(&["--tokens", &tokens])?;
    let (url, file) = (server.url(), fixture());
    let file = file.to_str().context("a path")?;
    let token = folder.secret("token", "token-of-mine-0123456789\n")?;
    let password = folder.secret("password", "correct horse\n")?;
    let empty = folder.secret("empty", " \n")?;
    let options = ["--token-file", &token, "--password-file", &password];
    let (is_done, link, said) = run(&folder, &[&["push", file, "--to", &url], &options[..]].concat(), "")?;
    assert!(is_done, "{said}");
    let link = link.trim();
    let (is_done, out, said) = run(&folder, &[&["pull", link, "-o", "x.vramscope"], &options[..]].concat(), "")?;
    assert!(is_done && out.contains("x.vramscope"), "{out}{said}");
    let nobody = "http://127.0.0.1:1";
    for (arguments, words) in [
        (vec!["push", file, "--to", &url], "Name its file with --token-file"),
        (vec!["pull", link, "--token-file", &token], "Name a file that holds it with --password-file"),
        (vec!["push", file, "--to", nobody, "--password-file", &empty], "holds no password"),
        (vec!["pull", "https://box.example/"], "not a link to a shared trace"),
        (vec!["push", file, "--to", "box"], "not a server address"),
        (vec!["push", "no-such-file", "--to", nobody], "no-such-file"),
        (vec!["push", file, "--to", &url, "--token-file", &token, "--public"], "--public-links"),
        (vec!["push", file, "--to", &url, "--expires", "soon"], "90m, 12h or 30d, or never"),
        (vec!["push", file, "--to", &url, "--expires", "0d"], "would expire at once"),
    ] {
        let (is_done, _, said) = run(&folder, &arguments, "")?;
        assert!(!is_done && said.contains(words), "{arguments:?}: {said}");
        assert!(!said.contains("token-of-mine") && !said.contains("correct horse"), "{said}");
    }
    let client = Client::new(server.address());
    assert_eq!(client.get("/sharing")?.status, 401);
    Ok(())
}
