//! A sweep as text for people.

use std::fmt::{self, Display};

use format::sweep::{Run, Sweep};
use trace::units::{Bytes, Count};

/// A sweep, to be printed as a table.
pub(super) struct Text<'a>(pub(super) &'a Sweep);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sweep = self.0;
        writeln!(f, "{}\n  {}\n", sweep.subject(), sweep.conditions())?;
        let width = sweep.runs.iter().map(|run| run.value.len()).chain([sweep.param.len()]).max().unwrap_or(0);
        writeln!(f, "  {:>width$}  peak reserved  peak allocated  retries  driver calls  out of memory", sweep.param)?;
        for run in &sweep.runs {
            let Run { value, peak_reserved, peak_allocated, retries, .. } = run;
            write!(f, "  {value:>width$}  {:>13}  {:>14}", Bytes(*peak_reserved), Bytes(*peak_allocated))?;
            writeln!(f, "  {:>7}  {:>12}  {}", Count(*retries), Count(run.driver_calls()), run.failure())?;
        }
        match sweep.verdict() {
            Some(verdict) => writeln!(f, "\n{verdict}"),
            None => Ok(()),
        }
    }
}
