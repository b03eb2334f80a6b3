//! The JSON document of a sweep, and reading one that may come from anywhere.

use std::collections::BTreeMap;

use serde::Serialize;

use super::tree::{Fault, Json, parse};
use super::{FORMAT, Largest, Run, Sweep};
use crate::values::Value;
use trace::limits::{SWEEP_BYTES, SWEEP_CHOICES, SWEEP_TEXT_BYTES, SWEEP_VALUES};
use trace::units::{Bytes, Count};

/// Why a document can't be read. `Display` is a sentence or two for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// It has more bytes than a sweep needs.
    #[error("Refused: the sweep has more than {}, and no sweep needs that. Run vramscope sweep again.", Bytes(SWEEP_BYTES as u64))]
    TooLarge,
    /// It is of a later version.
    #[error("The sweep is of format version {}; this program reads version 1. Update Vramscope.", Count(*.0))]
    Newer(u64),
    /// It is not one whole JSON value.
    #[error("The sweep is damaged at line {}, column {}: {what}. {MEND}", Count(*.line), Count(*.column))]
    Damaged {
        /// The line, from 1.
        line: u64,
        /// The column in bytes, from 1.
        column: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It lacks what a sweep has, or its parts contradict each other.
    #[error("The sweep is damaged: {0}. {MEND}")]
    Wrong(&'static str),
}

/// What to do about a damaged document.
const MEND: &str = "Copy the file again, or run vramscope sweep again.";

/// The document, to be written as JSON.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    format: &'static str,
    #[serde(flatten)]
    sweep: &'a Sweep,
}

impl Sweep {
    /// Returns the document.
    pub fn document(&self) -> Document<'_> {
        Document { format: FORMAT, sweep: self }
    }
}

/// Reads the document of a sweep.
///
/// # Errors
/// Fails on documents that are too large, of a later version, or damaged. All that is accepted can be shown: there are at
/// least one run and at most [`SWEEP_VALUES`], names are words, and the largest value fits.
pub fn read(bytes: &[u8]) -> Result<Sweep, SweepError> {
    if bytes.len() > SWEEP_BYTES {
        return Err(SweepError::TooLarge);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| damaged(bytes, &Fault { byte: error.valid_up_to(), what: "the text is not UTF-8" }))?;
    let json = parse(text).map_err(|fault| damaged(bytes, &fault))?;
    let Some(format) = json.field("format").and_then(Json::text) else { return Err(SweepError::Wrong(KIND)) };
    if format != FORMAT {
        let version = format.strip_prefix("vramscope sweep ").and_then(|version| version.parse().ok());
        return Err(match version {
            Some(version @ 2..) => SweepError::Newer(version),
            _ => SweepError::Wrong("its first field does not name the format of a sweep"),
        });
    }
    let sweep = decoded(&json).ok_or(SweepError::Wrong(KIND))?;
    check(&sweep).map_err(SweepError::Wrong)?;
    Ok(sweep)
}

/// What is said of a document that is JSON, and no sweep.
const KIND: &str = "a value is missing, or is of another kind than a sweep's";

fn damaged(bytes: &[u8], fault: &Fault) -> SweepError {
    let before = bytes.get(..fault.byte).unwrap_or(bytes);
    let line = before.split(|byte| *byte == b'\n').count() as u64;
    let column = before.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len) as u64 + 1;
    SweepError::Damaged { line, column, what: fault.what }
}

/// Reads the fields, those that are unknown aside.
fn decoded(json: &Json) -> Option<Sweep> {
    let owned = |name: &str| text(json, name);
    let number = |name: &str| json.field(name)?.whole();
    let Json::Object(choices) = json.field("choices")? else { return None };
    let choices = choices.iter().map(|(name, value)| Some((name.clone(), value.text()?.to_owned())));
    let Json::List(runs) = json.field("runs")? else { return None };
    Some(Sweep {
        story: owned("story")?,
        choices: choices.collect::<Option<BTreeMap<_, _>>>()?,
        param: owned("param")?,
        capacity_bytes: number("capacity_bytes")?,
        card: optional(json, "card", |card| card.text().map(str::to_owned))?,
        torch: owned("torch")?,
        conf: owned("conf")?,
        seed: number("seed")?,
        steps: number("steps")?,
        runs: runs.iter().map(run).collect::<Option<Vec<_>>>()?,
        largest: optional(json, "largest", largest)?,
    })
}

fn text(json: &Json, name: &str) -> Option<String> {
    json.field(name)?.text().map(str::to_owned)
}

/// Reads a field that may be `null` or absent; `None` if it is neither and can't be read.
fn optional<T>(json: &Json, name: &str, read: impl FnOnce(&Json) -> Option<T>) -> Option<Option<T>> {
    match json.field(name) {
        None | Some(Json::Scalar(Value::None)) => Some(None),
        Some(value) => read(value).map(Some),
    }
}

fn run(json: &Json) -> Option<Run> {
    let number = |name: &str| json.field(name)?.whole();
    let Json::Scalar(Value::Bool(fits)) = *json.field("fits")? else { return None };
    Some(Run {
        value: text(json, "value")?,
        fits,
        peak_reserved: number("peak_reserved")?,
        peak_allocated: number("peak_allocated")?,
        device_allocs: number("device_allocs")?,
        device_frees: number("device_frees")?,
        retries: number("retries")?,
        ooms: number("ooms")?,
        failed_request: optional(json, "failed_request", Json::whole)?,
        events: number("events")?,
    })
}

fn largest(json: &Json) -> Option<Largest> {
    let one = |name: &str| json.field(name).and_then(run);
    Some(match json.field("found")?.text()? {
        "between" => Largest::Between { fits: one("fits")?, fails: one("fails")? },
        "beyond" => Largest::Beyond { fits: one("fits")? },
        "below" => Largest::Below { fails: one("fails")? },
        _ => return None,
    })
}

/// Returns what is wrong with a sweep that could be decoded.
fn check(sweep: &Sweep) -> Result<(), &'static str> {
    let Sweep { story, choices, param, card, torch, conf, runs, largest, .. } = sweep;
    let count = runs.len() as u64;
    if count == 0 {
        return Err("it has no runs");
    }
    if count > SWEEP_VALUES || choices.len() > SWEEP_CHOICES {
        return Err("it has more runs or parameters than a sweep can have");
    }
    if ![story, param].into_iter().chain(choices.keys()).all(|name| is_name(name)) {
        return Err("the name of its workload or of a parameter has characters that no name has");
    }
    let (fits, fails) = match largest {
        None => (None, None),
        Some(largest) => (largest.fits(), largest.fails()),
    };
    let ends = || fits.into_iter().chain(fails);
    let values = runs.iter().chain(ends()).map(|run| &run.value).chain(choices.values());
    if !values.chain([torch]).chain(card).all(|value| is_value(value)) {
        return Err("a value is empty, too long, or has spaces or letters beyond ASCII");
    }
    if conf.len() > SWEEP_TEXT_BYTES {
        return Err("the settings are too long");
    }
    if fits.is_some_and(|run| !run.fits) || fails.is_some_and(|run| run.fits) {
        return Err("what it says of the largest value that fits contradicts itself");
    }
    let number = |run: Option<&Run>| run.and_then(Run::number);
    let is_in_order = match largest {
        None => true,
        Some(Largest::Between { .. }) => {
            matches!((number(fits), number(fails)), (Some(fits), Some(fails)) if fits < fails)
        }
        Some(_) => ends().all(|run| run.number().is_some()),
    };
    if !is_in_order || (largest.is_some() && !sweep.is_numeric()) {
        return Err("the largest value that fits is not a number, or not below the one that fails");
    }
    Ok(())
}

/// Returns whether a text can be the name of a workload or parameter. One that begins with a hyphen would be an option.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= SWEEP_TEXT_BYTES
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Returns whether a text can be a value, or the name of a card or release.
fn is_value(text: &str) -> bool {
    (1..=SWEEP_TEXT_BYTES).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic())
}
