//! What several views share: small components, and hooks that know nothing of the model.

pub mod bytes_text;
pub mod chips;
pub mod copy;
pub mod dialog;
pub mod empty;
pub mod format;
pub mod icon;
pub mod menu;
pub mod share_bar;
pub mod stack_list;
pub mod style;
pub mod virtual_list;
