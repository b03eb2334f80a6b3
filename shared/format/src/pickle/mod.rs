//! Reads pickles that contain only data: bytes in, values out.
//!
//! The machine accepts bytes in pieces of any size and can stop at any byte. It never recurses, never executes
//! anything, and never allocates memory for a declared length alone. It reads all opcodes of protocols 0 to 5 that
//! create data, and refuses by name those that load or call code.

mod ahead;
mod entries;
mod machine;
mod memo;
pub(crate) mod opcode;
mod operand;
mod rare;
mod runs;
mod template;
mod text;

pub(crate) use machine::{Machine, PICKLE, Unpickled};
pub(crate) use rare::newer_protocol;
