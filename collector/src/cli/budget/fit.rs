//! Whether a planned model fits into the memory of a card, and the largest batch that does.

use budget::{LargestBatch, Model, Plan, largest_batch};
use clap::Args;
use serde::Serialize;
use trace::units::{Bytes, Count};
use whatif::Card;

use super::alternative::Alternative;
use crate::cli::choice::Offered;
use crate::cli::gate::{self, FailOn};
use crate::cli::setting;
use crate::cli::subject::card;

/// How exact plans are, in percent (`collector/budget/TRUTH.md`).
pub(super) const EXACT_PERCENT: u64 = 3;

/// The options that say where the model should fit.
#[derive(Args, Debug)]
pub(super) struct Place {
    /// Card that it should fit on, such as H100-80GB: prints whether it does, and the largest batch
    #[arg(help_heading = None, long, value_name = "NAME", value_parser = Offered::cards(), hide_possible_values = true)]
    card: Option<String>,
    /// Memory that it should fit into, such as 22GiB, instead of that of a card
    #[arg(help_heading = None, long, value_name = "SIZE", conflicts_with = "card", allow_hyphen_values = true)]
    capacity: Option<String>,
    /// Exit with 1 if it does not fit (oom), or never
    #[arg(help_heading = None, long, value_name = "WHAT", default_value = "never", value_parser = gate::of_a_run())]
    fail_on: FailOn,
}

impl Place {
    /// Returns whether the model fits there, if a place was named.
    pub(super) fn fit(&self, model: &Model, plan: &Plan) -> Result<Option<Fit>, String> {
        let (card, usable_bytes) = match (&self.card, &self.capacity) {
            (Some(name), _) => {
                let card: &'static Card = card(name)?;
                (Some(card.name), card.usable())
            }
            (None, Some(size)) => (None, setting::capacity(size).map_err(|error| format!("--capacity: {error}"))?),
            (None, None) if self.fail_on > FailOn::Never => {
                return Err("--fail-on oom says nothing without a place to fit. Give --card H100-80GB or --capacity \
                            22GiB."
                    .to_owned());
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(Fit::new(model, plan, card, usable_bytes)))
    }

    /// Returns whether a plan that does not fit trips the gate. One that may fit does not.
    pub(super) fn is_tripped(&self, fit: Option<&Fit>) -> bool {
        self.fail_on >= FailOn::Oom && fit.is_some_and(|fit| !fit.fits && !fit.is_close)
    }
}

/// The planned model in the memory of a card.
#[derive(Serialize)]
pub(super) struct Fit {
    /// The card; `None` if an amount of memory was given.
    pub(super) card: Option<&'static str>,
    /// The bytes that a process can have for its tensors.
    pub(super) usable_bytes: u64,
    /// Whether the planned peak is less.
    pub(super) fits: bool,
    /// Whether it is so close that the plan can't tell.
    pub(super) is_close: bool,
    /// The largest batch, without working memory and fragmentation.
    pub(super) largest: LargestBatch,
    /// What would make it fit, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) alternative: Option<Alternative>,
}

impl Fit {
    /// Plans a model in an amount of memory.
    fn new(model: &Model, plan: &Plan, card: Option<&'static str>, usable_bytes: u64) -> Self {
        let largest = largest_batch(model, usable_bytes);
        let difference = plan.peak_bytes.abs_diff(usable_bytes);
        let is_close = difference <= usable_bytes / 100 * EXACT_PERCENT;
        let fits = plan.peak_bytes <= usable_bytes;
        let alternative = if fits { None } else { Alternative::of(model, usable_bytes) };
        Self { card, usable_bytes, fits, is_close, largest, alternative }
    }

    /// Returns where the model should fit, as a sentence goes on: `on H100-80GB`.
    pub(super) fn place(&self) -> String {
        self.card.map_or_else(|| format!("in {}", Bytes(self.usable_bytes)), |card| format!("on {card}"))
    }
}

impl std::fmt::Display for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LargestBatch { batch, peak_bytes } = self.largest;
        let peak = Bytes(peak_bytes);
        match batch {
            0 => writeln!(f, "not even a batch of 1 fits: it needs {peak}")?,
            batch => writeln!(f, "largest batch: {}, with {peak} at the peak", Count(batch))?,
        }
        match &self.alternative {
            Some(Alternative { options, peak_bytes }) => {
                writeln!(f, "help: add {options}, and it needs {}", Bytes(*peak_bytes))
            }
            None => Ok(()),
        }
    }
}
