//! The options that say whose code a frame is.

use clap::Args;
use shared::analysis::folding::Overrides;

/// Rules that count before those that Vramscope has.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Folding {
    /// Treat files with this part of a path as your own code, such as site-packages/mylib. May be given several times
    #[arg(long, value_name = "PATH-PART")]
    mine: Vec<String>,
    /// Treat files with this part of a path as a library, so that the line that called it is shown
    #[arg(long, value_name = "PATH-PART")]
    library: Vec<String>,
}

impl Folding {
    /// Returns the rules, or what is wrong with them as a sentence.
    pub(super) fn overrides(&self) -> Result<Overrides, String> {
        let mut overrides = Overrides::default();
        self.mine.iter().try_for_each(|part| overrides.add_mine(part))?;
        self.library.iter().try_for_each(|part| overrides.add_library(part))?;
        Ok(overrides)
    }
}
