//! Every limit in the program, with its default and its reason.

mod analysis;
mod files;
mod job;
mod objects;
mod page;
mod server;

pub use analysis::*;
pub use files::*;
pub use job::*;
pub use objects::*;
pub use page::*;
pub use server::*;
