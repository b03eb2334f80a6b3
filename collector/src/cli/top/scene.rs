//! What `top` draws.

use report::{DeviceReport, DiagnosisReport, LineReport};

use crate::remote::{DeviceStats, Listed};

/// The lines of code that are drawn.
const LINES: usize = 8;

/// What is drawn at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    /// The server's address.
    pub(super) server: String,
    /// The session that is shown; `None` until one is there.
    pub(super) session: Option<Listed>,
    /// Its number among those that can be shown, from 1, and their number.
    pub(super) place: (usize, usize),
    /// Its memory over time.
    pub(super) stats: Vec<DeviceStats>,
    /// What its trace says of it.
    pub(super) held: Vec<Held>,
    /// Why something of it is missing, or the server does not answer; empty if all is well.
    pub(super) trouble: String,
}

/// What the trace of a device says: the lines that held its peak, and what is wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) device: i64,
    /// The requested bytes at the peak.
    pub(super) peak: u64,
    /// The lines that held them, the largest first.
    pub(super) lines: Vec<LineReport>,
    /// The verdict and the findings, in a few lines.
    pub(super) brief: String,
}

impl From<DeviceReport> for Held {
    fn from(report: DeviceReport) -> Self {
        let DeviceReport { device, peak, mut peak_lines, diagnosis, .. } = report;
        peak_lines.truncate(LINES);
        Self { device, peak: peak.requested_bytes, lines: peak_lines, brief: DiagnosisReport::brief(&diagnosis) }
    }
}
