//! A workload and its parameters as they are typed, with a suggestion for a name that is almost one.

use std::ffi::OsStr;
use std::path::Path;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};
use whatif::CARDS;

use super::suggestion::did_you_mean;
use crate::workloads::{ChoiceError, Choices, Values, Workload};

/// Names that a shell offers for an argument. Others are taken as well, and refused later, with a suggestion.
#[derive(Clone, Debug)]
pub(super) struct Offered(Vec<&'static str>);

impl Offered {
    /// Offers the workloads.
    pub(super) fn workloads() -> Self {
        Self(Workload::ALL.iter().map(|workload| workload.name).collect())
    }

    /// Offers the models whose shape is known.
    pub(super) fn models() -> Self {
        Self(super::budget::named_models())
    }

    /// Offers the cards.
    pub(super) fn cards() -> Self {
        Self(CARDS.iter().map(|card| card.name).collect())
    }
}

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// Returns the workload of a name.
pub(super) fn workload(name: &str) -> Result<&'static Workload, String> {
    if let Some(workload) = Workload::named(name) {
        return Ok(workload);
    }
    let known = || Workload::ALL.iter().map(|workload| workload.name);
    let path = Path::new(name);
    if path.extension().is_some_and(|ending| ending == "py") {
        return Err(script(name));
    }
    if path.is_file() {
        return Err(format!(
            "{name} is a file, and this runs only Vramscope's own workloads. To see what it has, type: vramscope report \
             {name}"
        ));
    }
    let meant = did_you_mean(name, known());
    Err(format!("There is no workload {name:?}.{meant} Name one of: {}.", known().collect::<Vec<_>>().join(", ")))
}

/// Returns what to write instead, if an unknown option has the name of a workload's parameter.
pub(super) fn as_option(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = option.strip_prefix("--")?.split('=').next()?;
    let mut params = Workload::ALL.iter().flat_map(|workload| workload.params);
    let param = params.find(|param| param.name == name)?;
    Some(format!(
        "{option} is not an option: {name} is a parameter of a workload. Write it without dashes, such as {name}={}.",
        param.default
    ))
}

/// Returns the message for a command line that can't be parsed, if it is `run` with a Python script.
pub(super) fn as_script(mut words: impl Iterator<Item = String>) -> Option<String> {
    let name = words.nth(1).filter(|word| word == "run").and_then(|_| words.next())?;
    Path::new(&name).extension().is_some_and(|ending| ending == "py").then(|| script(&name))
}

fn script(name: &str) -> String {
    format!(
        "{name} is a Python script, but `run` runs only Vramscope's own workloads. To record a script, type: vramscope watch \
         {name}"
    )
}

/// Reads the parameters of a workload.
pub(super) fn choices(workload: &Workload, given: &[String]) -> Result<Choices, String> {
    let choices = Choices::read(workload.params, given);
    let choices = choices.map_err(|error| format!("{}: {error}.{}", workload.name, meant(workload, &error)))?;
    workload.check(&choices).map_err(|error| format!("{}: {error}.", workload.name))?;
    Ok(choices)
}

/// Returns what may have been meant by an invalid choice.
fn meant(workload: &Workload, error: &ChoiceError) -> String {
    match error {
        ChoiceError::Name { name, .. } => did_you_mean(name, workload.params.iter().map(|param| param.name)),
        ChoiceError::Value { name, value, .. } => {
            let param = workload.params.iter().find(|param| param.name == *name);
            match param.map(|param| param.values) {
                Some(Values::Words(words) | Values::WordsOrCount(words, ..)) => {
                    did_you_mean(value, words.iter().copied())
                }
                _ => String::new(),
            }
        }
        ChoiceError::Shape(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_gets_a_suggestion_and_a_script_its_command() {
        let workload_error = |name: &str| workload(name).map(|workload| workload.name).unwrap_err();
        assert!(workload_error("transfomer").contains("\"transfomer\". Did you mean transformer? Name one of: "));
        assert!(workload_error("x").starts_with("There is no workload \"x\". Name one of: "));
        assert!(workload_error("train.py").ends_with("type: vramscope watch train.py"));
        assert!(workload_error("Cargo.toml").ends_with("type: vramscope report Cargo.toml"));
        let transformer = workload("transformer").unwrap();
        let choice_error = |text: &str| choices(transformer, &[text.to_owned()]).map(|_| ()).unwrap_err();
        let error = choice_error("bacth=4");
        assert!(error.starts_with("transformer: there is no parameter \"bacth\"") && error.ends_with("mean batch?"));
        assert!(choice_error("checkpoint=ful").ends_with("Did you mean full?"));
        assert!(choice_error("batch=no").ends_with('.'));
    }
}
