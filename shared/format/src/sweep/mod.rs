//! A sweep: a workload, run once for each value of a parameter. `vramscope sweep` writes it as a JSON document, and the
//! page shows that as a plot and a table.
//!
//! The document begins with [`FORMAT`]. It is read with a bound on its size and on everything in it, because it may come from
//! anywhere: see [`read`].

mod document;
mod largest;
mod line;
mod mark;
mod run;
mod shown;
mod tree;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::document::{Document, SweepError, read};
pub use self::largest::Largest;
pub use self::mark::begins;
pub use self::run::Run;
use trace::order::SortFew;
use trace::units::{Bytes, counted};

/// The document's first field: what it is, and the version of its format.
pub const FORMAT: &str = "vramscope sweep 1";

/// The runs of a workload with a parameter's values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sweep {
    /// The name of the workload.
    pub story: String,
    /// The parameters that stay, with their values.
    pub choices: BTreeMap<String, String>,
    /// The name of the parameter.
    pub param: String,
    /// The memory of the simulated device, in bytes.
    pub capacity_bytes: u64,
    /// The name of the card with that memory, if one was named.
    pub card: Option<String>,
    /// The PyTorch release whose allocator ran.
    pub torch: String,
    /// The allocator's settings, as in `PYTORCH_CUDA_ALLOC_CONF`; empty for the default ones.
    pub conf: String,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The number of steps of each run.
    pub steps: u64,
    /// The runs, in the order of the values that were asked for.
    pub runs: Vec<Run>,
    /// The largest number that fits; `None` if the values are no range.
    pub largest: Option<Largest>,
}

impl Sweep {
    /// Returns whether all values are numbers, which have an order and distances.
    pub fn is_numeric(&self) -> bool {
        self.runs.iter().all(|run| run.number().is_some())
    }

    /// Returns all runs: if the values are numbers, in their order and with those that prove the largest one.
    pub fn all_runs(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        if self.is_numeric() {
            if let Some(largest) = &self.largest {
                runs.extend(largest.fits().into_iter().chain(largest.fails()));
            }
            runs.sort_few_by_key(|run| run.number());
            runs.dedup_by_key(|run| run.number());
        }
        runs
    }

    /// Returns the workload with the parameters that stay: `resnet-sweep image=224 precision=fp32`.
    pub fn subject(&self) -> String {
        let choices: String = self.choices.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{}{choices}", self.story)
    }

    /// Returns what all runs have in common beside the workload: the device, the allocator, the seed and the steps.
    pub fn conditions(&self) -> String {
        let mut text = format!("on a simulated device of {}", Bytes(self.capacity_bytes));
        if let Some(card) = &self.card {
            text += &format!(" ({card})");
        }
        text += &format!(", PyTorch {}'s allocator", self.torch);
        if !self.conf.is_empty() {
            text += &format!(" with {}", trace::text::Escaped(&self.conf));
        }
        text + &format!(", seed {}, {}", self.seed, counted(self.steps, "step"))
    }

    /// Returns the largest number that fits with its proof, in one or two sentences; `None` if the values are no range.
    pub fn verdict(&self) -> Option<String> {
        let param = &self.param;
        Some(match self.largest.as_ref()? {
            Largest::Between { fits, fails } => format!(
                "The largest {param} that fits is {}: {} reserved at the peak. With {}, {}.",
                fits.value,
                Bytes(fits.peak_reserved),
                fails.value,
                fails.failure()
            ),
            Largest::Beyond { fits } => format!(
                "{param}={} fits, the end of the range: {} reserved at the peak. For the largest that fits, widen the range.",
                fits.value,
                Bytes(fits.peak_reserved)
            ),
            Largest::Below { fails } => {
                format!("Not even {param}={} fits, the start of the range: {}.", fails.value, fails.failure())
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Returns a run that fits if its number is at most `limit`.
    pub(crate) fn run(number: u64, limit: u64) -> Run {
        let fits = number <= limit;
        Run {
            value: number.to_string(),
            fits,
            peak_reserved: number << 20,
            peak_allocated: number << 19,
            device_allocs: number,
            ooms: u64::from(!fits),
            failed_request: (!fits).then_some(number << 10),
            events: 10 * number,
            ..Run::default()
        }
    }

    /// Returns a sweep of a batch of which 280 is the largest that fits.
    pub(crate) fn sweep() -> Sweep {
        Sweep {
            story: "resnet-sweep".to_owned(),
            choices: [("image", "224"), ("precision", "fp32")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
            param: "batch".to_owned(),
            capacity_bytes: 40 << 30,
            card: Some("A100-40GB".to_owned()),
            torch: "2.11".to_owned(),
            conf: "roundup_power2_divisions:[256:1,>:2]".to_owned(),
            seed: 1,
            steps: 8,
            runs: [64, 128, 256, 512].map(|number| run(number, 280)).into(),
            largest: Some(Largest::Between { fits: run(280, 280), fails: run(281, 280) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{run, sweep};
    use super::*;

    fn values(sweep: &Sweep) -> String {
        sweep.all_runs().iter().map(|run| run.value.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_are_in_order_with_the_proof_among_them() {
        assert_eq!(values(&sweep()), "64 128 256 280 281 512");
        let known = Sweep { largest: Some(Largest::Below { fails: run(64, 0) }), ..sweep() };
        assert_eq!(values(&known), "64 128 256 512");
        let mut turned = sweep();
        turned.runs.reverse();
        assert_eq!(values(&turned), "64 128 256 280 281 512");
    }

    #[test]
    fn words_stay_as_they_were_asked_for() {
        let word = |value: &str| Run { value: value.to_owned(), ..Run::default() };
        let words = Sweep { runs: vec![word("none"), word("full"), word("2")], largest: None, ..sweep() };
        assert!(!words.is_numeric());
        assert_eq!(values(&words), "none full 2");
        assert_eq!(words.verdict(), None);
    }

    #[test]
    fn a_sweep_says_what_ran_and_what_it_found() {
        let sweep = sweep();
        assert_eq!(sweep.subject(), "resnet-sweep image=224 precision=fp32");
        assert_eq!(
            sweep.conditions(),
            "on a simulated device of 40.0 GiB (A100-40GB), PyTorch 2.11's allocator with \
             roundup_power2_divisions:[256:1,>:2], seed 1, 8 steps"
        );
        let said = |largest: Largest| Sweep { largest: Some(largest), ..sweep.clone() }.verdict().unwrap();
        assert_eq!(
            sweep.verdict().unwrap(),
            "The largest batch that fits is 280: 280 MiB reserved at the peak. With 281, a request of 281 KiB fails."
        );
        assert!(
            said(Largest::Beyond { fits: run(512, 600) }).starts_with("batch=512 fits, the end of the range: 512 MiB")
        );
        assert_eq!(
            said(Largest::Below { fails: run(64, 0) }),
            "Not even batch=64 fits, the start of the range: a request of 64.0 KiB fails."
        );
    }
}
