//! Every limit in the program, with its default and its reason.

mod analysis;
mod files;
mod job;
mod page;
mod server;

pub use analysis::*;
pub use files::*;
pub use job::*;
pub use page::*;
pub use server::*;
