//! The page's state: one [`Model`], one [`update()`], and the hooks through which views read it and send [`Action`]s.
//! A view never changes the model, and the model never touches the browser.

mod action;
mod answer;
mod follow;
mod handle;
mod live;
mod shifted;
mod state;
#[cfg(test)]
pub(crate) mod testing;
mod update;
mod view;

pub use action::Action;
pub(crate) use answer::ask;
pub use answer::{use_answer, use_ask};
pub use follow::use_followers;
pub use handle::{ModelHandle, Store, use_model};
pub use live::{Live, count};
pub use state::{Dialog, FileEntry, FileKey, Model, Phase, Shared, ThemeChoice};
pub use update::update;
pub use view::{Selection, Tab, View};
