//! The command line: what it prints, where, and how it exits.

use anyhow::Result;
use tests::program;

#[test]
fn help_names_every_command() -> Result<()> {
    let output = program::run(&["--help"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for word in ["serve", "report", "--listen", "127.0.0.1:7070"] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    Ok(())
}
