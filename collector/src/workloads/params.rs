//! The parameters of a workload, which are chosen as `name=value`.

/// A parameter of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name.
    pub name: &'static str,
    /// The value by default.
    pub default: &'static str,
    /// The permitted values.
    pub values: Values,
    /// What it does, in a few words.
    pub help: &'static str,
}

/// The permitted values of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words, or a whole number from the first to the second.
    WordsOrCount(&'static [&'static str], u64, u64),
}

/// `yes` and `no`.
pub(super) const YES_NO: Values = Values::Words(&["yes", "no"]);

impl Values {
    /// Returns whether a value is permitted.
    pub(super) fn contains(self, value: &str) -> bool {
        let counts = |low, high| value.parse::<u64>().is_ok_and(|count| (low..=high).contains(&count));
        match self {
            Self::Count(low, high) => counts(low, high),
            Self::Words(words) => words.contains(&value),
            Self::WordsOrCount(words, low, high) => words.contains(&value) || counts(low, high),
        }
    }
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(low, high) => write!(f, "{low} to {high}"),
            Self::Words(words) => f.write_str(&words.join("|")),
            Self::WordsOrCount(words, low, high) => write!(f, "{}|{low} to {high}", words.join("|")),
        }
    }
}

/// An invalid choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// It has no `=`.
    #[error("{0:?} has no value. Write it as NAME=VALUE, such as layers=24")]
    Shape(String),
    /// The workload has no such parameter.
    #[error("there is no parameter {name:?}. Parameters: {known}")]
    Name {
        /// The name as given.
        name: String,
        /// The names of all parameters.
        known: String,
    },
    /// The parameter does not permit the value.
    #[error("{name} cannot be {value:?}. Permitted: {values}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The value as given.
        value: String,
        /// The permitted values.
        values: String,
    },
}

/// The values of all parameters: as chosen, or else the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices(Vec<(&'static str, String)>);

impl Choices {
    /// Reads choices of the form `name=value`. If a name occurs more than once, the last counts.
    pub fn read(params: &[Param], given: &[String]) -> Result<Self, ChoiceError> {
        let mut chosen: Vec<(&'static str, String)> =
            params.iter().map(|param| (param.name, param.default.to_owned())).collect();
        for text in given {
            let (name, value) = text.split_once('=').ok_or_else(|| ChoiceError::Shape(text.clone()))?;
            let Some((param, slot)) = params.iter().zip(&mut chosen).find(|(param, _)| param.name == name) else {
                let names: Vec<&str> = params.iter().map(|param| param.name).collect();
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(ChoiceError::Name { name: name.to_owned(), known });
            };
            if !param.values.contains(value) {
                let values = param.values.to_string();
                return Err(ChoiceError::Value { name: param.name, value: value.to_owned(), values });
            }
            slot.1 = value.to_owned();
        }
        Ok(Self(chosen))
    }

    /// Returns all names and values, in the workload's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Returns a value as written; empty for an unknown name.
    pub(super) fn word(&self, name: &str) -> &str {
        self.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// Returns a value as a number; 0 for a word.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.word(name).parse().unwrap_or(0)
    }

    /// Returns whether a value is `yes`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.word(name) == "yes"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &[Param] = &[
        Param { name: "layers", default: "4", values: Values::Count(1, 96), help: "" },
        Param { name: "checkpoint", default: "none", values: Values::WordsOrCount(&["none", "full"], 1, 96), help: "" },
        Param { name: "pools", default: "no", values: YES_NO, help: "" },
    ];

    #[test]
    fn choices_are_read_or_refused_in_one_line() {
        let read = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
            Choices::read(PARAMS, &given).map_err(|error| error.to_string())
        };
        let choices = read(&["layers=7", "checkpoint=2", "layers=8"]).unwrap();
        assert_eq!((choices.count("layers"), choices.word("checkpoint"), choices.is("pools")), (8, "2", false));
        assert_eq!((choices.word("nothing"), choices.count("nothing")), ("", 0));
        let cases = [
            ("layers", "\"layers\" has no value. Write it as NAME=VALUE, such as layers=24"),
            ("depth=3", "there is no parameter \"depth\". Parameters: layers, checkpoint, pools"),
            ("layers=0", "layers cannot be \"0\". Permitted: 1 to 96"),
            ("layers=-1", "layers cannot be \"-1\". Permitted: 1 to 96"),
            ("checkpoint=all", "checkpoint cannot be \"all\". Permitted: none|full|1 to 96"),
            ("pools=", "pools cannot be \"\". Permitted: yes|no"),
        ];
        for (given, want) in cases {
            assert_eq!(read(&[given]), Err(want.to_owned()));
        }
    }
}
