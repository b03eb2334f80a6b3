//! Sharing: a copy of the shown trace, with what is private left out, as a link, as a file, or as a page of its own.
//!
//! ```text
//! choices ─► worker: copy ─► what leaves (shown) ─► Share: parts ─► server ─► link
//!                                               └─► Save as: file, page
//! ```
//! Nothing is sent before the user asks for it. What is sent is the very copy that the dialog described.

mod audience;
mod choices;
mod dialog;
mod doing;
mod draft;
mod entries;
mod leaving;
mod link_form;
mod moment;
mod moved_view;
mod my_uploads;
mod origin;
mod outcome;
mod pace;
mod save;
mod sender;
mod use_copy;

pub use dialog::ShareDialog;
pub use my_uploads::UploadsDialog;
