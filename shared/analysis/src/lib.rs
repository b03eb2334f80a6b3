//! Analyses of a trace, as pure functions and indexes: memory use by call site, the peak, where requests failed,
//! findings.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod actions;
pub mod backward;
pub mod best_frames;
pub mod category;
pub mod findings;
pub mod flame;
pub mod frame_matcher;

pub mod fragmentation;
pub mod heatmap;
pub mod high_water;
pub mod host_memory;
pub mod inner_lines;
pub mod leak;
pub mod lines;
pub mod lod;
pub mod matches;
pub mod measures;
pub mod missing_stack;
pub mod oom;
pub mod paint;
pub mod part_peak;
pub mod peak;
pub mod retries;
pub mod roles;
pub mod segment_map;
pub mod segment_order;
pub mod segment_quads;
pub mod site;
pub mod stack_traits;
pub mod steps;
pub mod term_matches;
pub mod usage;
pub mod window;
