//! The publisher: whatever a server or the network does, what was recorded arrives once and in order, or is counted;
//! and whoever records never waits for it.

mod answers;
mod away;
mod connections;
mod program;
mod scripted;
mod session;
