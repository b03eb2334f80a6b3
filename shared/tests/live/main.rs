//! Recordings that are read while they are made.

mod extend;
mod grown;
mod reads;
mod stream;
mod tracker;
