//! Documents of sweeps that anybody may have written.

use shared::sweep::{Sweep, read, write};

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
    let runs = sweep.all_runs();
    assert!(!runs.is_empty());
    for run in runs {
        let line = sweep.command(&run.value);
        assert!(line.starts_with("vramscope run ") && !line.contains(char::is_control), "{line}");
        assert!(!run.failure().is_empty() && run.driver_calls() >= run.device_allocs);
    }
    assert!(!sweep.subject().is_empty() && !sweep.conditions().contains(char::is_control));
    assert_eq!(sweep.verdict().is_some(), sweep.largest.is_some());
    assert_eq!(read(write(&sweep).as_bytes()).as_ref(), Ok(&sweep));
    Some(sweep)
}
