//! The allocator against stored results of the real PyTorch: what `tests/differential/compare.py` compares, on every
//! case in `tests/fixtures/allocator/RELEASE`. A case is `NAME.in.json.gz`, the script, and `NAME.out.json.gz`, what
//! PyTorch did; `tests/differential/farm.py --keep` makes both. The folders are the table.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use shared::allocator::Profile;
use tests::workspace;
use vramscope::script::{Script, execute};

fn unzipped(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(File::open(path)?).read_to_end(&mut text)?;
    Ok(text)
}

/// What of an error must be equal: that it is one; of an out-of-memory also every amount in its text.
fn error_key(text: &str) -> Vec<&str> {
    if !text.starts_with("oom") {
        return vec!["error"];
    }
    let words: Vec<&str> = text.split([' ', ';']).collect();
    let is_unit = |word: &str| ["bytes", "KiB", "MiB", "GiB"].contains(&word.trim_end_matches(['.', ',']));
    words.windows(2).filter(|pair| is_unit(pair[1])).flatten().map(|word| word.trim_end_matches(['.', ','])).collect()
}

/// The part of a result that is compared, in the order in which the parts are looked at. `until`: only what came
/// before that operation.
fn parts(result: &Value, until: Option<u64>) -> Result<Vec<(String, Value)>> {
    let list = |key: &str| result[key].as_array().with_context(|| format!("no list {key:?}"));
    let is_before = |op: Option<i64>| until.is_none_or(|end| op.is_some_and(|op| (0..end as i64).contains(&op)));
    let rows = |key: &str| -> Result<Vec<(String, Value)>> {
        let rows = list(key)?.iter().filter(|row| is_before(row[0].as_i64()));
        Ok(rows.enumerate().map(|(at, row)| (format!("{key}[{at}]"), row.clone())).collect())
    };
    let mut parts = rows("malloc")?;
    parts.extend(rows("trace")?);
    // By number, not by the digits that JSON has as keys.
    let errors: BTreeMap<i64, &Value> = result["errors"]
        .as_object()
        .context("no errors")?
        .iter()
        .map(|(op, text)| Ok((op.parse()?, text)))
        .collect::<Result<_>>()?;
    for (op, text) in errors.into_iter().filter(|(op, _)| is_before(Some(*op))) {
        parts.push((format!("error of {op}"), json!(error_key(text.as_str().context("an error that is no text")?))));
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

/// A snapshot as segments and statistics, one by one.
fn state(name: &str, state: &Value) -> Result<Vec<(String, Value)>> {
    let segments = state["segments"].as_array().context("no segments")?.iter().enumerate();
    let segments = segments.map(|(at, segment)| (format!("{name}: segment {at}"), segment.clone()));
    let stats = state["stats"].as_object().context("no statistics")?.iter();
    Ok(segments.chain(stats.map(|(key, value)| (format!("{name}: {key}"), value.clone()))).collect())
}

/// Runs a script as the release of the profile, and compares with what the real one did.
fn check(script: &[u8], real: &[u8], profile: &'static Profile) -> Result<()> {
    let ours = serde_json::to_value(execute(Script::parse(script)?, profile)?)?;
    let real: Value = serde_json::from_slice(real)?;
    match (compare(&ours, &real, None), ours["undefined_from"].as_u64()) {
        // What PyTorch does after that depends on where its own objects lie: it may be the same, and need not be.
        (Err(_), Some(end)) => compare(&ours, &real, Some(end)),
        (whole, _) => whole,
    }
}

/// Compares two results, of operations before `until` only.
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
        let folder = workspace("tests/fixtures/allocator").join(profile.torch);
        let mut failures = Vec::new();
        let mut cases = 0;
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".in.json.gz")) else {
                continue;
            };
            cases += 1;
            let real = unzipped(&path.with_file_name(format!("{name}.out.json.gz")))?;
            if let Err(error) = check(&unzipped(&path)?, &real, profile) {
                failures.push(format!("torch {} {name}: {error:#}", profile.torch));
            }
        }
        ensure!(failures.is_empty(), "{}", failures.join("\n"));
        ensure!(cases >= 20, "only {cases} cases in {}", folder.display());
    }
    Ok(())
}

#[test]
fn a_difference_is_found_wherever_it_is() -> Result<()> {
    let folder = workspace("tests/fixtures/allocator/2.11");
    let script = unzipped(&folder.join("pages_of_15_mib.in.json.gz"))?;
    let real: Value = serde_json::from_slice(&unzipped(&folder.join("pages_of_15_mib.out.json.gz"))?)?;
    let profile = Profile::of("2.11").context("no profile")?;
    let places = [
        "/malloc/0/1",
        "/trace/0/1",
        "/errors/2",
        "/final/segments/0/blocks/0/3",
        "/final/stats/num_ooms",
        "/settings/expandable_segments",
    ];
    check(&script, &serde_json::to_vec(&real)?, profile)?;
    for place in places {
        let mut other = real.clone();
        *other.pointer_mut(place).with_context(|| place.to_owned())? = json!("another");
        ensure!(check(&script, &serde_json::to_vec(&other)?, profile).is_err(), "{place} is not compared");
    }
    Ok(())
}
