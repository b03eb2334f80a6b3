//! One file a route.

mod health;
mod page;
mod sample;

pub(super) use health::health;
pub(super) use page::page;
pub(super) use sample::sample;
