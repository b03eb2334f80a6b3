//! A number in the program's command line that is varied, and the search for the largest that fits.

use std::ffi::OsString;

use serde::Serialize;

use super::super::job::Program;
use super::super::one_line;
use super::super::sweep::Grid;

/// A number that is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    grid: Grid,
    /// The largest number.
    last: u64,
}

/// What a run with a number came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Varied {
    pub(super) value: u64,
    pub(super) fits: bool,
    /// The least memory with which it runs, as far as it ran.
    pub(super) needs: u64,
}

/// The largest number that fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Largest {
    name: String,
    /// The largest number that was run and fits; `None` if the smallest does not.
    pub(super) fits: Option<Varied>,
    /// The smallest number above it, which was run and does not fit; `None` if the largest one fits.
    pub(super) fails: Option<Varied>,
    /// All runs, in their order.
    pub(super) runs: Vec<Varied>,
}

impl Largest {
    /// Returns the name of the number.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Variable {
    /// Reads `NAME=FROM..TO` or `NAME=FROM..TO:STEP`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("--vary {:?} is no range. Write it like batch_size=1..256 or batch_size=8..256:8.", one_line(text))
        };
        let (name, range) = text.split_once('=').ok_or_else(wrong)?;
        let (range, step) = range.split_once(':').unwrap_or((range, "1"));
        let (from, to) = range.split_once("..").ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let (first, last, step) = (number(from)?, number(to)?, number(step)?);
        if name.trim().is_empty() || first > last || step == 0 {
            return Err(wrong());
        }
        Ok(Self { name: name.trim().to_owned(), grid: Grid { first, step }, last })
    }

    /// Returns the smallest number.
    pub(super) const fn first(&self) -> u64 {
        self.grid.first
    }

    /// Returns a program with a number in its command line: in place of `{NAME}`, or as the value that the option or setting of
    /// this name has.
    pub(super) fn within(&self, program: &Program, value: u64) -> Result<Program, String> {
        let mark = format!("{{{}}}", self.name);
        let number = value.to_string();
        let has = |word: &OsString, part: &str| word.to_string_lossy().contains(part);
        if program.words().iter().any(|word| has(word, &mark)) {
            return Ok(program.with(|word| word.to_string_lossy().replace(&mark, &number).into()));
        }
        let (mut is_value, mut is_found) = (false, false);
        let program = program.with(|word| {
            let text = word.to_string_lossy();
            if std::mem::take(&mut is_value) {
                is_found = true;
                return number.clone().into();
            }
            match text.split_once('=') {
                Some((option, _)) if self.is_named(option) => {
                    is_found = true;
                    format!("{option}={number}").into()
                }
                None if text.starts_with('-') && self.is_named(&text) => {
                    is_value = true;
                    word.clone()
                }
                _ => word.clone(),
            }
        });
        let name = &self.name;
        match is_found {
            true => Ok(program),
            false => Err(format!(
                "--vary {name}: the command line has no option {name}. Write {{{name}}} where the number belongs, such as: \
                 train.py --batch-size {{{name}}}"
            )),
        }
    }

    /// Whether an option or a setting has its name: `--batch-size`, `batch_size` or `train.batch_size`.
    fn is_named(&self, option: &str) -> bool {
        let plain = |name: &str| name.trim_start_matches(['-', '+']).replace('-', "_");
        let (option, name) = (plain(option), plain(&self.name));
        option == name || option.strip_suffix(&name).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Finds the largest number that fits into `room`. `run` runs a number.
    ///
    /// What a run needs usually grows evenly with the number. So the next number to run is where the line through two runs
    /// reaches the room, but each time further away from the last one, up to halfway, so that a line that is wrong costs little.
    /// The search ends when a number fits and the next one does not: both were run.
    pub(super) fn largest(
        &self,
        room: u64,
        mut run: impl FnMut(u64) -> Result<Varied, String>,
    ) -> Result<Largest, String> {
        let mut largest = Largest { name: self.name.clone(), fits: None, fails: None, runs: Vec::new() };
        // Places that fit, with what they need: the last one, and the one before it.
        let (mut below, mut before): (Option<Point>, Option<Point>) = (None, None);
        let mut above = self.grid.place(self.last) + 1;
        let (mut place, mut stride) = (0, 1);
        loop {
            let ran = run(self.grid.number(place))?;
            largest.runs.push(ran);
            if ran.fits {
                (before, below) = (below, Some((place, ran.needs)));
                largest.fits = Some(ran);
            } else {
                above = place;
                largest.fails = Some(ran);
            }
            let Some(low) = below else { return Ok(largest) };
            if above - low.0 == 1 {
                return Ok(largest);
            }
            let middle = low.0 + (above - low.0) / 2;
            place = match before {
                // Of one run, nothing is known but that it fits.
                None => 1,
                Some(before) => {
                    let line = reached(before, low, room);
                    let next = match ran.fits {
                        true => line.max((low.0 + stride).min(middle)),
                        false => line.min(above.saturating_sub(stride).max(middle)),
                    };
                    stride = stride.saturating_mul(2);
                    next
                }
            }
            .clamp(low.0 + 1, above - 1);
        }
    }
}

/// A place, and the bytes that it needs.
type Point = (u64, u64);

/// Returns the last place at which a line through two points is at most `room`.
fn reached((x0, y0): Point, (x1, y1): Point, room: u64) -> u64 {
    let (rise, run) = (y1.saturating_sub(y0), x1.saturating_sub(x0));
    let ahead = u128::from(room.saturating_sub(y1)) * u128::from(run) / u128::from(rise.max(1));
    x1.saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(text: &str) -> Variable {
        Variable::read(text).unwrap()
    }

    #[test]
    fn ranges() {
        let wanted = Variable { name: "batch_size".to_owned(), grid: Grid { first: 8, step: 8 }, last: 256 };
        assert_eq!(variable("batch_size=8..256:8"), wanted);
        for text in ["batch_size", "b=1", "b=2..1", "b=1..2:0", "=1..2", "b=a..2", "b=1..2:x2"] {
            assert!(Variable::read(text).unwrap_err().contains("is no range"), "{text}");
        }
    }

    #[test]
    fn the_number_is_put_where_it_belongs() {
        for (line, wanted) in [
            ("train.py --batch-size 8 --lr 3", Some("train.py --batch-size 5 --lr 3")),
            ("train.py --batch_size=8", Some("train.py --batch_size=5")),
            ("train.py batch_size=8 trainer.batch_size=2", Some("train.py batch_size=5 trainer.batch_size=5")),
            ("train.py -b {batch_size} --batch-size 8", Some("train.py -b 5 --batch-size 8")),
            ("train.py --config a{batch_size}.yaml", Some("train.py --config a5.yaml")),
            ("train.py --eval-batch-size 8", None),
            ("train.py batch_size", None),
            // The value is missing.
            ("train.py --batch-size", None),
        ] {
            let words = line.split(' ').map(OsString::from).collect();
            let program = Program::Python { is_module: false, arguments: words };
            let put = variable("batch_size=1..9").within(&program, 5);
            let shown = put.ok().map(|program| program.words().join(" ".as_ref()).into_string().unwrap());
            assert_eq!(shown.as_deref(), wanted, "{line}");
        }
    }

    #[test]
    fn both_sides_of_the_largest_were_run_in_few_runs() {
        type Curve = fn(u64) -> u64;
        let curves: [(&str, Curve); 4] = [
            ("even", |n| 1000 + 10 * n),
            ("square", |n| n * n),
            ("steps", |n| 500 + n / 7 * 70),
            ("flat, then steep", |n| if n < 90 { 100 } else { 100 * (n - 89) }),
        ];
        for (name, needs) in curves {
            for (room, range) in (0..40).flat_map(|i| [(i * 97, "b=1..256"), (i * 97, "b=8..256:8"), (i, "b=3..3")]) {
                let variable = variable(range);
                let ran = |value: u64| Ok(Varied { value, fits: needs(value) <= room, needs: needs(value).min(room) });
                let found = variable.largest(room, ran).unwrap();
                let fits = (variable.grid.first..=variable.last).step_by(variable.grid.step as usize);
                let wanted = fits.clone().filter(|value| needs(*value) <= room).max();
                assert_eq!(found.fits.map(|ran| ran.value), wanted, "{name} {room} {range}");
                let next = wanted.map_or(variable.grid.first, |value| value + variable.grid.step);
                let fails = (next <= variable.last).then_some(next);
                assert_eq!(found.fails.map(|ran| ran.value), fails, "{name} {room} {range}");
                assert!(found.runs.len() <= 20 && (name != "even" || found.runs.len() <= 6), "{name} {room} {found:?}");
            }
        }
    }
}
