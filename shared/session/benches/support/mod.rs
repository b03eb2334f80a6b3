//! What several benches need.

use std::io::Read;

use format::import::{Imported, Importer};
use trace::limits::ImportLimits;

/// Returns the files that a bench was started with.
pub(crate) fn files() -> impl Iterator<Item = String> {
    std::env::args().skip(1).filter(|argument| argument != "--bench")
}

/// Imports a file piece by piece.
pub(crate) fn import(path: &str) -> Result<Imported, Box<dyn std::error::Error>> {
    let mut file = std::fs::File::open(path)?;
    let mut piece = vec![0; 1 << 20];
    let mut importer = Importer::new(ImportLimits::default());
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok(importer.finish()?);
        }
        importer.push(&piece[..count])?;
    }
}
