//! Vramscope.
fn main() {}
