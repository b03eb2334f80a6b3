//! `vramscope predict`: what it says of programs that fit, that don't, and that can't be told. A script plays the Python with
//! PyTorch, so that only the command is tested here.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use serde_json::Value;
use tests::{Folder, program, workspace};

/// Runs the command on a script in `folder`.
fn predict(folder: &Path, line: &str) -> Result<Output> {
    std::fs::write(folder.join("train.py"), "")?;
    let mut command = Command::new(program::path()?);
    command.arg("predict").arg("--python").arg(workspace("tests/cases/commands/predict.py")).args(line.split(' '));
    command.current_dir(folder).env("PROGRAM", program::path()?).env("TMPDIR", folder);
    for name in ["PYTHONPATH", "VRAMSCOPE_TO", "RANK", "WORLD_SIZE"] {
        command.env_remove(name);
    }
    Ok(command.output()?)
}

/// A command line, its exit code, and parts of what it prints to standard output, or else to standard error.
type Case = (&'static str, i32, &'static [&'static str]);

fn check(cases: &[Case]) -> Result<()> {
    let folder = Folder::new("predict")?;
    for (line, code, parts) in cases {
        let Output { status, stdout, stderr } = predict(&folder, line)?;
        let (out, err) = (String::from_utf8(stdout)?, String::from_utf8_lossy(&stderr));
        let text = if out.is_empty() { &*err } else { &*out };
        assert_eq!(status.code(), Some(*code), "{line}: {out}{err}");
        for part in *parts {
            assert!(text.contains(part), "{line}: no {part:?} in {out}{err}");
        }
        // The answer alone is on standard output.
        assert!(!out.contains("the job's own line"), "{line}: {out}");
    }
    Ok(())
}

#[test]
fn whether_it_fits_and_what_with() -> Result<()> {
    check(&[
        ("train.py run", 0, &["NEEDS 5.", "the smallest card with that much is T4-16GB", "live at the peak, by line:"]),
        ("--card T4 train.py run", 0, &["T4-16GB: FITS under default settings: needs 5.", " of 14.1 GiB"]),
        (
            "--card T4 train.py run --batch-size 16",
            1,
            &["T4-16GB: DOES NOT FIT", "The smallest card with that much is", "asked"],
        ),
        ("--capacity 5GiB train.py run", 1, &["DOES NOT FIT under default settings: needs 5.", "T4-16GB"]),
        // One that goes on with less.
        (
            "--card T4 train.py recovers --batch-size 16",
            0,
            &["T4-16GB: FITS after 1 request failed and the program went on"],
        ),
        (
            "train.py waits",
            0,
            &["(as far as it ran: 3 steps, then a loop that waits for a value which no kernel computes)"],
        ),
        (
            "--card T4 train.py late",
            2,
            &["T4-16GB: FAILED after 3 steps. Up to there: FITS", "until it failed after 3 steps."],
        ),
        // What others hold is not there.
        ("--card T4 --others 12GiB train.py run", 1, &["but only 2.06 GiB is available"]),
        ("--card T4 --fail-if-over 0.2 train.py run", 1, &["T4-16GB: FITS"]),
        ("--card T4 --fail-if-over 0.9 train.py run", 0, &["T4-16GB: FITS"]),
        (
            "train.py run",
            0,
            &[
                "It was stopped after 3 steps, since two in a row had the same peak",
                " (as far as it ran: 3 steps)",
                "train.py:62  item, 2 times",
                "cuDNN's workspaces for convolutions come on top",
            ],
        ),
        ("--world-size 64 --rank 0,63 train.py run", 0, &["rank 0 of 64, device 0", "rank 63 of 64, device 0", "NCCL"]),
        (
            "--world-size 8 --rank all-classes train.py stages",
            0,
            &[
                "rank 0 of 8, device 0",
                "rank 4 of 8, device 0",
                "rank 7 of 8",
                "Ranks that are not listed are taken to be like one",
            ],
        ),
    ])
}

#[test]
fn what_can_not_be_told() -> Result<()> {
    check(&[
        ("train.py cpu", 2, &["error: The program did not use the GPU. Does it choose one"]),
        (
            "train.py broken",
            2,
            &["Traceback: no such module", "The program failed before it used the GPU; its error is above."],
        ),
        (
            "train.py raises",
            2,
            &["The program failed before it allocated anything on the GPU: ValueError: no such layer."],
        ),
        ("--card MI300X-192GB train.py run", 2, &["MI300X-192GB does not run CUDA's PyTorch"]),
        ("--vary batch_size=1..9 train.py run --batch-size 2", 2, &["--vary and --fail-if-over need a limit"]),
        ("--card T4 --vary batch=1..9 train.py run", 2, &["the command line has no option batch. Write {batch}"]),
        ("--card T4 --vary batch=9 train.py run", 2, &["--vary \"batch=9\" is no range"]),
        (
            "--value a.py:3=true --value b.py:4=0.5 train.py shows",
            2,
            &[r#"[{"file":"a.py","line":3,"value":1.0},{"file":"b.py","line":4,"value":0.5}]"#],
        ),
        ("--value a.py=1 train.py run", 2, &["write a line and what it reads, such as train.py:62=0.5"]),
        ("--world-size 1000003 --rank all-classes train.py run", 2, &["1000003 is not in 1..=1000000"]),
        ("--world-size 8 --rank all train.py run", 2, &["write ranks such as 0 or 0,7,63, or all-classes"]),
        ("--world-size 8 --rank 8 train.py run", 2, &["--rank 8: the last rank of 8 is 7."]),
        ("tra.py run", 2, &["There is no script tra.py. Did you mean train.py?"]),
        ("--crad T4 train.py", 2, &["--crad", "--card"]),
    ])
}

#[test]
fn the_largest_number_that_fits_was_run_and_so_was_the_next() -> Result<()> {
    let folder = Folder::new("vary")?;
    let line = "--json --card A10-24GB --vary batch_size=1..64 train.py run --batch-size 1";
    let Output { status, stdout, stderr } = predict(&folder, line)?;
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    let answer: Value = serde_json::from_slice(&stdout)?;
    let largest = &answer["largest"];
    let number = |key: &str| largest[key]["value"].as_u64().unwrap();
    assert_eq!((number("fits") + 1, largest["name"].as_str()), (number("fails"), Some("batch_size")));
    assert!(largest["runs"].as_array().is_some_and(|runs| runs.len() < 9), "{largest}");
    // The prediction is that of the largest one.
    assert_eq!((&answer["fits"], &answer["needs"]), (&true.into(), &largest["fits"]["needs"]));
    for (batch, code) in [(number("fits"), 0), (number("fails"), 1)] {
        let line = format!("--card A10-24GB train.py run --batch-size {batch}");
        assert_eq!(predict(&folder, &line)?.status.code(), Some(code), "{batch}");
    }
    Ok(())
}

#[test]
fn json_has_the_memory_of_each_rank_and_every_card() -> Result<()> {
    let folder = Folder::new("json")?;
    let out = folder.join("recordings");
    let line = format!("--json --out {} --world-size 2 --rank 0,1 --capacity 80GiB train.py run", out.display());
    let answer: Value = serde_json::from_slice(&predict(&folder, &line)?.stdout)?;
    let processes = answer["processes"].as_array().unwrap();
    assert_eq!(processes.iter().map(|process| process["rank"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(1)]);
    for process in processes {
        let memory = &process["memory"][0];
        let bytes = |key: &str| memory[key].as_u64().unwrap();
        assert!(bytes("peak_reserved") >= bytes("peak_allocated") && bytes("needs") >= bytes("peak_allocated"));
        assert!(memory["report"]["peak_categories"].as_array().is_some_and(|rows| !rows.is_empty()));
        assert!(process["recording"].as_str().is_some_and(|path| path.starts_with(out.to_str().unwrap())));
        assert!(process["readbacks"][0]["made_up"] == true && process["ended"] == "same_peak");
    }
    let needs = answer["needs"].as_u64().unwrap();
    for card in answer["cards"].as_array().unwrap() {
        assert_eq!(card["fits"], Value::from(card["usable"].as_u64().unwrap() >= needs), "{card}");
    }
    // A second command must not mix its recordings with these.
    let again = predict(&folder, &line)?;
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("Name another with --out."));
    Ok(())
}
