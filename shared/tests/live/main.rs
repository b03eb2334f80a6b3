//! Recordings that are read while they are made.

mod stream;
mod tracker;
