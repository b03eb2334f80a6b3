//! The frames that call sites are put together from.

/// A frame: function, file and line.
pub(super) type Call = (&'static str, &'static str, u32);

/// Part of a stack, innermost frame first.
pub(super) type Piece = &'static [Call];

/// The call site of an operation: consecutive parts of a stack, innermost first.
pub(super) type Site = &'static [Piece];

/// Returns the frame of a function at a line of a file.
pub(super) const fn at(name: &'static str, file: &'static str, line: u32) -> Call {
    (name, file, line)
}
