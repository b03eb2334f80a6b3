//! What holds for every trace: properties over random traces and scripts, hostile files, and golden ones.

mod categories;
mod common;
mod damaged;
mod export;
mod folding;
mod format;
mod heatmap;
mod hostile;
mod import;
mod lines;
mod live;
mod lod;
mod lost_names;
mod measures;
mod packed;
mod preview;
mod redaction;
mod replay;
mod session;
mod support;
mod sweep;
mod transcriber;
mod whatif;
