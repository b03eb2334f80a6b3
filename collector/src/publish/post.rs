//! Requests where sockets can't pass: the same frames, as the bodies of POSTs and of their answers.

use std::time::{Duration, Instant};

use shared::limits::WireLimits;
use shared::wire::{Decoder, Goodbye, Message};

use super::http;
use super::sender::{Outcome, Sender, batch};
use super::socket::connect;

/// Makes requests for as long as they go well, until it is time to try a socket again.
pub(super) fn speak(sender: &Sender, until: Instant) -> Outcome {
    loop {
        if let Some(outcome) = wait(sender, until) {
            return outcome;
        }
        if let Err(outcome) = request(sender) {
            return outcome;
        }
        let state = sender.shared.lock();
        if state.is_ended {
            return Outcome::Ended;
        }
        // A busy job makes more bytes of a request, not more requests.
        let pause = Instant::now() + Duration::from_millis(sender.limits.post_millis);
        drop(state);
        sender.shared.wait_until(pause, |state| state.end.is_some());
    }
}

/// Waits until a request is due: there is something to send, or the server would think that nobody is there.
fn wait(sender: &Sender, until: Instant) -> Option<Outcome> {
    let mut state = sender.shared.lock();
    loop {
        let now = Instant::now();
        if state.is_over() {
            return Some(Outcome::Ended);
        }
        if now >= until {
            return Some(Outcome::Again);
        }
        let silent = state.link.active.map_or(now, |since| since + Duration::from_millis(sender.limits.idle_millis));
        if !state.queue.is_empty() || state.end.is_some() || now >= silent {
            return None;
        }
        let wake = [Some(until), state.end].into_iter().flatten().fold(silent, Instant::min);
        state = sender.shared.wait(state, wake.saturating_duration_since(now).max(Duration::from_millis(1)));
    }
}

/// One request: hello, and as many batches as go in; or the goodbye, when there are none left.
fn request(sender: &Sender) -> Result<(), Outcome> {
    let lost = |error: &dyn std::fmt::Display| Outcome::Lost(sender.trouble(error));
    let answer_time = Duration::from_millis(sender.limits.answer_millis);
    let stream = connect(&sender.destination, Duration::from_millis(sender.limits.connect_millis));
    let stream = stream.map_err(|error| lost(&error))?;
    let timed = stream.set_read_timeout(Some(answer_time)).and_then(|()| stream.set_write_timeout(Some(answer_time)));
    timed.map_err(|error| lost(&error))?;
    let outer = stream.try_clone().map_err(|error| lost(&error))?;
    let mut body = sender.hello();
    {
        let mut state = sender.shared.lock();
        // Between two requests there is no connection, and still one server that was there.
        let was_welcome = state.link.is_welcome;
        state.begin(Some(outer));
        state.link.is_welcome = was_welcome;
        state.queue.rewind();
        if state.queue.is_empty() && state.end.is_some() {
            state.link.is_goodbye = true;
            Message::Goodbye(Goodbye { seq: state.queue.last() }).encode(&mut body);
        }
        let mut is_more = true;
        while is_more && let Some((number, chunks)) = state.queue.next() {
            batch(number, &chunks, &mut body);
            is_more = body.len() < sender.limits.post_bytes;
        }
    }
    let destination = &sender.destination;
    let answer = http::post(&stream, &destination.authority(), &destination.ingest(), &body);
    let answer = answer.map_err(|error| lost(&error))?;
    let mut state = sender.shared.lock();
    state.link.socket = None;
    state.bytes += body.len() as u64;
    let mut frames = 0;
    let mut decoder = Decoder::new(&WireLimits::default());
    let read = decoder.push(&answer.body, &mut |frame| {
        frames += 1;
        state.hear(frame);
    });
    let refused = state.link.refused.take();
    drop(state);
    sender.shared.ring();
    match refused {
        Some(refused) => Err(Outcome::Refused(refused)),
        // A proxy's own page is no frame.
        None if answer.status != 200 => {
            let advice = destination.advice(answer.status);
            Err(lost(&format!("a request was answered with HTTP {}{advice}", answer.status)))
        }
        None => match read {
            Ok(()) if frames > 0 => Ok(()),
            Ok(()) => Err(lost(&"a request was answered with nothing")),
            Err(error) => Err(lost(&error)),
        },
    }
}
