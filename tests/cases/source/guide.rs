//! The contributor's guide, the security policy and the READMEs name files that exist.

use std::fs;

use anyhow::{Result, ensure};
use tests::{files_in, workspace};

const DOCUMENTS: [&str; 11] = [
    ".github/CONTRIBUTING.md",
    ".github/SECURITY.md",
    "shared/README.md",
    "shared/whatif/src/TRUTH.md",
    "shared/whatif/src/WHATIF.md",
    "collector/README.md",
    "web/README.md",
    "tests/README.md",
    "tests/measure/README.md",
    "tests/differential/README.md",
    "tests/truth/README.md",
];

/// The folders that a path from the top of the repository can begin with.
const TOP: [&str; 5] = [".github/", "collector/", "shared/", "tests/", "web/"];

/// Returns the paths in backticks. `NAME` stands for a name that the reader chooses, so a path with it is not one.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    // Fences come first, so that their three backticks don't open or close a span.
    let prose = text.split("```").step_by(2);
    let spans = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
    spans.filter(|span| {
        TOP.iter().any(|top| span.starts_with(top))
            && !span.contains("NAME")
            && span.chars().all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c))
    })
}

#[test]
fn every_file_that_a_document_names_exists() -> Result<()> {
    let mut missing = Vec::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(workspace(document))?;
        let absent = paths(&text).filter(|path| !workspace(path).exists());
        missing.extend(absent.map(|path| format!("{document}: {path}")));
    }
    ensure!(missing.is_empty(), "Files that documents name and that don't exist:\n{}", missing.join("\n"));
    Ok(())
}

/// What names the view *Allocations*, which has a question and two settings.
const NAMES_OF_A_VIEW: [&str; 4] = ["Tab::Allocations", "AllocationsQuery", "AllocationOrder", "mod allocations;"];

#[test]
fn a_view_with_a_question_and_a_setting_takes_ten_files() -> Result<()> {
    let guide = fs::read_to_string(workspace(".github/CONTRIBUTING.md"))?;
    let part = guide.split("## ").find(|part| part.starts_with("Add a view")).unwrap_or_default();
    let rows = part.lines().filter(|line| line.starts_with("| `")).count();
    ensure!((1..=10).contains(&rows), "the guide names {rows} files");

    let folders = ["web/src", "shared/query/src", "shared/session/src"];
    let files = folders.iter().map(|folder| files_in(&workspace(folder))).collect::<Result<Vec<_>>>()?.concat();
    ensure!(files.len() > 300, "{} source files", files.len());
    let names_it = |text: &str| NAMES_OF_A_VIEW.iter().any(|name| text.contains(name));
    let of_view: Vec<_> =
        files.iter().filter(|file| fs::read_to_string(file).is_ok_and(|text| names_it(&text))).collect();
    ensure!(of_view.len() <= 10, "{of_view:#?}");
    Ok(())
}

#[test]
fn paths_are_found_in_backticks() {
    let text =
        "`shared/trace/src/lib.rs`, `tests/NAME.rs`, `tests/run lint`, `Tab::ALL`\n```\n`web/a`\n```\n`web/static`";
    assert_eq!(paths(text).collect::<Vec<_>>(), ["shared/trace/src/lib.rs", "web/static"]);
}
