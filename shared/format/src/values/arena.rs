//! An arena of dicts and lists that are kept until their parents are known.
//!
//! They refer to each other by number, so that dropping them never recurses, however deeply they are nested.

use super::value::Value;
use trace::error::{Checked, too_much};
use trace::narrow::number32;

/// Holds dicts (key, value, key, value, …) and lists by number.
#[derive(Debug, Default)]
pub(crate) struct ValueArena {
    places: Vec<Vec<Value>>,
    free: Vec<u32>,
    /// The number of values, plus one for each slot.
    held: usize,
}

impl ValueArena {
    /// Stores values in a slot. Returns the slot's number.
    pub(crate) fn add(&mut self, values: &[Value], limit: usize) -> Checked<u32> {
        self.charge(values.len() + 1, limit)?;
        if let Some(place) = self.free.pop()
            && let Some(slot) = self.places.get_mut(place as usize)
        {
            *slot = values.to_vec();
            return Ok(place);
        }
        let place = number32(self.places.len());
        self.places.push(values.to_vec());
        Ok(place)
    }

    /// Appends values to a slot.
    pub(crate) fn extend(&mut self, place: u32, values: &[Value], limit: usize) -> Checked {
        self.charge(values.len(), limit)?;
        if let Some(slot) = self.places.get_mut(place as usize) {
            slot.extend_from_slice(values);
        }
        Ok(())
    }

    /// Returns the values of a slot.
    pub(crate) fn get(&self, place: u32) -> &[Value] {
        self.places.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// Frees a slot for reuse and returns its values.
    pub(crate) fn release(&mut self, place: u32) -> Vec<Value> {
        let values = self.empty(place);
        self.free.push(place);
        values
    }

    /// Empties a slot and returns its values. The number is not reused: other references to it find nothing.
    pub(crate) fn empty(&mut self, place: u32) -> Vec<Value> {
        let values = self.places.get_mut(place as usize).map(std::mem::take).unwrap_or_default();
        self.held = self.held.saturating_sub(values.len() + 1);
        values
    }

    /// Returns the approximate bytes of memory that they occupy.
    pub(crate) fn memory(&self) -> usize {
        // Beside its values, a slot has its list and what the heap adds to it.
        self.held * size_of::<Value>() + self.places.capacity() * 2 * size_of::<Vec<Value>>()
    }

    fn charge(&mut self, count: usize, limit: usize) -> Checked {
        self.held += count;
        if self.held > limit || self.places.len() >= u32::MAX as usize {
            return Err(too_much(format!("more than {limit} values outside the trace")));
        }
        Ok(())
    }
}
