//! The log of `vramscope serve`: which events are written to standard error, and in which format.

use std::fmt::{self, Debug};
use std::io::{self, IsTerminal};

use anstyle::Style;
use clap::{Args, ValueEnum};
use trace::text::escaped;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::streams::Sealed;

use crate::access::audit::TARGET as AUDIT;

/// The variable that sets the level where `--log` is not given.
const LEVEL_VARIABLE: &str = "VRAMSCOPE_LOG";
/// The variable that sets the format where `--log-format` is not given.
const FORMAT_VARIABLE: &str = "VRAMSCOPE_LOG_FORMAT";
/// The level where none is chosen.
const DEFAULT_LEVEL: &str = "info";

/// The options that control the log.
#[derive(Args, Debug)]
pub(super) struct LogOptions {
    /// Log level: off, error, warn, info, debug or trace; or filter directives such as `warn,vramscope=debug`
    /// [default: info, or the variable VRAMSCOPE_LOG]
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// Log format [default: text, or the variable VRAMSCOPE_LOG_FORMAT]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
}

/// How an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// One line of text for each event
    Text,
    /// One JSON object for each event
    Json,
}

impl LogOptions {
    /// Writes the events of this process to standard error from now on.
    ///
    /// Returns a sentence for people if the level or the format is invalid.
    pub(super) fn install(&self) -> Result<(), String> {
        let filter = self.filter()?;
        let builder = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE);
        let installed = match self.format()? {
            LogFormat::Text => {
                let fields = debug_fn(write_field).delimited(" ");
                let builder = builder.with_writer(io::stderr).with_ansi(is_colored()).fmt_fields(fields);
                builder.finish().with(filter).try_init()
            }
            LogFormat::Json => {
                let builder = builder.with_writer(|| Sealed(io::stderr()));
                builder.json().flatten_event(true).with_span_list(false).finish().with(filter).try_init()
            }
        };
        installed.map_err(|error| format!("The log could not be set up: {error}."))
    }

    fn filter(&self) -> Result<Targets, String> {
        let (source, text) = match (&self.log, variable(LEVEL_VARIABLE)) {
            (Some(text), _) => ("--log", text.clone()),
            (None, Some(text)) => (LEVEL_VARIABLE, text),
            (None, None) => ("--log", DEFAULT_LEVEL.to_owned()),
        };
        filter(&text).ok_or_else(|| {
            format!(
                "{source} {text:?} is not a log level. Use off, error, warn, info, debug or trace, or directives such \
                 as warn,vramscope=debug."
            )
        })
    }

    fn format(&self) -> Result<LogFormat, String> {
        match (self.log_format, variable(FORMAT_VARIABLE)) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(LogFormat::Text),
            (None, Some(text)) => LogFormat::from_str(&text, true)
                .map_err(|_| format!("{FORMAT_VARIABLE} {text:?} is not a log format. Use text or json.")),
        }
    }
}

/// Writes a field of an event in one line, with what a terminal would obey as text: values can be anybody's.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let value = format!("{value:?}");
    let value = escaped(&value);
    match field.name() {
        "message" => write!(out, "{value}"),
        // What the crate `log` adds about itself.
        name if name.starts_with("log.") => Ok(()),
        name if out.has_ansi_escapes() => {
            let (name_style, dimmed) = (Style::new().italic(), Style::new().dimmed());
            write!(out, "{name_style}{name}{name_style:#}{dimmed}={dimmed:#}{value}")
        }
        name => write!(out, "{name}={value}"),
    }
}

/// Reads a filter. A level alone applies to this program and its audit log; its libraries are limited to warnings.
fn filter(text: &str) -> Option<Targets> {
    let text = text.trim();
    if text.is_empty() {
        // `LevelFilter` would read it as `error`.
        return None;
    }
    if let Ok(level) = text.parse::<LevelFilter>() {
        let others = level.min(LevelFilter::WARN);
        return Some(Targets::new().with_default(others).with_targets([("vramscope", level), (AUDIT, level)]));
    }
    // `Targets` would read a misspelt level as the name of a module.
    text.contains('=').then(|| text.parse().ok()).flatten()
}

/// The value of an environment variable, unless it is empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Whether a person sees the log and wants colors (<https://no-color.org>).
fn is_colored() -> bool {
    io::stderr().is_terminal() && variable("NO_COLOR").is_none()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Collects the log in memory.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_value_is_text_in_the_line_of_its_event() {
        for (is_colored, want) in [
            (
                false,
                "bad \\u{1b}[2J\\u{a}INFO forged\\u{202e} error=\\u{1b}[2J\\u{a}INFO forged\\u{202e} name=\"a\" n=1\n",
            ),
            (true, "bad \\u{1b}[2J\\u{a}INFO forged\\u{202e} \x1b[3merror\x1b[0m\x1b[2m=\x1b[0m\\u{1b}[2J"),
        ] {
            let log = Log::default();
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_writer(move || writer.clone())
                .with_ansi(is_colored)
                .fmt_fields(debug_fn(write_field).delimited(" "))
                .finish();
            let hostile = "\x1b[2J\nINFO forged\u{202e}";
            tracing::subscriber::with_default(subscriber, || {
                tracing::error!(error = %hostile, name = "a", n = 1, "bad {hostile}");
            });
            let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
            assert!(text.contains(want) && text.lines().count() == 1, "{text:?}");
        }
    }

    #[test]
    fn levels_and_directives_are_accepted_and_misspelt_ones_are_not() {
        for (text, want) in [
            ("info", Some("vramscope=info,audit=info,warn")),
            (" DEBUG ", Some("vramscope=debug,audit=debug,warn")),
            ("error", Some("vramscope=error,audit=error,error")),
            ("off", Some("vramscope=off,audit=off,off")),
            ("vramscope::request=debug", Some("vramscope::request=debug")),
            ("warn,vramscope=trace", Some("vramscope=trace,warn")),
            ("infoo", None),
            ("vramscope=loud", None),
            ("", None),
        ] {
            assert_eq!(filter(text).map(|filter| filter.to_string()).as_deref(), want, "{text:?}");
        }
    }
}
