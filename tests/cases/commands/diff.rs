//! `vramscope diff` on the command line: two runs, the gate as a script for CI has it, and the errors.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Folder, program};

/// The recordings of a training job: before a change of its batch, and after it.
fn runs(folder: &Folder) -> Result<[String; 2]> {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let files = [file("before.vramscope"), file("after.vramscope")];
    for (file, batch) in files.iter().zip(["batch=2", "batch=3"]) {
        let output = program::run(&["run", "transformer", "layers=4", batch, "--steps", "3", "--out", file])?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(files)
}

fn json(arguments: &[&str]) -> Result<(Option<i32>, Value)> {
    let output = program::run(&[&["diff", "--json"], arguments].concat())?;
    let printed = serde_json::from_slice(&output.stdout);
    Ok((output.status.code(), printed.with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?))
}

#[test]
fn what_changed_adds_up_and_the_other_way_round_is_the_opposite() -> Result<()> {
    let folder = Folder::new("diff")?;
    let [before, after] = runs(&folder)?;
    let (code, there) = json(&[&before, &after])?;
    let (_, back) = json(&[&after, &before])?;
    let number = |value: &Value| value.as_i64().with_context(|| format!("{value} is no number"));
    ensure!(code == Some(0) && number(&there["peak"]["delta"])? > 0, "{there}");
    assert_eq!(number(&back["peak"]["delta"])?, -number(&there["peak"]["delta"])?);
    let lines = there["lines"].as_array().context("no lines")?;
    let sum = lines.iter().map(|line| number(&line["delta"])).sum::<Result<i64>>()?;
    assert_eq!(sum, number(&there["peak"]["delta"])?);
    let parts = ["allocated", "rounding", "waiting", "gaps"];
    let sum = parts.iter().map(|part| number(&there["accounting"][part])).sum::<Result<i64>>()?;
    assert_eq!(sum, number(&there["reserved"]["delta"])?);
    for line in lines {
        let parts = number(&line["delta_by_count"])? + number(&line["delta_by_size"])?;
        assert_eq!((parts, &line["match"]), (number(&line["delta"])?, &"exact".into()), "{line}");
    }
    assert_eq!(
        (&there["comparable"]["verdict"], &there["at"]["a"]["step"]),
        (&"yes".into(), &there["at"]["b"]["step"])
    );
    let (_, same) = json(&[&before, &before])?;
    ensure!(same["sentence"].as_str().is_some_and(|sentence| sentence.starts_with("No difference: ")), "{same}");

    // The text begins with the same sentence, and has a line that grew.
    let text = String::from_utf8(program::run(&["diff", &before, &after])?.stdout)?;
    assert_eq!(text.lines().next(), there["sentence"].as_str());
    ensure!(text.contains("the peak of step") && text.contains("\n  reserved +"), "{text}");
    Ok(())
}

/// The gate of the collector's README fails for the right reason, and only then.
#[test]
fn a_gate_for_ci_fails_when_more_was_added_than_a_rule_allows() -> Result<()> {
    let folder = Folder::new("gate")?;
    let [before, after] = runs(&folder)?;
    let script = "\"$1\" diff \"$2\" \"$3\" --markdown --fail-if peak+2% --fail-if line+1GiB > comment.md";
    let gate = |before: &str, after: &str| -> Result<(Option<i32>, String)> {
        let program = program::path()?;
        let mut shell = Command::new("sh");
        shell.current_dir(&*folder).args(["-euc", script, "sh"]).arg(program).args([before, after]);
        let code = shell.status()?.code();
        Ok((code, fs::read_to_string(folder.join("comment.md"))?))
    };
    let (code, comment) = gate(&before, &after)?;
    ensure!(code == Some(1) && comment.starts_with("**GPU memory: too much.** B's peak is "), "{code:?}: {comment}");
    ensure!(comment.contains("- ❌ peak+2%: +") && comment.contains("- ✅ line+1GiB: +"), "{comment}");
    let (code, comment) = gate(&before, &before)?;
    ensure!(code == Some(0) && comment.starts_with("**GPU memory.** No difference: "), "{code:?}: {comment}");
    Ok(())
}

#[test]
fn what_can_not_be_compared_is_refused_with_a_way_around() -> Result<()> {
    let folder = Folder::new("refused")?;
    let [before, after] = runs(&folder)?;
    let bare = tests::workspace("tests/fixtures/no_history.pickle").to_string_lossy().into_owned();
    for (arguments, words) in [
        (&[before.as_str(), &bare][..], "These can't be compared: One has a history, and the other only its end"),
        (&[&before, &after, "--at", "step:99"], "has no step 99: its steps are 0 to 2"),
        (&[&before, &after, "--at", "event:4000000000"], "and no event 4000000000"),
        (&[&before, &after, "--at", "mark:none"], "has no annotation named \"none\""),
        (
            &[&before, &after, "--at", "noon"],
            "write peak, end, step:12, step-end:12, event:1000, time:12.5, mark:NAME or phase:NAME",
        ),
        (&[&before, &after, "--at", "end", "--at", "peak", "--at", "end"], "Give --at once for both, or twice"),
        (&[&before, "--at", "step:1"], "Add another, such as --at step:1 --at end, or a run"),
        (&[&bare], "has no two steps to compare. Name another run, or two moments"),
        (&[&before, &after, "--device", "7"], "There is no device 7"),
        (&[&before, &after, "--fail-if", "peak+x"], "A rule is peak, reserved, line or fragmentation"),
        (&[&before, &after, "--map", "x"], "write OLD=NEW"),
        (&[&before, "/none.pickle"], "There is no such file"),
    ] {
        let output = program::run(&[&["diff"], arguments].concat())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
    // Of a file without a history, the lines of what is live are known all the same.
    let (_, same) = json(&[&bare, &bare])?;
    let lines = same["lines"].as_array().context("no lines")?;
    ensure!(lines.iter().any(|line| line["line"].as_str().is_some_and(|line| line.contains(".py:"))), "{same}");
    let (code, forced) = json(&[&before, &bare, "--at", "end", "--force"])?;
    assert_eq!(
        (code, &forced["comparable"]["verdict"], &forced["comparable"]["forced"]),
        (Some(0), &"no".into(), &true.into())
    );
    Ok(())
}

/// Each step of the job keeps 48 MiB.
#[test]
fn two_steps_of_one_run_are_compared_line_by_line() -> Result<()> {
    let folder = Folder::new("steps")?;
    let file = folder.join("leak.pickle").to_string_lossy().into_owned();
    program::run(&["run", "leak", "--steps", "9", "--out", &file])?;
    let (_, found) = json(&[&file, "--at", "step-end:2", "--at", "step-end:7"])?;
    assert_eq!((&found["at"]["a"]["step"], &found["at"]["b"]["step"]), (&2.into(), &7.into()));
    let line = &found["lines"][0];
    assert_eq!((&line["delta"], &line["match"]), (&(5 * (48 << 20)).into(), &"exact".into()));
    ensure!(line["line"].as_str().is_some_and(|line| line.ends_with("metrics.py:33")), "{line}");
    // Without moments, the second and the last one are compared, at their peaks.
    let text = String::from_utf8(program::run(&["diff", &file])?.stdout)?;
    ensure!(text.contains("the peak of step 1") && text.contains("the peak of step 8"), "{text}");
    Ok(())
}

/// The first bytes of a run that came through a pipe were lost: it was looked at for a baseline first.
#[test]
fn a_run_is_read_from_a_pipe() -> Result<()> {
    let folder = Folder::new("piped")?;
    let [before, after] = runs(&folder)?;
    let (_, want) = json(&[&before, &after])?;
    let script = "cat \"$2\" | \"$1\" diff --json - \"$3\"";
    let output =
        Command::new("sh").args(["-c", script, "sh"]).arg(program::path()?).args([&before, &after]).output()?;
    let got: Value = serde_json::from_slice(&output.stdout).context("no JSON")?;
    assert_eq!((&got["peak"], &got["lines"]), (&want["peak"], &want["lines"]));
    Ok(())
}
