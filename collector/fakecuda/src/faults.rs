//! Counts calls by symbol, and makes calls fail on demand.

use std::collections::HashMap;

use crate::code::{Code, Outcome};

/// Calls of one symbol that fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) symbol: String,
    /// How many calls succeed first.
    pub(crate) after: u32,
    /// How many calls then fail.
    pub(crate) times: u32,
    /// The code that they return.
    pub(crate) code: u32,
}

impl Fault {
    /// Parses `symbol:after:times:code`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(':');
        let symbol = parts.next().filter(|symbol| !symbol.is_empty())?.to_owned();
        let mut number = || parts.next()?.parse().ok();
        Some(Self { symbol, after: number()?, times: number()?, code: number()? })
    }
}

/// Counts of calls, and planned failures.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    calls: HashMap<&'static str, u64>,
    planned: Vec<Fault>,
}

impl Faults {
    pub(crate) fn plan(&mut self, fault: Fault) {
        self.planned.push(fault);
    }

    /// Counts a call, and returns its planned error.
    pub(crate) fn call(&mut self, symbol: &'static str) -> Outcome {
        *self.calls.entry(symbol).or_default() += 1;
        for fault in self.planned.iter_mut().filter(|fault| fault.symbol == symbol) {
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.times > 0 {
                fault.times -= 1;
                return Err(Code(fault.code));
            }
        }
        Ok(())
    }

    /// Returns the number of calls of a symbol.
    pub(crate) fn calls(&self, symbol: &str) -> u64 {
        self.calls.get(symbol).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_fail_as_planned() {
        let mut faults = Faults::default();
        faults.plan(Fault::parse("cuMemCreate:1:2:700").unwrap());
        let outcomes: Vec<_> = (0..4).map(|_| faults.call("cuMemCreate").is_ok()).collect();
        assert_eq!(outcomes, [true, false, false, true]);
        assert_eq!(faults.call("cuMemMap"), Ok(()));
        assert_eq!((faults.calls("cuMemCreate"), faults.calls("cuInit")), (4, 0));
        for text in ["", ":1:1:1", "cuInit", "cuInit:1:1", "cuInit:a:1:1"] {
            assert_eq!(Fault::parse(text), None, "{text}");
        }
    }
}
