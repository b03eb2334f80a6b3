//! The JSON of a sweep as a tree. Its size is bounded by the document's, its depth here.

use crate::json::{JsonReader, Target};
use crate::values::Value;
use trace::error::{self, Checked, too_much};
use trace::narrow::length;

/// The deepest nesting. A document has three.
const DEPTH: usize = 32;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    /// A number, a boolean or `null`.
    Scalar(Value),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Returns the first field with a name.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a whole number that is not negative.
    pub(super) fn whole(&self) -> Option<u64> {
        match *self {
            Self::Scalar(Value::Int(number)) => u64::try_from(number).ok(),
            Self::Scalar(Value::Big(number)) => Some(number),
            _ => None,
        }
    }
}

/// Where a text is no JSON, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The offset in bytes.
    pub(super) byte: usize,
    pub(super) what: &'static str,
}

/// Reads a text that is one value.
pub(super) fn parse(text: &str) -> Result<Json, Fault> {
    let not_json = |byte| Fault { byte, what: "the text is not JSON" };
    let mut reader = JsonReader::new(Tree::default(), text.len());
    let read = reader.push(text.as_bytes());
    let byte = length(reader.byte());
    read.map_err(|fault| match *fault {
        error::Fault::TooMuch(_) => Fault { byte, what: "it is nested too deeply" },
        _ => not_json(byte),
    })?;
    let rest = text.get(byte..).unwrap_or_default().trim_ascii_start();
    match reader.target.root {
        Some(root) if rest.is_empty() => Ok(root),
        Some(_) => Err(not_json(text.len() - rest.len())),
        None => Err(Fault { byte, what: "it ends early" }),
    }
}

/// The values that are complete, and the lists and objects around them.
#[derive(Default)]
struct Tree {
    /// The open lists and objects, each with the key whose value comes next.
    open: Vec<(Json, Option<String>)>,
    root: Option<Json>,
}

impl Tree {
    /// Adds a complete value to the innermost list or object.
    fn add(&mut self, value: Json) {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some((Json::Object(fields), key)) => fields.extend(key.take().map(|key| (key, value))),
            Some((Json::List(items), _)) => items.push(value),
            // Nothing else is open.
            Some(_) => {}
        }
    }
}

impl Target for Tree {
    const TAKES_CONTROLS: bool = false;

    fn begin(&mut self, is_object: bool, depth: usize) -> Checked {
        if depth >= DEPTH {
            return Err(too_much("it is nested too deeply"));
        }
        self.open.push((if is_object { Json::Object(Vec::new()) } else { Json::List(Vec::new()) }, None));
        Ok(())
    }

    fn end(&mut self, _: bool, _: usize) -> Checked {
        if let Some((value, _)) = self.open.pop() {
            self.add(value);
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> Checked {
        let text = String::from_utf8_lossy(text).into_owned();
        match self.open.last_mut() {
            Some((Json::Object(_), key @ None)) => *key = Some(text),
            _ => self.add(Json::Text(text)),
        }
        Ok(())
    }

    fn scalar(&mut self, value: Value) -> Checked {
        self.add(Json::Scalar(value));
        Ok(())
    }

    fn next_item(&mut self) -> Checked {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_kind() {
        let text = " {\"a\" : [1, -2, 1.5e3, 18446744073709551615, 18446744073709551616, true, null, {}, []],\n\
                    \"b\\u00e9\\n\\\"\": \"\\ud800é\", \"a\": false} ";
        let value = parse(text).unwrap();
        let Some(Json::List(items)) = value.field("a") else { panic!("{value:?}") };
        let wanted = [
            Json::Scalar(Value::Int(1)),
            Json::Scalar(Value::Int(-2)),
            Json::Scalar(Value::Float(1_500.0)),
            Json::Scalar(Value::Big(u64::MAX)),
            Json::Scalar(Value::Odd),
            Json::Scalar(Value::Bool(true)),
            Json::Scalar(Value::None),
            Json::Object(Vec::new()),
            Json::List(Vec::new()),
        ];
        assert_eq!(items[..], wanted);
        assert_eq!(value.field("bé\n\"").and_then(Json::text), Some("\u{fffd}é"));
        assert_eq!((value.field("c"), items[0].field("a")), (None, None));
        let numbers: Vec<_> = items.iter().map(Json::whole).collect();
        assert_eq!(numbers[..5], [Some(1), None, None, Some(u64::MAX), None]);
        assert!(numbers[5..].iter().all(Option::is_none));
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_stops() {
        for (text, byte) in [
            ("[1 2]", 3),
            ("{1:2}", 1),
            ("[}", 1),
            ("{\"a\" 1}", 5),
            ("[nul]", 1),
            ("[\"\\x\"]", 2),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("[1]x", 3),
            ("[1] \n x", 6),
            ("[\"a\nb\"]", 2),
            ("[1x2]", 1),
            ("[\"\\u00zz\"]", 2),
        ] {
            assert_eq!(parse(text), Err(Fault { byte, what: "the text is not JSON" }), "{text}");
        }
        for text in ["", "[", "{\"a", "{\"a\"", "{\"a\":", "[1", "[1,", "[nu", "\"a\\", "\"\\u00"] {
            assert_eq!(parse(text), Err(Fault { byte: text.len(), what: "it ends early" }), "{text}");
        }
        assert_eq!(parse(&"[".repeat(100)), Err(Fault { byte: 32, what: "it is nested too deeply" }));
    }
}
