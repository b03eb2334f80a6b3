//! How long each stage of opening a file takes, as entries on the browser's performance timeline. Developer tools show
//! them, and `tests/measure/stages.mjs` prints them.

use js_sys::{Function, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::entry::{now, scope};

/// Adds up the time of a stage that alternates with others.
pub struct Stage {
    name: &'static str,
    start: f64,
    duration: f64,
}

impl Stage {
    /// Creates a stage that has taken no time yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, start: now(), duration: 0.0 }
    }

    /// Adds the time since `since`, in milliseconds as [`now`] returns them. Returns the time now.
    pub fn add(&mut self, since: f64) -> f64 {
        let time = now();
        self.duration += time - since;
        time
    }

    /// Writes the stage to the timeline: from its creation, for as long as it took in total.
    pub fn finish(&self) {
        // Nothing depends on it, so that a browser without it goes without.
        let _ = self.measure();
    }

    fn measure(&self) -> Result<(), JsValue> {
        let performance = scope().performance().ok_or(JsValue::NULL)?;
        let options = Object::new();
        Reflect::set(&options, &"start".into(), &self.start.into())?;
        Reflect::set(&options, &"duration".into(), &self.duration.into())?;
        let measure: Function = Reflect::get(&performance, &"measure".into())?.dyn_into()?;
        measure.call2(&performance, &self.name.into(), &options)?;
        Ok(())
    }
}

/// Runs `work` as a stage.
pub fn stage<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let mut stage = Stage::new(name);
    let result = work();
    stage.add(stage.start);
    stage.finish();
    result
}
