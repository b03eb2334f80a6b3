//! A sweep as text for people.

use std::fmt::{self, Display};

use shared::units::{Bytes, Count, counted};

use super::Printed;
use super::row::Row;
use super::search::Largest;
use crate::cli::one_line;

impl Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choices: String = self.choices.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        writeln!(f, "{}{choices}", self.story)?;
        write!(f, "  on a simulated device of {}", Bytes(self.capacity_bytes))?;
        if let Some(card) = self.card {
            write!(f, " ({card})")?;
        }
        write!(f, ", PyTorch {}'s allocator", self.torch)?;
        if !self.conf.is_empty() {
            write!(f, " with {}", one_line(&self.conf))?;
        }
        writeln!(f, ", seed {}, {}\n", self.seed, counted(self.steps, "step"))?;
        let width = self.runs.iter().map(|row| row.value.len()).chain([self.param.len()]).max().unwrap_or(0);
        writeln!(f, "  {:>width$}  peak reserved  peak allocated  retries  driver calls  out of memory", self.param)?;
        for row in &self.runs {
            let Row { value, peak_reserved, peak_allocated, retries, device_allocs, device_frees, .. } = row;
            let calls = Count(device_allocs + device_frees);
            write!(f, "  {value:>width$}  {:>13}  {:>14}", Bytes(*peak_reserved), Bytes(*peak_allocated))?;
            writeln!(f, "  {:>7}  {calls:>12}  {}", Count(*retries), failure(row))?;
        }
        let Some(largest) = &self.largest else { return Ok(()) };
        let param = self.param;
        writeln!(f)?;
        match largest {
            Largest::Between { fits, fails } => writeln!(
                f,
                "The largest {param} that fits is {}: {} reserved at the peak. With {}, {}.",
                fits.value,
                Bytes(fits.peak_reserved),
                fails.value,
                failure(fails)
            ),
            Largest::Beyond { fits } => writeln!(
                f,
                "{param}={} fits, the end of the range: {} reserved at the peak. For the largest that fits, widen the range.",
                fits.value,
                Bytes(fits.peak_reserved)
            ),
            Largest::Below { fails } => {
                writeln!(f, "Not even {param}={} fits, the start of the range: {}.", fails.value, failure(fails))
            }
        }
    }
}

/// Returns how a run ran out of memory, or that it didn't.
fn failure(row: &Row) -> String {
    match (row.failed_request, row.ooms) {
        (Some(bytes), _) => format!("a request of {} fails", Bytes(bytes)),
        (None, 0) => "no".to_owned(),
        (None, ooms) => format!("{} caught", counted(ooms, "failure")),
    }
}
