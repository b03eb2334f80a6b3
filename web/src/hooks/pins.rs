//! The pins of the view, with the state of memory and the coordinate at each.

use std::rc::Rc;

use query::{Answer, Axis, Query, StateAt, StateQuery};
use trace::limits::LINK_PINS;
use yew::prelude::*;

use super::{ModelHandle, use_answer};

/// A pin on the x axis.
#[derive(Clone, Debug, PartialEq)]
pub struct PinFlag {
    /// Its number, from 1.
    pub number: usize,
    /// Its coordinate.
    pub x: f64,
    /// Its name.
    pub name: String,
}

/// Returns the state at each pin, in the order of the pins; `None` until it is known.
#[hook]
pub fn use_pin_states(model: &ModelHandle) -> [Option<Rc<Answer>>; LINK_PINS] {
    let pins = &model.view.pins;
    let query = |i: usize| pins.get(i).map(|pin| Query::State(StateQuery { position: pin.position }));
    // Every render must call the same number of hooks.
    let answers =
        [use_answer(query(0)), use_answer(query(1)), use_answer(query(2)), use_answer(query(3)), use_answer(query(4))];
    let mut i = 0;
    answers.map(|answer| {
        i += 1;
        // The answer may still be for the previous pin of this index.
        let position = pins.get(i - 1).map(|pin| pin.position);
        answer.filter(|answer| state(answer).is_some_and(|state| Some(state.position) == position))
    })
}

/// Returns the pins whose coordinate on the current axis is known.
#[hook]
pub fn use_pin_flags(model: &ModelHandle) -> Rc<[PinFlag]> {
    let states = use_pin_states(model);
    let axis = model.view.axis;
    model
        .view
        .pins
        .iter()
        .zip(&states)
        .enumerate()
        .filter_map(|(i, (pin, answer))| {
            let x = match axis {
                Axis::Event => f64::from(pin.position),
                Axis::Time => state(answer.as_deref()?)?.time_us,
            };
            Some(PinFlag { number: i + 1, x, name: pin.name.clone() })
        })
        .collect()
}

fn state(answer: &Answer) -> Option<&StateAt> {
    match answer {
        Answer::State(state) => Some(state),
        _ => None,
    }
}
