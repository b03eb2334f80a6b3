//! Values that are given for those that no kernel computes.

use std::str::FromStr;

use serde::Serialize;

/// The value that a line reads: `train.py:62=0.5`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Given {
    /// The end of the path of the line's file.
    file: String,
    line: u32,
    /// A number; true is 1, false is 0. Where a mask selects elements, it is the share that it selects.
    value: f64,
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (place, value) = text.rsplit_once('=')?;
            let (file, line) = place.rsplit_once(':')?;
            let value = match value.trim().to_ascii_lowercase().as_str() {
                "true" => 1.0,
                "false" => 0.0,
                number => number.parse().ok().filter(|number: &f64| number.is_finite())?,
            };
            (!file.is_empty()).then_some(Self { file: file.to_owned(), line: line.parse().ok()?, value })
        };
        read().ok_or_else(|| "write a line and what it reads, such as train.py:62=0.5 or train.py:62=true".to_owned())
    }
}

/// Returns values as the program's Python reads them.
pub(super) fn written(given: &[Given]) -> Option<String> {
    (!given.is_empty()).then(|| serde_json::to_string(given).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_what_it_reads() {
        for (text, want) in [
            ("train.py:62=0.5", Some(("train.py", 62, 0.5))),
            ("src/a=b.py:1=True", Some(("src/a=b.py", 1, 1.0))),
            ("C:\\a.py:7=false", Some(("C:\\a.py", 7, 0.0))),
            ("a.py=1", None),
            ("a.py:b=1", None),
            ("a.py:3=nan", None),
            (":3=1", None),
        ] {
            let read = text.parse::<Given>().ok();
            let read = read.as_ref().map(|given| (given.file.as_str(), given.line, given.value));
            assert_eq!(read, want, "{text}");
        }
        let given = "a.py:3=2".parse().unwrap();
        assert_eq!(written(&[given]).as_deref(), Some(r#"[{"file":"a.py","line":3,"value":2.0}]"#));
        assert_eq!(written(&[]), None);
    }
}
