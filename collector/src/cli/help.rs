//! `vramscope completions` and `vramscope man`: what a shell and `man` know about the program.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use super::output::{Overwrite, cannot_be_written};
use super::{one_line, print, refuse};

/// The name of the program.
const NAME: &str = "vramscope";

/// The options of `completions`.
#[derive(Args, Debug)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    /// Prints the script for a shell.
    pub(super) fn run(self, mut program: Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, NAME, &mut script);
        print(|out| out.write_all(&script))
    }
}

/// The options of `man`.
#[derive(Args, Debug)]
pub(super) struct Man {
    /// The command [default: the program itself]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Vec<String>,
    /// Write the pages of the program and of all its commands to this folder, such as ~/.local/share/man/man1
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
}

impl Man {
    /// Prints a page, or writes all.
    pub(super) fn run(self, mut program: Command) -> ExitCode {
        program.build();
        match &self.out {
            Some(_) => match self.write_all(&program) {
                Ok(line) => print(|out| writeln!(out, "{line}")),
                Err(sentence) => refuse(&sentence),
            },
            None => match page(&program, &self.command) {
                Ok(page) => print(|out| out.write_all(&page)),
                Err(sentence) => refuse(&sentence),
            },
        }
    }

    /// Writes all pages. Returns what is said about it.
    fn write_all(&self, program: &Command) -> Result<String, String> {
        let Some(folder) = &self.out else { return Ok(String::new()) };
        let mut pages = Vec::new();
        collect(program, &mut pages);
        let place = |name: &str| folder.join(format!("{name}.1"));
        fs::create_dir_all(folder).map_err(|error| cannot_be_written(folder, &error))?;
        // Either all of them are written, or none.
        pages.iter().try_for_each(|(name, _)| self.overwrite.check(&place(name)))?;
        for (name, command) in &pages {
            let page = render(command).map_err(|error| format!("The page {name} can't be made: {error}."))?;
            self.overwrite.write(&place(name), |file| file.write_all(&page))?;
        }
        Ok(format!("Wrote {} pages to {}. To read one: man {NAME}", pages.len(), one_line(&folder.to_string_lossy())))
    }
}

/// Collects a command and those below it that are not hidden, each with the name of its page: `vramscope-token-new`.
fn collect<'a>(command: &'a Command, pages: &mut Vec<(String, &'a Command)>) {
    pages.push((name_of(command).to_owned(), command));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        collect(below, pages);
    }
}

/// Returns the name of a command's page.
fn name_of(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Returns the page of a command: `token new`.
fn page(program: &Command, names: &[String]) -> Result<Vec<u8>, String> {
    let mut command = program;
    for name in names {
        let known = || command.get_subcommands().map(Command::get_name);
        command = command.find_subcommand(name).ok_or_else(|| {
            let meant = super::suggestion::did_you_mean(name, known());
            format!("There is no command {name:?}.{meant} To see all, type: {NAME} --help")
        })?;
    }
    render(command).map_err(|error| format!("The page can't be made: {error}."))
}

fn render(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let version = concat!("vramscope ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.clone()).title(name_of(command)).source(version).render(&mut page)?;
    Ok(page)
}
