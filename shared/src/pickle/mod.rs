//! A machine for pickles that hold data and nothing else: bytes in, folded values out.
//!
//! It is pushed bytes in pieces of any size and can stop at any byte. It never recurses, never runs anything, and
//! allocates nothing on a declared length's word. All opcodes of protocols 0 to 5 that only make data are read, those
//! that call or load code are refused by name.

mod machine;
mod memo;
pub(crate) mod opcode;
mod runs;
mod text;

pub(crate) use machine::{Machine, Unpickled};
