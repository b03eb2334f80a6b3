//! The JSON document of a sweep: writing it, and reading one that may come from anywhere.

use serde::{Deserialize, Serialize};

use super::{FORMAT, Largest, Run, Sweep};
use crate::limits::{SWEEP_BYTES, SWEEP_CHOICES, SWEEP_TEXT_BYTES, SWEEP_VALUES};
use crate::units::{Bytes, Count};

/// Why a document can't be read. `Display` is a sentence or two for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// It has more bytes than a sweep needs.
    #[error("Refused: the sweep has more than {}, and no sweep needs that. Run vramscope sweep again.", Bytes(SWEEP_BYTES as u64))]
    TooLarge,
    /// It is of a later version.
    #[error("The sweep is of format version {}; this program reads version 1. Update Vramscope.", Count(*.0))]
    Newer(u64),
    /// It is no whole JSON text, or lacks what a sweep has.
    #[error("The sweep is damaged at line {}, column {}: {what}. {MEND}", Count(*.line), Count(*.column))]
    Damaged {
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Its parts contradict each other, or are none that a sweep can have.
    #[error("The sweep is damaged: {0}. {MEND}")]
    Wrong(&'static str),
}

/// What to do about a damaged document.
const MEND: &str = "Copy the file again, or run vramscope sweep again.";

/// The document as it is written.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    #[serde(flatten)]
    sweep: &'a Sweep,
}

/// The part of the document that every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
}

/// Returns the document of a sweep.
pub fn write(sweep: &Sweep) -> String {
    // Its keys are strings and its numbers whole, so that all of it can be written.
    serde_json::to_string_pretty(&Document { format: FORMAT, sweep }).unwrap_or_default() + "\n"
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
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let Head { format } = serde_json::from_slice(text).map_err(|error| damaged(&error))?;
    if format != FORMAT {
        let version = format.strip_prefix("vramscope sweep ").and_then(|version| version.parse().ok());
        return Err(match version {
            Some(version @ 2..) => SweepError::Newer(version),
            _ => SweepError::Wrong("its first field names no format of a sweep"),
        });
    }
    let sweep: Sweep = serde_json::from_slice(text).map_err(|error| damaged(&error))?;
    check(&sweep).map_err(SweepError::Wrong)?;
    Ok(sweep)
}

fn damaged(error: &serde_json::Error) -> SweepError {
    use serde_json::error::Category;
    let what = match error.classify() {
        Category::Eof | Category::Io => "it ends early",
        Category::Syntax => "the text is not JSON",
        Category::Data => "a value is missing, or is of another kind than a sweep's",
    };
    SweepError::Damaged { line: error.line() as u64, column: error.column() as u64, what }
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
        return Err("the name of its workload or of a parameter is no name");
    }
    let (fits, fails) = match largest {
        None => (None, None),
        Some(largest) => (largest.fits(), largest.fails()),
    };
    let ends = || fits.into_iter().chain(fails);
    let values = runs.iter().chain(ends()).map(|run| &run.value).chain(choices.values());
    if !values.chain([torch]).chain(card).all(|value| is_value(value)) {
        return Err("a value is no word");
    }
    if conf.len() > SWEEP_TEXT_BYTES {
        return Err("the settings are too long");
    }
    if fits.is_some_and(|run| !run.fits) || fails.is_some_and(|run| run.fits) {
        return Err("the largest value fits on no side, or on both");
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
        return Err("the largest value is no number among numbers");
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
