//! Documents of sweeps that anybody may have written.

use format::sweep::{Sweep, read};

/// Reads a document, and checks what holds for any bytes: an error is a sentence of limited length, and what is accepted can
/// be shown, and is the same after it is written again.
pub(crate) fn read_and_show(data: &[u8]) -> Option<Sweep> {
    let sweep = match read(data) {
        Ok(sweep) => sweep,
        Err(error) => {
            let said = error.to_string();
            assert!(said.len() < 200 && said.ends_with('.') && !said.contains('\n'), "{said}");
            return None;
        }
    };
    let shown = sweep.shown();
    for row in &shown.rows {
        let line = &row.command;
        assert!(line.starts_with("vramscope run ") && !line.contains(char::is_control), "{line}");
        assert!(!row.failure.is_empty() && row.at.is_finite());
    }
    assert!(shown.rows.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert!((shown.first as usize) < shown.rows.len());
    assert!(shown.proof.is_none_or(|(row, _)| (row as usize) < shown.rows.len()));
    assert!(![shown.verdict, shown.subject, shown.conditions, shown.words].iter().any(String::is_empty));
    assert_eq!(sweep.verdict().is_some(), sweep.largest.is_some());
    Some(sweep)
}
