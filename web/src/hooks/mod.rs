//! How components read the model, send actions to it, and ask the engine.
//!
//! ```text
//! worker, model, render ◄─ hooks ◄─ views, shell, input, source, theme
//! ```
//! A component calls [`use_model_of`] to read the model and to send actions: it names the parts that it shows, and renders again when
//! one of them has changed. It calls [`use_answer`] to ask the engine something about the current device. [`use_diagnosis`] keeps the
//! diagnosis of the model up to date, and [`use_followers`] does what follows from a change of the model and needs an answer first.

mod answer;
mod away;
mod baseline;
mod cursor;
mod diagnosis;
mod follow;
mod handle;
mod hit;
mod identity;
mod near;
mod own_rules;
mod pace;
mod palette;
mod pins;
mod preferences;
mod range;
mod term;
mod whatif;

pub use crate::worker::CurvesFor;
pub use answer::{ask, bring_cursor, use_answer, use_answer_of, use_exact_answer, use_exact_answer_of};
pub use away::use_putting_away;
pub use baseline::use_baseline;
pub use cursor::use_cursor;
pub use diagnosis::use_diagnosis;
pub use follow::use_followers;
pub use handle::{ModelHandle, ModelSource, PlotRows, Store, use_model, use_model_of};
pub use hit::to_hit;
pub use identity::use_identities;
pub use near::{Near, use_cursor_x, use_near, use_site_name};
pub use own_rules::{remembered_rules, set_rules};
pub use pace::use_paced;
pub use palette::{palette, use_palette};
pub use pins::{PinFlag, use_pin_flags, use_pin_states};
pub use preferences::{remembered_preferences, use_preferences};
pub use range::{select_range, use_range, window_between, zoom_to_range};
pub use term::check_term;
pub use whatif::{
    Tries, add_run, cancel_tune, change_whatif, find_remedy, find_settings, open_whatif, remove_run, use_curves,
    use_remedies,
};
