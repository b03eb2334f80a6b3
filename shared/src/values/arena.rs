//! Dicts and lists that are kept as they are, until it is known what they belong to.
//!
//! They lie side by side and name each other by number, so that no nesting, however deep, is ever walked to be freed.

use super::value::Value;
use crate::error::{Checked, too_much};

/// The arena of kept dicts (key, value, key, value, …) and lists.
#[derive(Debug, Default)]
pub(crate) struct ValueArena {
    places: Vec<Vec<Value>>,
    free: Vec<u32>,
    /// Values in all places, and one for each place.
    held: usize,
}

impl ValueArena {
    /// Keeps some values in a place of their own.
    pub(crate) fn add(&mut self, values: &[Value], limit: usize) -> Checked<u32> {
        self.charge(values.len() + 1, limit)?;
        if let Some(place) = self.free.pop()
            && let Some(slot) = self.places.get_mut(place as usize)
        {
            *slot = values.to_vec();
            return Ok(place);
        }
        self.places.push(values.to_vec());
        Ok(self.places.len() as u32 - 1)
    }

    /// Appends values to a place.
    pub(crate) fn extend(&mut self, place: u32, values: &[Value], limit: usize) -> Checked {
        self.charge(values.len(), limit)?;
        if let Some(slot) = self.places.get_mut(place as usize) {
            slot.extend_from_slice(values);
        }
        Ok(())
    }

    /// The values of a place.
    pub(crate) fn get(&self, place: u32) -> &[Value] {
        self.places.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// Empties a place and gives what was in it. The place itself is used again.
    pub(crate) fn release(&mut self, place: u32) -> Vec<Value> {
        let values = self.take(place);
        self.free.push(place);
        values
    }

    /// Empties a place, but leaves it its number: who else refers to it finds nothing.
    pub(crate) fn take(&mut self, place: u32) -> Vec<Value> {
        let values = self.places.get_mut(place as usize).map(std::mem::take).unwrap_or_default();
        self.held = self.held.saturating_sub(values.len() + 1);
        values
    }

    fn charge(&mut self, count: usize, limit: usize) -> Checked {
        self.held += count;
        if self.held > limit || self.places.len() >= u32::MAX as usize {
            return Err(too_much(format!("more than {limit} values outside the trace")));
        }
        Ok(())
    }
}
