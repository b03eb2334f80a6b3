//! The allocator against stored results of the real PyTorch, compared as in `tests/differential/compare.py`. The cases
//! of each release are in an archive of `tests/fixtures/allocator`: a line of JSON for each, with its name, the script, and
//! what PyTorch did. `tests/differential/farm.py --keep` makes them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use allocator::Profile;
use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};
use tests::workspace;
use vramscope::script::{Script, execute};

/// A script, and what the real PyTorch did.
#[derive(Deserialize)]
struct Case {
    name: String,
    script: Value,
    result: Value,
}

/// Reads the cases of a release.
fn cases(torch: &str) -> Result<Vec<Case>> {
    let path = workspace("tests/fixtures/allocator").join(format!("{torch}.jsonl.gz"));
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    BufReader::new(GzDecoder::new(file)).lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

/// Returns the part of an error that must be equal: that it is an error, and for out-of-memory also all amounts.
fn error_key(text: &str) -> Vec<&str> {
    if !text.starts_with("oom") {
        return vec!["error"];
    }
    let words: Vec<&str> = text.split([' ', ';']).collect();
    let is_unit = |word: &str| ["bytes", "KiB", "MiB", "GiB"].contains(&word.trim_end_matches(['.', ',']));
    words.windows(2).filter(|pair| is_unit(pair[1])).flatten().map(|word| word.trim_end_matches(['.', ','])).collect()
}

/// Returns the parts of a result that are compared, in order. With `until`, only those before that operation.
fn parts(result: &Value, until: Option<u64>) -> Result<Vec<(String, Value)>> {
    let list = |key: &str| result[key].as_array().with_context(|| format!("no list {key:?}"));
    let is_before = |op: Option<i64>| until.is_none_or(|end| op.is_some_and(|op| (0..end as i64).contains(&op)));
    let rows = |key: &str| -> Result<Vec<(String, Value)>> {
        let rows = list(key)?.iter().filter(|row| is_before(row[0].as_i64()));
        Ok(rows.enumerate().map(|(at, row)| (format!("{key}[{at}]"), row.clone())).collect())
    };
    let mut parts = rows("malloc")?;
    parts.extend(rows("trace")?);
    // By number, as the keys are strings in JSON.
    let errors: BTreeMap<i64, &Value> = result["errors"]
        .as_object()
        .context("no errors")?
        .iter()
        .map(|(op, text)| Ok((op.parse()?, text)))
        .collect::<Result<_>>()?;
    for (op, text) in errors.into_iter().filter(|(op, _)| is_before(Some(*op))) {
        parts.push((format!("error of {op}"), json!(error_key(text.as_str().context("an error is not text")?))));
    }
    for snapshot in list("snapshots")?.iter().filter(|snapshot| is_before(snapshot["op"].as_i64())) {
        parts.extend(state(&format!("snapshot at {}", snapshot["op"]), snapshot)?);
    }
    if until.is_none() {
        parts.extend(state("final", &result["final"])?);
        parts.push(("settings".to_owned(), result["settings"].clone()));
    }
    Ok(parts)
}

/// Returns the segments and statistics of a snapshot as single parts.
fn state(name: &str, state: &Value) -> Result<Vec<(String, Value)>> {
    let segments = state["segments"].as_array().context("no segments")?.iter().enumerate();
    let segments = segments.map(|(at, segment)| (format!("{name}: segment {at}"), segment.clone()));
    let stats = state["stats"].as_object().context("no statistics")?.iter();
    Ok(segments.chain(stats.map(|(key, value)| (format!("{name}: {key}"), value.clone()))).collect())
}

/// Executes a script as the release of the profile would, and compares with what the real one did.
fn check(script: &Value, real: &Value, profile: &'static Profile) -> Result<()> {
    let script = Script::parse(&serde_json::to_vec(script)?)?;
    let ours = serde_json::to_value(execute(script, profile)?)?;
    match (compare(&ours, real, None), ours["undefined_from"].as_u64()) {
        // What PyTorch does after that depends on the addresses of its own objects, so it may differ.
        (Err(_), Some(end)) => compare(&ours, real, Some(end)),
        (whole, _) => whole,
    }
}

/// Compares two results; with `until`, only before that operation.
fn compare(ours: &Value, real: &Value, until: Option<u64>) -> Result<()> {
    let (ours, real) = (parts(ours, until)?, parts(real, until)?);
    for (ours, real) in ours.iter().zip(&real) {
        if ours != real {
            bail!("{} {}, real: {} {}", ours.0, ours.1, real.0, real.1);
        }
    }
    ensure!(ours.len() == real.len(), "{} parts, real: {}", ours.len(), real.len());
    Ok(())
}

#[test]
fn scripts_end_as_in_the_real_pytorch() -> Result<()> {
    for profile in Profile::ALL {
        let mut failures = Vec::new();
        let cases = cases(profile.torch)?;
        for Case { name, script, result } in &cases {
            if let Err(error) = check(script, result, profile) {
                failures.push(format!("torch {} {name}: {error:#}", profile.torch));
            }
        }
        ensure!(failures.is_empty(), "{}", failures.join("\n"));
        ensure!(cases.len() >= 20, "only {} cases of torch {}", cases.len(), profile.torch);
    }
    Ok(())
}

#[test]
fn a_difference_is_found_wherever_it_is() -> Result<()> {
    let cases = cases("2.11")?;
    let Case { script, result: real, .. } =
        cases.iter().find(|case| case.name == "pages_of_15_mib").context("no such case")?;
    let profile = Profile::of("2.11").context("no profile")?;
    let places = [
        "/malloc/0/1",
        "/trace/0/1",
        "/errors/2",
        "/final/segments/0/blocks/0/3",
        "/final/stats/num_ooms",
        "/settings/expandable_segments",
    ];
    check(script, real, profile)?;
    for place in places {
        let mut other = real.clone();
        *other.pointer_mut(place).with_context(|| place.to_owned())? = json!("another");
        ensure!(check(script, &other, profile).is_err(), "{place} is not compared");
    }
    Ok(())
}
