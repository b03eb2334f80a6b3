//! Yew's hooks and components, with one copy of their machinery for all types. Yew makes half a kilobyte to two of code
//! for each type of state, for each effect and for each component, and the page had 27, 39 and 50 of them: more than
//! a tenth of the module. Here their values go behind one type that can be compared ([`erased`]), so that all share it.

mod effect;
mod erased;
pub mod part;
mod state;

pub use effect::use_effect_with;
pub use erased::Erased;
pub use state::{Setter, State, use_state_eq};
