//! Recordings that are read while they are made.

mod grown;
mod reads;
mod stream;
mod tracker;
