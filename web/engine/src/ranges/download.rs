//! The download of a shared trace: part after part, resumed where it broke off.

use std::rc::Rc;

use format::import::Importer;
use protocol::message::{FromWorker, Stage};
use protocol::server::AWAY;
use session::preview;
use trace::limits::ImportLimits;

use super::link::{Link, Trouble, changed};
use super::{arrived, complete, first_picture_drawn, report, rest, show, stopped};
use crate::entry::{REPORT_EVERY_MS, build, keep, now, post, rate};
use crate::reader::Bytes;

/// Bytes of the first request: all of the first preview of most traces.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes up to which a longer first preview is read before a picture is shown.
const MOST_FIRST_BYTES: u64 = 2 << 20;
/// Bytes of each further request.
const PART_BYTES: u64 = 4 << 20;
/// Bytes of the trace's beginning that are kept to find previews in.
const MOST_HEAD_BYTES: usize = 64 << 20;
/// Attempts without a byte, one after another, after which the download stops.
const ATTEMPTS: u32 = 5;
/// Milliseconds before the second attempt; each further pause is twice as long.
const PAUSE_MS: i32 = 500;

/// A download, and what has been read of it.
struct Download {
    link: Rc<Link>,
    importer: Importer,
    /// Bytes that have been read.
    at: u64,
    /// The length of the trace, once it is known.
    total: Option<u64>,
    /// The first bytes, while there may be previews among those that follow.
    head: Option<Vec<u8>>,
    is_shown: bool,
    begun_ms: f64,
    reported_ms: f64,
}

/// Opens a trace and downloads it. The error is a sentence for the user, if nothing is shown.
pub async fn run(link: Rc<Link>) -> Result<(), String> {
    let mut download = Download {
        link,
        importer: Importer::new(ImportLimits::default()),
        at: 0,
        total: None,
        head: Some(Vec::new()),
        is_shown: false,
        begun_ms: now(),
        // The first bytes are reported at once.
        reported_ms: f64::NEG_INFINITY,
    };
    download.to(FIRST_BYTES).await.map_err(sentence)?;
    download.show().await.map_err(sentence)?;
    while download.total.is_none_or(|total| download.at < total) {
        match download.to(download.at.saturating_add(PART_BYTES)).await {
            Ok(()) => {}
            Err(trouble) if download.is_shown => stopped(sentence(trouble)).await,
            Err(trouble) => return Err(sentence(trouble)),
        }
    }
    // Indexing takes a moment, in which no question is answered.
    rest(0).await;
    let Download { importer, is_shown, .. } = download;
    match build(importer, &mut |_| {}) {
        Ok(session) if is_shown => complete(session),
        Ok(session) => post(&FromWorker::Loaded(keep(session))),
        // It can't be read, however often it is tried.
        Err(message) if is_shown => stopped(message).await,
        Err(message) => return Err(message),
    }
    Ok(())
}

fn sentence(trouble: Trouble) -> String {
    match trouble {
        Trouble::Away => AWAY.to_owned(),
        Trouble::Refused(sentence) => sentence,
    }
}

impl Download {
    /// Reads on up to this byte, or to the end. What was read stays if it fails.
    async fn to(&mut self, end: u64) -> Result<(), Trouble> {
        let mut failures = 0;
        loop {
            let end = self.total.map_or(end, |total| end.min(total));
            if self.at >= end {
                return Ok(());
            }
            let before = self.at;
            let outcome = self.part(end).await;
            if self.at > before {
                failures = 0;
            }
            match outcome {
                Ok(()) if self.at > before => continue,
                Ok(()) | Err(Trouble::Away) => failures += 1,
                Err(refused) => return Err(refused),
            }
            if failures >= ATTEMPTS {
                return Err(Trouble::Away);
            }
            rest(PAUSE_MS << (failures - 1)).await;
        }
    }

    /// Makes one request for the bytes up to `end`, and reads what arrives.
    async fn part(&mut self, end: u64) -> Result<(), Trouble> {
        let part = self.link.part(&(self.at..end)).await?;
        if self.at > 0 && (!part.is_partial || part.total != self.total) {
            return Err(changed());
        }
        self.total = part.total;
        let (mut stream, mut buffer) = (Bytes::of_stream(&part.stream, 0), Vec::new());
        while stream.next(&mut buffer).await.map_err(|_| Trouble::Away)? {
            self.read(&buffer)?;
        }
        if !part.is_partial {
            // The server sends no parts: this was all.
            self.total = Some(self.at);
        }
        Ok(())
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.importer.push(bytes).map_err(|error| Trouble::Refused(error.to_string()))?;
        self.at += bytes.len() as u64;
        if let Some(head) = &mut self.head {
            head.extend_from_slice(bytes);
        }
        let is_shown = self.is_shown;
        // Larger than all previews that a writer makes.
        self.head.take_if(|head| head.len() > MOST_HEAD_BYTES || is_shown && arrived(head));
        let time = now();
        if time - self.reported_ms >= REPORT_EVERY_MS {
            self.reported_ms = time;
            if self.is_shown {
                report(self.at);
            } else {
                let bytes_per_second = rate(self.at, time - self.begun_ms);
                let (done, total) = (self.at, self.total.map_or(0, |total| total.max(self.at)));
                post(&FromWorker::Progress { stage: Stage::Reading, done, total, bytes_per_second });
            }
        }
        Ok(())
    }

    /// Shows the first preview, if the trace begins with one and there is more to come.
    async fn show(&mut self) -> Result<(), Trouble> {
        let range = self.head.as_deref().and_then(format::preview_range);
        let end = range.map_or(u64::MAX, |range| range.end as u64);
        if end <= MOST_FIRST_BYTES {
            self.to(end).await?;
        }
        let preview = self.head.as_deref().and_then(preview::read);
        let total = self.total.filter(|total| self.at < *total);
        let (Some(preview), Some(total), Some(head)) = (preview, total, &self.head) else {
            self.head = None;
            return Ok(());
        };
        show(preview, Rc::clone(&self.link), self.at, total);
        self.is_shown = true;
        arrived(head);
        first_picture_drawn().await;
        Ok(())
    }
}
