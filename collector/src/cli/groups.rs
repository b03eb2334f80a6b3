//! The help of the program: its commands in groups, and short.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args, Command};

use super::serve::Serve;

/// How the help of the program is laid out. What `{before-help}` stands for is made by [`grouped`].
pub(super) const TEMPLATE: &str =
    "{about}\n\n{usage-heading} {usage}\n\n{before-help}Arguments:\n{positionals}\n\nOptions:\n{options}{after-help}";

/// The commands by what they are for. `help` is of `clap`.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Record", &["watch", "run", "replay"]),
    ("Understand", &["open", "top", "doctor", "report", "diff", "check", "baseline", "bisect", "curves"]),
    ("Plan", &["predict", "plan", "whatif", "tune", "budget", "sweep", "bench-allocators"]),
    ("Share", &["push", "pull", "unshare", "export", "strip"]),
    ("Serve", &["serve", "ls", "stop", "token", "store"]),
    ("More", &["completions", "man", "help"]),
];

/// Returns a command whose `--help` is as short as its `-h`, and those below it likewise. The manual pages explain every value.
fn short(command: Command) -> Command {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::HelpShort)
        .help("Print help")
        .help_heading(Resettable::Reset);
    command.disable_help_flag(true).arg(help).mut_subcommands(short)
}

/// Returns the program with its commands listed in groups, and with short help texts.
pub(super) fn grouped(program: Command) -> Command {
    let program = short(program);
    let mut list = String::new();
    for (title, names) in GROUPS {
        list += &format!("{title}:\n");
        for name in names {
            let about = program.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            list += &format!("  {name:<18}{}\n", about.unwrap_or_else(|| "Print the help of a command".to_owned()));
        }
        list.push('\n');
    }
    program.before_help(list)
}

/// Returns what to write instead, if an option of `serve` was given to the program itself. `first` is the first argument.
pub(super) fn option_of_serve(error: &clap::Error, first: Option<OsString>) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = option.strip_prefix("--")?.split('=').next()?;
    let serve = Serve::augment_args(Command::new("serve"));
    let is_known = serve.get_arguments().any(|known| known.get_long() == Some(name));
    let is_command = first.is_some_and(|first| GROUPS.iter().any(|(_, names)| names.iter().any(|name| first == *name)));
    (is_known && !is_command).then(|| format!("--{name} is an option of serve. Write: vramscope serve --{name} …"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Arguments;
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let program = Arguments::command();
        let mut known: Vec<&str> = program.get_subcommands().map(Command::get_name).chain(["help"]).collect();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn the_help_fits_a_screen_and_has_no_option_of_serve() {
        let help = grouped(Arguments::command()).render_help().to_string();
        assert!(help.lines().count() < 60 && !help.contains("--listen"), "{help}");
        // A command is one line on a usual terminal.
        let list = help.lines().skip_while(|line| *line != "Record:").take_while(|line| *line != "Arguments:");
        assert!(list.clone().count() > 20 && list.into_iter().all(|line| line.chars().count() <= 80), "{help}");
    }
}
