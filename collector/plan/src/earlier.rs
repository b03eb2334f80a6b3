//! What lives on into the next step and is freed there, though no step uses what the one before made: results that a variable still
//! names, and gradients that are zeroed late.

use analysis::best_frames::BestFrames;
use analysis::category::{Categories, Category};
use analysis::site::label;
use analysis::steps::{StepSource, Steps};
use query::folding::short_location;
use replay::Replayed;
use replay::index::Index;
use rustc_hash::FxHashMap;
use trace::frames::{StackId, Symbols};
use whatif::{Edit, EditAct};

use crate::call::bytes;
use crate::phases::{Phase, Phases, freed};

/// The groups that are kept.
const MOST_GROUPS: usize = 6;

/// Memory that is freed a step late.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    /// The line that made it, as people read it; `None` for gradients.
    pub(crate) place: Option<String>,
    /// The allocations, each with the position of the end of its step.
    of: Vec<(u32, u32)>,
}

impl Late {
    /// Returns the edits that free it with the end of its step.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        self.of.iter().map(|(id, position)| Edit { position: *position, act: EditAct::Free(*id) }).collect()
    }

    fn bytes(&self, input: Replayed<'_>) -> u64 {
        bytes(input, self.of.iter().map(|(id, _)| *id))
    }
}

/// Returns what is freed late, the most first.
pub(crate) fn late(
    input: Replayed<'_>,
    symbols: &Symbols,
    (categories, phases): (&Categories, &Phases),
    steps: &Steps,
) -> Vec<Late> {
    let best = BestFrames::build(symbols);
    let mut groups: FxHashMap<Option<String>, Late> = FxHashMap::default();
    let slots = steps.slots(input.replay.positions());
    let nexts = slots.iter().skip(1).map(|next| next.to).chain([input.replay.positions()]);
    for (step, next_end) in slots.iter().zip(nexts) {
        let made = input.replay.allocations.made_by(step.from)..input.replay.allocations.made_by(step.to);
        for id in made {
            let Some(allocation) = input.replay.allocations.get(id) else { continue };
            let is_late = freed(&allocation) > step.to.saturating_add(1) && freed(&allocation) <= next_end;
            let is_of_pass = matches!(phases.get(id), Phase::Forward | Phase::Backward);
            if !is_late || !is_of_pass {
                continue;
            }
            let place = match categories.get(id) {
                // Steps that end with `zero_grad` have their gradients until then.
                Category::Gradients if steps.source == StepSource::ZeroGrad => continue,
                Category::Gradients => None,
                Category::Activations | Category::Temporary if allocation.stack != StackId(0) => {
                    let frame = best.frame(symbols.stack(allocation.stack)).unwrap_or_default();
                    let place = short_location(symbols, symbols.frame(frame));
                    // Without a file, there is the name of a function.
                    Some(if place.is_empty() { label(symbols, &best, allocation.stack) } else { place })
                }
                _ => continue,
            };
            let empty = || Late { place: place.clone(), of: Vec::new() };
            groups.entry(place.clone()).or_insert_with(empty).of.push((id, step.to));
        }
    }
    let mut groups: Vec<Late> = groups.into_values().collect();
    groups.sort_by_key(|late| (std::cmp::Reverse(late.bytes(input)), late.place.clone()));
    groups.truncate(MOST_GROUPS);
    groups
}
