//! The publisher: whatever a server or the network does, recorded events arrive once and in order, or are counted as
//! lost, and the job never waits.

mod answers;
mod away;
mod connections;
mod encrypted;
mod program;
mod scripted;
mod session;
