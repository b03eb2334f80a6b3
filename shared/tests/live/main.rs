//! Recordings that are read while they are made.

mod grown;
mod stream;
mod tracker;
