//! The publisher: whatever a server or the network does, recorded events arrive once and in order, or are counted as
//! lost, and the job never waits.

mod answers;
mod away;
mod connections;
mod encrypted;
#[cfg(target_os = "linux")]
mod full_disk;
mod program;
mod scripted;
mod session;
#[cfg(target_os = "linux")]
mod soak;
