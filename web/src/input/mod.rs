//! The keyboard: one registry of commands, which the keys, the palette and the help dialog all read. What is not in
//! it can't be done by key, and what is in it is found in both.

mod command;
mod fuzzy;
mod help;
mod keys;
mod navigate;
mod palette;
mod registry;

pub use help::HelpDialog;
pub use keys::use_keys;
pub use palette::CommandPalette;
