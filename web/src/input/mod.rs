//! Keys and long presses. One registry of commands serves the keys, the command palette and the help dialog.

mod command;
mod found;
mod fuzzy;
mod gestures;
mod help;
mod hold;
mod keys;
mod navigate;
mod palette;
mod registry;

pub use help::help_dialog;
pub use hold::use_hold;
pub use keys::use_keys;
pub use palette::CommandPalette;
