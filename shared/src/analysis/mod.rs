//! Analyses of a trace, as pure functions and indexes: memory use by call site, the peak, why a request failed,
//! findings.

pub mod actions;
pub mod findings;
pub mod flame;
pub mod folding;
pub mod fragmentation;
pub mod high_water;
pub mod leak;
pub mod lines;
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
pub mod term_matches;
pub mod usage;
pub mod verdict;
pub mod window;
