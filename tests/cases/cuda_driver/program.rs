//! `vramscope run --driver cuda`, from the command line down to the driver library.

use std::process::{Command, Output};

use anyhow::{Context, Result};
use serde_json::Value;
use tests::fakecuda::FakeFolder;
use tests::program;

const MIB: u64 = 1 << 20;

/// Runs the program with the libraries of a folder.
fn run(folder: &FakeFolder, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Output> {
    let mut command = Command::new(program::path()?);
    folder.serve(&mut command);
    command.arg("run").args(arguments).envs(variables.iter().copied()).output().context("running the program")
}

#[test]
fn a_workload_runs_on_the_device_as_it_does_on_the_simulated_one() -> Result<()> {
    let folder = FakeFolder::new("a_workload_runs")?;
    // The device has twice the capacity that the workload may use.
    let variables = [
        ("FAKECUDA_CAPACITY", "536870912"),
        ("FAKECUDA_OTHER_BYTES", "10485760"),
        ("FAKECUDA_CONTEXT_BYTES", "4194304"),
    ];
    let all: &[&str] = &["allocated", "active", "requested", "reserved", "inactive_split", "num_ooms", "events"];
    // Memory that waits for a stream may differ, because streams finish at other times on the device.
    let but_streams: &[&str] = &["allocated", "num_ooms"];
    let cases: &[(&[&str], &[&str])] = &[
        (&["alternating", "--capacity", "256MiB"], all),
        (&["alternating", "--capacity", "256MiB", "--conf", "expandable_segments:True"], all),
        (
            &["transformer", "hidden=128", "heads=4", "layers=2", "vocab=512", "seq=64", "--capacity", "256MiB"],
            but_streams,
        ),
    ];
    for (arguments, fields) in cases {
        let mut reports = Vec::new();
        for driver in ["sim", "cuda"] {
            let output = run(&folder, &[*arguments, &["--json", "--driver", driver][..]].concat(), &variables)?;
            assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            reports.push(serde_json::from_slice::<Value>(&output.stdout)?);
        }
        let [sim, cuda] = &reports[..] else { unreachable!() };
        assert!(sim["outside"].is_null(), "{arguments:?}");
        assert_eq!(cuda["outside"]["bytes"], 14 * MIB, "{arguments:?}: {}", cuda["outside"]);
        let processes = cuda["outside"]["holders"]["processes"].as_array().context("no processes")?;
        let other = processes.iter().find(|process| process["pid"] == 4242).context("the other process is missing")?;
        assert_eq!(other["used_bytes"], 10 * MIB);
        for field in *fields {
            assert_eq!(sim[field], cuda[field], "{arguments:?} {field}");
        }
        assert_eq!(sim["error"].is_null(), cuda["error"].is_null(), "{arguments:?}");
    }
    Ok(())
}

#[test]
fn a_device_with_less_than_the_workload_is_used_to_is_told_as_it_is() -> Result<()> {
    let folder = FakeFolder::new("a_small_device")?;
    let output = run(&folder, &["leak", "--json", "--driver", "cuda"], &[("FAKECUDA_CAPACITY", "2147483648")])?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(report["capacity_bytes"], 2048 * MIB, "{report}");
    let verdict = report["verdict"]["sentence"].as_str().context("no verdict")?;
    assert!(!verdict.contains("16.0 GiB"), "{verdict}");
    Ok(())
}

#[test]
fn without_a_device_the_program_prints_one_line() -> Result<()> {
    let (none, driver) = (FakeFolder::empty("no_driver")?, FakeFolder::new("no_device")?);
    let cases: [(&FakeFolder, &[&str], &str); 3] = [
        (&driver, &["leak", "--driver", "cuda", "--gpu", "7"], "device 7"),
        (&driver, &["leak", "--driver", "cuda", "--out", "/nowhere/at/all.vramscope"], "can't be written"),
        (&none, &["leak", "--driver", "cuda"], "driver"),
    ];
    for (folder, arguments, want) in cases {
        // On a machine with a GPU, the last case would find its driver.
        if want == "driver" && std::path::Path::new("/dev/nvidia0").exists() {
            continue;
        }
        let output = run(folder, arguments, &[])?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(want) && errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
    Ok(())
}

#[test]
fn the_memory_beside_the_allocator_is_recorded() -> Result<()> {
    let folder = FakeFolder::new("the_memory_beside_the_allocator")?;
    let variables = [("FAKECUDA_OTHER_BYTES", "10485760"), ("FAKECUDA_CONTEXT_BYTES", "4194304")];
    let files = tests::Folder::new("beside")?;
    let out = files.join("run.vramscope");
    let path = out.to_str().context("a path")?;
    let arguments = ["alternating", "--capacity", "256MiB", "--driver", "cuda", "--out", path];
    let output = run(&folder, &arguments, &variables)?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let output = program::run(&["report", "--json", path])?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let outside = &report["files"][0]["devices"][0]["outside"];
    assert!(outside["samples"].as_u64() >= Some(1), "{report}");
    assert_eq!(
        (&outside["peak_outside_bytes"], &outside["peak_others_bytes"]),
        (&(14 * MIB).into(), &(10 * MIB).into())
    );
    assert!(outside["peak_resident_bytes"].as_u64() > Some(1 << 20), "{outside}");
    assert!(outside["peak_pinned_bytes"].is_null(), "{outside}");
    Ok(())
}
