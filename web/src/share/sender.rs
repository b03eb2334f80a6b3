//! Sends a copy to the server in parts. After the network was cut, it continues with what the server doesn't have yet.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{AbortController, Blob};
use yew::Callback;

use super::pace::Pace;
use crate::browser::{clock_ms, window};
use crate::source::shares::{self, Begun, Shared, Terms, Trouble};

/// How far an upload is.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Parts are being sent.
    Sending {
        /// Bytes that the server has.
        sent: u64,
        /// All bytes.
        total: u64,
        /// The rate; 0 while it is unknown.
        bytes_per_second: f64,
        /// Seconds until the next attempt, after one failed, and why it failed.
        waiting: Option<(u32, String)>,
    },
    /// It stopped, and can be continued.
    Stopped(Trouble),
    /// The link exists.
    Done {
        /// The link.
        shared: Shared,
        /// The token that deletes it.
        delete_token: String,
    },
}

/// An upload.
pub struct Sender {
    copy: Blob,
    terms: Terms,
    begun: RefCell<Option<Begun>>,
    abort: RefCell<Option<AbortController>>,
    is_cancelled: Cell<bool>,
    report: Callback<Progress>,
}

impl Sender {
    /// Creates an upload. Its progress goes to `report`.
    pub fn new(copy: Blob, terms: Terms, report: Callback<Progress>) -> Rc<Self> {
        let (begun, abort, is_cancelled) = (RefCell::default(), RefCell::default(), Cell::new(false));
        Rc::new(Self { copy, terms, begun, abort, is_cancelled, report })
    }

    /// Begins the upload, or continues one that stopped.
    pub fn start(self: &Rc<Self>) {
        self.tell(0, 0.0, None);
        let sender = Rc::clone(self);
        spawn_local(async move {
            let progress = match sender.run().await {
                Ok(shared) => {
                    let begun = sender.begun.take();
                    let delete_token = begun.map(|begun| begun.delete_token).unwrap_or_default();
                    Progress::Done { shared, delete_token }
                }
                Err(trouble) => {
                    if trouble == Trouble::Absent {
                        // The server has forgotten it: the next attempt begins a new one.
                        sender.begun.take();
                    }
                    Progress::Stopped(trouble)
                }
            };
            sender.say(progress);
        });
    }

    /// Cancels the upload. What the server already has is deleted.
    pub fn cancel(&self) {
        if self.is_cancelled.replace(true) {
            return;
        }
        if let Some(abort) = self.abort.take() {
            abort.abort();
        }
        self.discard();
    }

    /// Deletes what the server has of an upload that was cancelled.
    fn discard(&self) {
        if let Some(begun) = self.begun.take() {
            spawn_local(async move {
                // If it can't be reached, the server deletes the upload itself after a while.
                let _ = shares::cancel(&begun.id).await;
            });
        }
    }

    fn say(&self, progress: Progress) {
        if !self.is_cancelled.get() {
            self.report.emit(progress);
        }
    }

    fn total(&self) -> u64 {
        self.copy.size() as u64
    }

    fn tell(&self, sent: u64, bytes_per_second: f64, waiting: Option<(u32, String)>) {
        self.say(Progress::Sending { sent, total: self.total(), bytes_per_second, waiting });
    }

    async fn run(&self) -> Result<Shared, Trouble> {
        let total = self.total();
        let known = self.begun.borrow().clone();
        let (begun, mut sent) = match known {
            Some(begun) => {
                let sent = shares::stands_at(&begun.id).await?;
                (begun, sent)
            }
            None => (self.begin(total).await?, 0),
        };
        let mut pace = Pace::new(begun.part_bytes);
        loop {
            self.tell(sent, pace.bytes_per_second(), None);
            let began = clock_ms();
            let outcome = if sent < total {
                self.part(&begun.id, sent, (sent + pace.part()).min(total)).await.map(|received| {
                    pace.arrived(received.saturating_sub(sent), clock_ms() - began);
                    sent = received;
                    None
                })
            } else {
                shares::finish(&begun).await.map(Some)
            };
            if self.is_cancelled.get() {
                return Err(Trouble::Away);
            }
            match outcome {
                Ok(None) => {}
                Ok(Some(shared)) => return Ok(shared),
                Err(trouble @ (Trouble::Away | Trouble::Busy(_) | Trouble::Offset)) => {
                    let Some(seconds) = pace.failed() else { return Err(trouble) };
                    if trouble != Trouble::Offset {
                        self.tell(sent, 0.0, Some((seconds, trouble.sentence())));
                        pause(seconds).await;
                    }
                    // A server that is still away is asked again after the next pause.
                    match shares::stands_at(&begun.id).await {
                        Ok(received) => sent = received,
                        Err(Trouble::Away | Trouble::Busy(_)) => {}
                        Err(trouble) => return Err(trouble),
                    }
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    async fn begin(&self, total: u64) -> Result<Begun, Trouble> {
        let begun = shares::begin(total, &self.terms).await?;
        *self.begun.borrow_mut() = Some(begun.clone());
        if self.is_cancelled.get() {
            self.discard();
            return Err(Trouble::Away);
        }
        Ok(begun)
    }

    async fn part(&self, id: &str, from: u64, to: u64) -> Result<u64, Trouble> {
        let refused =
            || Trouble::Refused("The browser no longer has the copy. Close this dialog and share again.".to_owned());
        let part = self.copy.slice_with_f64_and_f64(from as f64, to as f64).map_err(|_| refused())?;
        let abort = AbortController::new().map_err(|_| refused())?;
        let signal = abort.signal();
        *self.abort.borrow_mut() = Some(abort);
        shares::put(id, from, &part, &signal).await
    }
}

async fn pause(seconds: u32) {
    let pause = Promise::new(&mut |resolve, _| {
        let ms = i32::try_from(seconds.saturating_mul(1_000)).unwrap_or(i32::MAX);
        let _ = window().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, ms);
    });
    // Never rejected.
    let _ = JsFuture::from(pause).await;
}
