//! Runs of a trace's requests under other settings: what they come to, and what a search among them found.

mod bounds;
mod cards;
mod outcome;
mod self_check;
mod tuning;

pub use bounds::Bounds;
pub use cards::{CARDS, CONTEXT, Card};
pub use outcome::{Outcome, Why};
pub use self_check::{Difference, SelfCheck};
pub use tuning::{Advice, Goal, Group, Tuning};
