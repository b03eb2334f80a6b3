//! `vramscope bench-allocators --driver cuda`: CUDA's own allocators beside the caching one, on the fake device.

use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::fakecuda::FakeFolder;
use tests::program;

/// A workload of a few megabytes.
const SMALL: [&str; 9] =
    ["transformer", "hidden=128", "heads=4", "layers=2", "vocab=512", "seq=64", "batch=2", "--steps", "3"];

fn bench(folder: &FakeFolder, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Output> {
    let mut command = Command::new(program::path()?);
    folder.serve(&mut command);
    command.arg("bench-allocators").args(arguments).envs(variables.iter().copied());
    command.output().context("running the program")
}

/// Returns the printed JSON, and what each allocator came to, by its name.
fn allocators(output: &Output) -> Result<(Value, impl Fn(&str) -> Value + use<>)> {
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: Value = serde_json::from_slice(&output.stdout)?;
    let all = printed["allocators"].as_array().context("no allocators")?.clone();
    let of = move |name: &str| all.iter().find(|one| one["allocator"] == name).cloned().unwrap_or_default();
    Ok((printed, of))
}

#[test]
fn all_allocators_get_the_same_requests_and_are_timed() -> Result<()> {
    let folder = FakeFolder::new("all_allocators")?;
    let variables = [("FAKECUDA_CAPACITY", "1073741824")];
    let on = |driver: &str| bench(&folder, &[&SMALL[..], &["--json", "--driver", driver]].concat(), &variables);
    let (sim, simulated) = allocators(&on("sim")?)?;
    let (cuda, measured) = allocators(&on("cuda")?)?;
    for key in ["requests", "peak_requested", "torch", "conf"] {
        assert_eq!(sim[key], cuda[key], "{key}");
    }
    assert_eq!((&sim["rounds"], &cuda["rounds"]), (&Value::Null, &3.into()));
    let (requests, peak) = (cuda["requests"].as_u64().context("no count")?, cuda["peak_requested"].as_u64());
    // The caching allocator decides the same on the device as in the simulation, and wherever its segments come from.
    for name in ["caching", "caching_managed"] {
        for key in ["peak_reserved", "driver_calls", "fragmentation"] {
            assert_eq!(simulated(name)[key], measured(name)[key], "{name} {key}");
        }
    }
    for name in ["caching", "stream_ordered", "caching_managed", "plain", "managed"] {
        let [sim, cuda] = [simulated(name), measured(name)];
        ensure!(sim["allocate"].is_null() && sim["totals_ns"] == serde_json::json!([]), "{sim}");
        ensure!(cuda["failed"] == 0 && cuda["unavailable"].is_null(), "{cuda}");
        assert_eq!(cuda["totals_ns"].as_array().map(Vec::len), Some(3), "{cuda}");
        for call in ["allocate", "free"] {
            let time = |key: &str| cuda[call][key].as_u64().unwrap_or_default();
            ensure!(0 < time("median_ns") && time("median_ns") <= time("p99_ns"), "{cuda}");
            ensure!(time("p99_ns") <= time("longest_ns") && time("mean_ns") <= time("longest_ns"), "{cuda}");
        }
        // Nobody can do with less than was requested at once.
        ensure!(cuda["peak_reserved"].as_u64() >= peak, "{cuda}");
        ensure!(sim["peak_reserved_at_least"].as_u64() >= peak, "{sim}");
    }
    // What the driver decides is not told without one.
    ensure!(["stream_ordered", "plain", "managed"].iter().all(|name| simulated(name)["peak_reserved"].is_null()));
    ensure!(measured("stream_ordered")["driver_calls"].is_null());
    for name in ["plain", "managed"] {
        let calls = measured(name)["driver_calls"].as_u64().context("no calls")?;
        ensure!(requests < calls && calls <= 2 * requests && simulated(name)["driver_calls"] == calls, "{calls}");
    }
    let text = String::from_utf8(bench(&folder, &[&SMALL[..], &["--driver", "cuda"]].concat(), &variables)?.stdout)?;
    ensure!(text.contains("\nstream-ordered pool ") && text.contains(" µs") && text.contains(", 3 rounds\n"), "{text}");
    Ok(())
}

#[test]
fn a_device_without_one_of_them_has_the_others() -> Result<()> {
    let folder = FakeFolder::new("without_one")?;
    let arguments = [&SMALL[..], &["--json", "--driver", "cuda", "--rounds", "1"]].concat();
    let (_, of) = allocators(&bench(&folder, &arguments, &[("FAKECUDA_MANAGED", "0")])?)?;
    for name in ["managed", "caching_managed"] {
        ensure!(of(name)["unavailable"].as_str().is_some_and(|why| why.contains("unified memory")), "{}", of(name));
    }
    ensure!(of("caching")["unavailable"].is_null() && of("stream_ordered")["peak_reserved"].is_u64());
    Ok(())
}

#[test]
fn requests_that_do_not_fit_are_counted() -> Result<()> {
    let folder = FakeFolder::new("too_small")?;
    let arguments = [&SMALL[..], &["--json", "--driver", "cuda", "--rounds", "1"]].concat();
    let (_, of) = allocators(&bench(&folder, &arguments, &[("FAKECUDA_CAPACITY", "8388608")])?)?;
    for name in ["caching", "stream_ordered", "plain", "managed"] {
        let one = of(name);
        ensure!(one["failed"].as_u64() > Some(0) && one["fragmentation"].is_null(), "{one}");
    }
    let none = FakeFolder::new("no_device_to_bench")?;
    let output = bench(&none, &["leak", "--driver", "cuda", "--gpu", "7"], &[])?;
    let errors = String::from_utf8(output.stderr)?;
    ensure!(output.status.code() == Some(2) && errors.starts_with("error: --driver cuda: "), "{errors}");
    Ok(())
}
