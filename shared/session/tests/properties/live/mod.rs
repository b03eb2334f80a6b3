//! Recordings that are read while they are written.

mod extend;
mod pieces;
mod reads;
mod stream;
mod tracker;
