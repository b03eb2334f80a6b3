//! A command line that can't be parsed, told in one line.

use clap::Command;
use clap::error::ErrorKind;

/// Returns why a command line can't be parsed, in one line, and where the options are explained. Help that was asked for is no
/// problem, and stays as it is.
pub(super) fn in_one_line(error: &clap::Error, program: &Command, first: Option<String>) -> Option<String> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return None;
    }
    let rendered = error.render().to_string();
    let told = rendered.lines().map(str::trim);
    let told = told.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    // Blank lines stand between sentences; what follows a colon is a list.
    let mut sentences = vec![String::new()];
    for line in told {
        match (line.strip_prefix("tip: "), sentences.last_mut()) {
            (Some(tip), _) => sentences.push(capitalized(tip)),
            (None, Some(last)) if line.is_empty() && !last.is_empty() => sentences.push(String::new()),
            (None, Some(last)) if last.is_empty() => line.clone_into(last),
            (None, Some(last)) => *last = format!("{last} {line}"),
            (None, None) => {}
        }
    }
    let mut told = String::new();
    for sentence in sentences.iter().filter(|sentence| !sentence.is_empty()) {
        let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence);
        told += &format!("{}. ", sentence.trim_end_matches('.'));
    }
    let command = first.filter(|name| program.find_subcommand(name).is_some());
    let command = command.map_or_else(String::new, |name| format!(" {name}"));
    Some(format!("{told}To see the options, type: vramscope{command} --help"))
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Arguments;
    use super::*;

    #[test]
    fn what_is_wrong_takes_one_line() {
        let end = "To see the options, type: vramscope budget --help";
        let cases: [(&[&str], &str); 6] = [
            (&["budget", "--sequence", "8"], "unexpected argument '--sequence' found. A similar argument exists: "),
            (
                &["budget", "--optimizer", "adamm"],
                "invalid value 'adamm' for '--optimizer <OPTIMIZER>' [possible values: adam, adam-fused, momentum, sgd, none]. \
                 A similar value exists: 'adam'. ",
            ),
            (
                &["budget", "--card", "T4", "--capacity", "1GiB"],
                "the argument '--card <NAME>' cannot be used with '--capacity <SIZE>'. ",
            ),
            (
                &["budget", "--lora-targets", "q"],
                "the following required arguments were not provided: --lora-rank <R>. ",
            ),
            (&["budget", "--seq"], "a value is required for '--seq <N>' but none was supplied. "),
            (&["budget", "gpt2", "gpt3"], "unexpected argument 'gpt3' found. "),
        ];
        for (words, want) in cases {
            let program = Arguments::command();
            let error = program.clone().try_get_matches_from([&["vramscope"], words].concat()).unwrap_err();
            let told = in_one_line(&error, &program, Some("budget".to_owned())).unwrap();
            assert!(told.starts_with(want) && told.ends_with(end) && !told.contains('\n'), "{told}");
        }
        let program = Arguments::command();
        let help = program.clone().try_get_matches_from(["vramscope", "budget", "--help"]).unwrap_err();
        assert_eq!(in_one_line(&help, &program, None), None);
    }
}
