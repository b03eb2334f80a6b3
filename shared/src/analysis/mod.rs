//! What a trace says, as pure functions from a trace to an answer: who used how much, what stood at the peak, why a
//! request failed, what to look at first.

pub mod actions;
pub mod findings;
pub mod flame;
pub mod folding;
pub mod fragmentation;
pub mod high_water;
pub mod leak;
pub mod matches;
pub mod oom;
pub mod paint;
pub mod peak;
pub mod report;
mod report_text;
pub mod retries;
pub mod segment_map;
pub mod segment_quads;
pub mod site;
pub mod usage;
pub mod verdict;
pub mod wording;
