//! JSON without a parser of our own: the browser's values, read and written field by field.

use js_sys::{Array, JSON, Object, Reflect};
use wasm_bindgen::prelude::*;

/// A JSON value.
#[derive(Clone, Debug)]
pub struct Json(JsValue);

impl Json {
    /// Parses a JSON text.
    pub fn parse(text: &str) -> Option<Self> {
        JSON::parse(text).ok().map(Self)
    }

    fn get(&self, key: &str) -> JsValue {
        Reflect::get(&self.0, &key.into()).unwrap_or_default()
    }

    /// Returns a field's text; empty if there is none.
    pub fn text(&self, key: &str) -> String {
        self.get(key).as_string().unwrap_or_default()
    }

    /// Returns a field's number, if there is one.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key).as_f64()
    }

    /// Returns whether a field is `true`.
    pub fn is(&self, key: &str) -> bool {
        self.get(key).as_bool() == Some(true)
    }

    /// Returns a field's list; empty if there is none.
    pub fn list(&self, key: &str) -> Vec<Self> {
        Self(self.get(key)).values()
    }

    /// Returns this list's values; none if it is no list.
    pub fn values(&self) -> Vec<Self> {
        self.0.dyn_ref::<Array>().map(|list| list.iter().map(Self).collect()).unwrap_or_default()
    }

    /// Returns the texts of a field's list.
    pub fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(|value| value.0.as_string()).collect()
    }

    /// Returns the numbers of this list.
    pub fn numbers(&self) -> Vec<f64> {
        self.values().iter().filter_map(|value| value.0.as_f64()).collect()
    }
}

/// A JSON object to be written.
#[derive(Default)]
pub struct Fields(Object);

impl Fields {
    /// Adds a field.
    #[must_use]
    pub fn with(self, key: &str, value: impl Into<JsValue>) -> Self {
        // An object that was just made accepts every field.
        let _ = Reflect::set(&self.0, &key.into(), &value.into());
        self
    }

    /// Returns the object as JSON.
    pub fn text(&self) -> String {
        JSON::stringify(&self.0).map(String::from).unwrap_or_default()
    }
}

impl From<Fields> for JsValue {
    fn from(fields: Fields) -> Self {
        fields.0.into()
    }
}

/// Returns a number as JSON: `null` if there is none.
pub fn number_or_null(number: Option<f64>) -> JsValue {
    number.map_or(JsValue::NULL, JsValue::from_f64)
}
