//! From decoded values to a trace: shared by the pickle machine and the JSON reader.
//!
//! Both push [`Value`]s onto an [`Operands`] stack and hand whole lists and dicts to a [`SnapshotBuilder`], which turns
//! them into frames, stacks and rows of trace columns as soon as they are complete.

mod arena;
mod builder;
mod entry;
pub(crate) mod keywords;
mod operands;
mod rows;
mod value;

pub(crate) use builder::{SnapshotBuilder, entries, has_key};
pub(crate) use entry::EntryDraft;
pub(crate) use operands::Operands;
pub(crate) use rows::Rows;
pub(crate) use value::{Kind, Value};
