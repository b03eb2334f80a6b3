//! The views, one file or folder each. A view reads the model and sends actions; it never changes the model.

pub mod controls;
pub mod details;
pub mod events;
pub mod findings;
pub mod flame;
pub mod legend;
mod losses;
pub mod overview;
pub mod search;
pub mod segments;
pub mod status;
pub mod text_twin;
pub mod timeline;
