//! The values of a swept parameter: `batch=64..512`, `batch=64..512:32`, `seq=512..8192:x2`, `checkpoint=none,full,4`.

use trace::limits::SWEEP_VALUES;
use trace::units::Count;

use crate::cli::budget::count;
use crate::cli::suggestion::did_you_mean;
use crate::workloads::{Param, Values};

/// How far apart the numbers of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spacing {
    /// Each is larger than the one before by this number.
    Add(u64),
    /// Each is this many times the one before.
    Times(u64),
}

/// A parameter with the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// The name of the parameter.
    pub(super) name: &'static str,
    /// The values in the order of the runs.
    pub(super) values: Vec<String>,
    /// The numbers among which the largest that fits is looked for; `None` for a list of values.
    pub(super) grid: Option<Grid>,
}

/// Numbers at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Grid {
    /// The first number.
    pub(in crate::cli) first: u64,
    /// The distance between two numbers.
    pub(in crate::cli) step: u64,
}

impl Grid {
    /// Returns the number at a place.
    pub(in crate::cli) fn number(self, place: u64) -> u64 {
        self.first.saturating_add(place.saturating_mul(self.step))
    }

    /// Returns the last place whose number is not larger than `number`.
    pub(in crate::cli) fn place(self, number: u64) -> u64 {
        number.saturating_sub(self.first) / self.step.max(1)
    }
}

impl Range {
    /// Reads `PARAM=FROM..TO`, with a step if wanted, or `PARAM=A,B,C`.
    pub(super) fn read(text: &str, params: &'static [Param]) -> Result<Self, String> {
        let shape = || {
            format!(
                "{text:?} is no range. Write it like batch=64..512, batch=64..512:32, batch=64..512:x2 or batch=64,96."
            )
        };
        let (name, values) = text.split_once('=').ok_or_else(shape)?;
        let Some(param) = params.iter().find(|param| param.name == name) else {
            let known: Vec<&str> = params.iter().map(|param| param.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let meant = did_you_mean(name, params.iter().map(|param| param.name));
            return Err(format!("there is no parameter {name:?}.{meant} Parameters: {known}."));
        };
        let Some((from, rest)) = values.split_once("..") else {
            let values: Vec<String> = values.split(',').map(str::to_owned).collect();
            if values.iter().any(String::is_empty) || values.len() < 2 {
                return Err(shape());
            }
            within(param, values.len() as u64)?;
            return Ok(Self { name: param.name, values, grid: None });
        };
        if let Values::Words(_) = param.values {
            return Err(format!("{name} is no number. Name its values, separated by commas: {}.", param.values));
        }
        let (to, step) = rest.split_once(':').map_or((rest, None), |(to, step)| (to, Some(step)));
        let number =
            |text: &str| count::parse(name, text, name).map_err(|error| error.trim_end_matches('.').to_owned() + ".");
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!(
                "{name} from {} to {} is an empty range. Write the smaller number first.",
                Count(from),
                Count(to)
            ));
        }
        let step = match step {
            None => None,
            Some(step) => Some(match step.strip_prefix('x') {
                Some(times) => Spacing::Times(number(times)?),
                None => Spacing::Add(number(step)?),
            }),
        };
        if matches!(step, Some(Spacing::Add(0) | Spacing::Times(0 | 1)))
            || (from == 0 && matches!(step, Some(Spacing::Times(_))))
        {
            return Err(format!("{text:?} never gets to {}. Write a larger step.", Count(to)));
        }
        let grid = Grid { first: from, step: if let Some(Spacing::Add(step)) = step { step } else { 1 } };
        let numbers = match step {
            Some(step) => stepped(param, from, to, step)?,
            None => chosen(from, to),
        };
        let values = numbers.into_iter().map(|number| number.to_string()).collect();
        Ok(Self { name: param.name, values, grid: Some(grid) })
    }
}

/// Returns the numbers from one to another.
fn stepped(param: &Param, from: u64, to: u64, step: Spacing) -> Result<Vec<u64>, String> {
    if let Spacing::Add(step) = step {
        within(param, ((to - from) / step).saturating_add(1))?;
    }
    let next = |number: &u64| match step {
        Spacing::Add(step) => number.checked_add(step),
        Spacing::Times(times) => number.checked_mul(times),
    };
    Ok(std::iter::successors(Some(from), next).take_while(|number| *number <= to).collect())
}

/// The most values that are chosen when no step is given.
const MOST_CHOSEN: u64 = 9;
/// How many times as large the end of a range is as its start for its values to be doubled.
const DOUBLED: u64 = 4;

/// Returns numbers from one to another: doubled where they span some doublings, and at equal distances elsewhere. The last one
/// is always among them.
fn chosen(from: u64, to: u64) -> Vec<u64> {
    let mut all: Vec<u64> = if from > 0 && to / from >= DOUBLED {
        std::iter::successors(Some(from), |number| number.checked_mul(2)).take_while(|number| *number <= to).collect()
    } else {
        let step = (to - from).div_ceil(MOST_CHOSEN - 1).max(1);
        (0..MOST_CHOSEN).map(|i| from + i * step).take_while(|number| *number <= to).collect()
    };
    if all.last() != Some(&to) {
        all.push(to);
    }
    all
}

/// Refuses more values than a sweep runs.
fn within(param: &Param, count: u64) -> Result<(), String> {
    match count > SWEEP_VALUES {
        true => Err(format!(
            "that is {} values of {}, and a sweep runs at most {SWEEP_VALUES}. Write a larger step.",
            Count(count),
            param.name
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[Param] = &[
        Param { name: "batch", default: "4", values: Values::Count(1, 4_096), help: "" },
        Param { name: "checkpoint", default: "none", values: Values::WordsOrCount(&["none", "full"], 1, 9), help: "" },
        Param { name: "copy", default: "whole", values: Values::Words(&["whole", "tensor"]), help: "" },
    ];

    #[test]
    fn ranges() {
        let cases: &[(&str, &[&str], Option<u64>)] = &[
            ("batch=64..512", &["64", "128", "256", "512"], Some(1)),
            ("batch=64..500", &["64", "128", "256", "500"], Some(1)),
            ("batch=64..96", &["64", "68", "72", "76", "80", "84", "88", "92", "96"], Some(1)),
            ("batch=1..3", &["1", "2", "3"], Some(1)),
            ("batch=7..7", &["7"], Some(1)),
            ("batch=64..500:200", &["64", "264", "464"], Some(200)),
            ("batch=64..500:x3", &["64", "192"], Some(1)),
            ("batch=1k..2k:500", &["1000", "1500", "2000"], Some(500)),
            ("batch=64,96", &["64", "96"], None),
            ("checkpoint=none,full,2", &["none", "full", "2"], None),
            ("checkpoint=1..2", &["1", "2"], Some(1)),
            ("copy=whole,tensor", &["whole", "tensor"], None),
        ];
        for (text, want, step) in cases {
            let range = Range::read(text, PARAMS).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((range.values.join(" "), range.grid.map(|grid| grid.step)), (want.join(" "), *step), "{text}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let cases = [
            ("batch", "\"batch\" is no range. Write it like batch=64..512"),
            ("batch=64", "\"batch=64\" is no range"),
            ("batch=", "\"batch=\" is no range"),
            ("batch=64,,96", "is no range"),
            ("depth=1..2", "there is no parameter \"depth\". Parameters: batch, checkpoint, copy."),
            ("batch=512..64", "batch from 512 to 64 is an empty range. Write the smaller number first."),
            ("batch=1..4096:1", "that is 4,096 values of batch, and a sweep runs at most 256. Write a larger step."),
            ("batch=0..18446744073709551615:1", "that is 18,446,744,073,709,551,615 values"),
            ("batch=1..9:0", "\"batch=1..9:0\" never gets to 9. Write a larger step."),
            ("batch=1..9:x1", "never gets to 9"),
            ("batch=0..9:x2", "never gets to 9"),
            ("batch=1..x", "batch \"x\" is not a number of batch"),
            ("batch=1..", "batch \"\" is not a number"),
            ("batch=1..1,000", "is ambiguous"),
            ("copy=1..2", "copy is no number. Name its values, separated by commas: whole|tensor."),
        ];
        for (text, want) in cases {
            let error = Range::read(text, PARAMS).map(|range| range.values).unwrap_err();
            assert!(error.contains(want), "{text}: {want} is not in {error}");
        }
    }
}
