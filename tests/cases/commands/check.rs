//! `vramscope baseline` and `vramscope check` on the command line: a repository that keeps to its budgets, and what is wrong with a
//! file of budgets.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{Folder, program};

/// A folder with recordings of a training job, a baseline, and a file of budgets.
struct Repository {
    folder: Folder,
}

impl Repository {
    fn new(name: &str) -> Result<Self> {
        Ok(Self { folder: Folder::new(name)? })
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// Records a job with a batch of this size.
    fn record(&self, name: &str, batch: u32) -> Result<String> {
        let (file, batch) = (self.path(name), format!("batch={batch}"));
        let output = program::run(&["run", "transformer", "layers=2", &batch, "--steps", "3", "--out", &file])?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(file)
    }

    /// Adds a run to the baseline, and returns what is said.
    fn keep(&self, run: &str, more: &[&str]) -> Result<String> {
        let file = self.path("memory-baseline.json");
        let output = program::run(&[&["baseline", "set", &file, run], more].concat())?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Checks a run against budgets, and returns the exit code and what is printed, or else said.
    fn check(&self, run: &str, budgets: &str, more: &[&str]) -> Result<(Option<i32>, String)> {
        let config = self.path("vramscope.toml");
        fs::write(&config, budgets)?;
        let output = program::run(&[&["check", run, "--config", &config], more].concat())?;
        let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        Ok((output.status.code(), String::from_utf8(said)?))
    }
}

const BASELINE: &str = "baseline = \"memory-baseline.json\"\n";

#[test]
fn a_run_is_checked_against_budgets_and_the_runs_before() -> Result<()> {
    let repository = Repository::new("check")?;
    let (usual, larger) = (repository.record("usual.vramscope", 2)?, repository.record("larger.vramscope", 3)?);
    let said = repository.keep(&usual, &[])?;
    ensure!(said.contains("memory-baseline.json has 1 run: "), "{said}");

    let budgets = "[[budget]]\npeak = \"1TiB\"\n[[budget]]\nline = \"model.py\"\nmost = \"1KiB\"\n\
                   [[budget]]\nrule = \"peak+2%\"\n[[budget]]\ncategory = \"activations\"\nmost = \"1TiB\"\n";
    let budgets = format!("{BASELINE}{budgets}");
    let (code, text) = repository.check(&larger, &budgets, &[])?;
    ensure!(code == Some(1) && text.starts_with("OVER BUDGET: 2 of 4, larger.vramscope, the peak of step "), "{text}");
    for words in [
        "  kept  peak: ",
        "  OVER  line model.py: ",
        "  OVER  peak+2%: +",
        "  kept  activations: ",
        "A is the baseline. B's peak is ",
    ] {
        ensure!(text.contains(words), "{words}: {text}");
    }
    let within = "[[budget]]\npeak = \"1KiB\"\nphase = \"forward\"\n\
                  [[budget]]\nmodule = \"model\"\nphase = \"backward\"\nmost = \"1TiB\"\n";
    let (code, text) = repository.check(&larger, within, &[])?;
    ensure!(code == Some(1) && text.starts_with("OVER BUDGET: 1 of 2"), "{text}");
    for words in ["  OVER  peak within forward: ", "  kept  module model within backward: "] {
        ensure!(text.contains(words), "{words}: {text}");
    }
    let (code, comment) = repository.check(&larger, &budgets, &["--markdown"])?;
    ensure!(code == Some(1) && comment.starts_with("**GPU memory: over budget.** the peak of step "), "{comment}");
    let (_, document) = repository.check(&larger, &budgets, &["--json"])?;
    let document: Value = serde_json::from_str(&document)?;
    assert_eq!(
        (&document["verdict"], &document["budgets"][0]["over"], &document["rules"][0]["over"]),
        (&"over".into(), &false.into(), &true.into())
    );
    ensure!(document["budgets"][1]["bytes"].as_u64() > Some(1024), "{document}");

    // The larger run is in the baseline now, so what it needs is noise.
    repository.keep(&larger, &[])?;
    let only_rule = format!("{BASELINE}[[budget]]\nrule = \"peak+2%\"\n");
    let (code, text) = repository.check(&larger, &only_rule, &[])?;
    ensure!(code == Some(0) && text.contains("No difference above the noise: B peaks at "), "{text}");
    // The oldest are forgotten.
    ensure!(repository.keep(&usual, &["--keep", "1"])?.contains("has 1 run: "), "one is kept");
    let (code, _) = repository.check(&larger, &only_rule, &[])?;
    assert_eq!(code, Some(1));

    // `diff` takes a baseline, too.
    let output = program::run(&["diff", "--json", &repository.path("memory-baseline.json"), &larger])?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(
        (&document["at"]["a"]["file"], &document["at"]["b"]["file"]),
        (&"usual.vramscope".into(), &"larger.vramscope".into())
    );
    Ok(())
}

#[test]
fn what_is_wrong_with_budgets_and_baselines_is_told_with_its_place() -> Result<()> {
    let repository = Repository::new("unchecked")?;
    let run = repository.record("run.vramscope", 1)?;
    let rule = "[[budget]]\nrule = \"peak+2%\"\n";
    for (budgets, words) in [
        ("", "vramscope.toml has no budget. `vramscope check --help` has an example."),
        ("[[budget]]\npeak = \"lots\"\n", "budget 1: \"lots\" is no amount: write 40GiB or 512MiB."),
        (
            "[[budget]]\npeak = \"1GiB\"\n[[budget]]\nline = \"a.py\"\n",
            "budget 2: it has no most: add most = \"2GiB\".",
        ),
        ("[[budget]]\npaek = \"1GiB\"\n", "vramscope.toml, line 2: unknown field `paek`"),
        ("peak = [\n", "vramscope.toml, line 1: "),
        (rule, "a rule needs a baseline: add baseline = \"memory-baseline.json\"."),
        (&format!("{BASELINE}{rule}"), "There is no such file"),
        (
            &format!("baseline = \"run.vramscope\"\n{rule}"),
            "run.vramscope is no baseline. Make one: vramscope baseline set FILE RUN.",
        ),
        (
            "at = \"noon\"\n[[budget]]\npeak = \"1GiB\"\n",
            "write peak, end, step:12, step-end:12, event:1000, time:12.5, mark:NAME or phase:NAME",
        ),
        ("[[budget]]\npeak = \"1GiB\"\nphase = \"none\"\n", "has no annotation named \"none\""),
        (&format!("{BASELINE}{rule}phase = \"forward\"\n"), "a rule is of the moment of the baseline: leave out phase"),
        ("at = \"step:99\"\n[[budget]]\npeak = \"1GiB\"\n", "has no step 99"),
    ] {
        let (code, said) = repository.check(&run, budgets, &[])?;
        ensure!(code == Some(2) && said.contains(words), "{budgets:?}: {code:?}: {said}");
    }
    let baseline = repository.path("memory-baseline.json");
    for (text, words) in [
        ("{\"vramscope_baseline\":1,\"runs\":[]}", "This baseline has no runs. Add one: vramscope baseline set."),
        ("{\"vramscope_baseline\":7,\"runs\":[]}", "of another version of Vramscope"),
        ("{\"vramscope_baseline\":1,\"runs\":[{]}", "This baseline can't be read: "),
    ] {
        fs::write(&baseline, text)?;
        let (code, said) = repository.check(&run, &format!("{BASELINE}{rule}"), &[])?;
        ensure!(code == Some(2) && said.contains(words), "{text}: {code:?}: {said}");
    }
    // A file that is something else is not replaced.
    let output = program::run(&["baseline", "set", &run, &run])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.code() == Some(2) && said.contains("run.vramscope is no baseline. Name another file."),
        "{said}"
    );
    let output = program::run(&["check", &run, "--config", &repository.path("none.toml")])?;
    let said = String::from_utf8(output.stderr).context("words")?;
    ensure!(output.status.code() == Some(2) && said.contains("none.toml can't be read: "), "{said}");
    Ok(())
}

/// The job is a script that records by the program itself, as the agent does in a process of PyTorch.
#[test]
fn a_bisection_is_told_which_run_a_commit_is_like() -> Result<()> {
    let repository = Repository::new("bisect")?;
    let (good, bad) = (repository.record("good.vramscope", 1)?, repository.record("bad.vramscope", 4)?);
    let bisect = |good: &str, bad: &str, job: &str| -> Result<(Option<i32>, String)> {
        let mut command = Command::new(program::path()?);
        command.args(["bisect", "--good", good, "--bad", bad, "--", "sh", "-c", job]);
        let output = command.env("PROGRAM", program::path()?).env("XDG_STATE_HOME", &*repository.folder).output()?;
        Ok((output.status.code(), String::from_utf8(output.stderr)?))
    };
    let job = |batch: u32| {
        format!(
            "out=$(echo \"$VRAMSCOPE_OUT\" | sed 's/{{rank}}/0/; s/{{pid}}/1/'); \
             \"$PROGRAM\" run transformer layers=2 batch={batch} --steps 3 --out \"$out\" > /dev/null"
        )
    };
    let (code, said) = bisect(&good, &bad, &job(1))?;
    ensure!(code == Some(0) && said.contains("vramscope: good: "), "{code:?}: {said}");
    let (code, said) = bisect(&good, &bad, &job(3))?;
    ensure!(code == Some(1) && said.contains("vramscope: bad: "), "{code:?}: {said}");
    let (code, said) = bisect(&good, &bad, "exit 3")?;
    ensure!(code == Some(125) && said.contains("The job failed. The commit is skipped."), "{code:?}: {said}");
    let (code, said) = bisect(&good, &bad, "true")?;
    ensure!(code == Some(125) && said.contains("The job recorded nothing."), "{code:?}: {said}");
    let (code, said) = bisect(&bad, &good, "true")?;
    ensure!(code == Some(128) && said.contains("Are they swapped?"), "{code:?}: {said}");
    Ok(())
}

/// The command of the hook in the guide, with a workload in place of the job.
#[test]
fn the_hook_of_the_guide_stops_a_push_that_is_over_budget() -> Result<()> {
    let guide = fs::read_to_string(tests::workspace("collector/README.md"))?;
    let entry = guide.lines().find_map(|line| line.trim().strip_prefix("entry: sh -c '")?.strip_suffix('\''));
    let entry = entry.context("the guide has a hook")?;
    let job = "vramscope watch --out run.vramscope train.py --steps 3";
    ensure!(entry.contains(job), "{entry}");
    let repository = Repository::new("hook")?;
    fs::write(repository.path("vramscope.toml"), "[[budget]]\npeak = \"5GiB\"\n")?;
    for (batch, code) in [(1, 0), (4, 1)] {
        let run = format!("vramscope run transformer layers=2 batch={batch} --steps 3 --out run.vramscope --force");
        let script = format!("vramscope() {{ \"$PROGRAM\" \"$@\"; }}\n{}", entry.replace(job, &run));
        let mut hook = Command::new("sh");
        hook.args(["-c", &script]).current_dir(&repository.folder).env("PROGRAM", program::path()?);
        let output = hook.output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(code), "batch {batch}: {said}");
    }
    Ok(())
}
