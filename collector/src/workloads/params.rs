//! What can be chosen about a story: `name=value`.

/// One thing that can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// What it is called.
    pub name: &'static str,
    /// What it is when nothing is chosen.
    pub default: &'static str,
    /// What it can be.
    pub values: Values,
    /// What it does, in a few words.
    pub help: &'static str,
}

/// What a choice can be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A whole number between two others.
    Count(u64, u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words, or a whole number between two others.
    WordsOrCount(&'static [&'static str], u64, u64),
}

/// `yes` and `no`.
pub(super) const YES_NO: Values = Values::Words(&["yes", "no"]);

impl Values {
    fn holds(self, value: &str) -> bool {
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

/// A choice that can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// It has no `=`.
    #[error("{0:?} is no choice. Write name=value")]
    Shape(String),
    /// The story knows no such name.
    #[error("{name:?} can't be chosen here. What can: {known}")]
    Name {
        /// As it was given.
        name: String,
        /// What can be chosen.
        known: String,
    },
    /// It can't be that.
    #[error("{name} can't be {value:?}. It can be {values}")]
    Value {
        /// What was chosen.
        name: &'static str,
        /// As it was given.
        value: String,
        /// What it can be.
        values: String,
    },
}

/// What was chosen, and the defaults of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices(Vec<(&'static str, String)>);

impl Choices {
    /// Reads choices in the form `name=value`; the last of a name counts.
    pub fn read(params: &[Param], given: &[String]) -> Result<Self, ChoiceError> {
        let mut chosen: Vec<(&'static str, String)> =
            params.iter().map(|param| (param.name, param.default.to_owned())).collect();
        for text in given {
            let (name, value) = text.split_once('=').ok_or_else(|| ChoiceError::Shape(text.clone()))?;
            let Some((param, slot)) = params.iter().zip(&mut chosen).find(|(param, _)| param.name == name) else {
                let names: Vec<&str> = params.iter().map(|param| param.name).collect();
                let known = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                return Err(ChoiceError::Name { name: name.to_owned(), known });
            };
            if !param.values.holds(value) {
                let values = param.values.to_string();
                return Err(ChoiceError::Value { name: param.name, value: value.to_owned(), values });
            }
            slot.1 = value.to_owned();
        }
        Ok(Self(chosen))
    }

    /// All choices, in the story's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// A choice as it is written; nothing for a name that the story doesn't have.
    pub(super) fn word(&self, name: &str) -> &str {
        self.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// A choice as a number; 0 for a word.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.word(name).parse().unwrap_or(0)
    }

    /// Whether a choice is `yes`.
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
    fn choices_are_read_or_refused_in_a_line() {
        let read = |given: &[&str]| {
            let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
            Choices::read(PARAMS, &given).map_err(|error| error.to_string())
        };
        let choices = read(&["layers=7", "checkpoint=2", "layers=8"]).unwrap();
        assert_eq!((choices.count("layers"), choices.word("checkpoint"), choices.is("pools")), (8, "2", false));
        assert_eq!((choices.word("nothing"), choices.count("nothing")), ("", 0));
        let cases = [
            ("layers", "\"layers\" is no choice. Write name=value"),
            ("depth=3", "\"depth\" can't be chosen here. What can: layers, checkpoint, pools"),
            ("layers=0", "layers can't be \"0\". It can be 1 to 96"),
            ("layers=-1", "layers can't be \"-1\". It can be 1 to 96"),
            ("checkpoint=all", "checkpoint can't be \"all\". It can be none|full|1 to 96"),
            ("pools=", "pools can't be \"\". It can be yes|no"),
        ];
        for (given, want) in cases {
            assert_eq!(read(&[given]), Err(want.to_owned()));
        }
    }

    #[test]
    fn every_default_is_a_choice() {
        for story in crate::workloads::Story::ALL {
            for param in story.params {
                assert!(param.values.holds(param.default), "{} {}", story.name, param.name);
            }
        }
    }
}
