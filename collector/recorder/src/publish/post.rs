//! Delivery where WebSockets are blocked: the same messages, in the bodies of POST requests and of their answers.

use std::time::{Duration, Instant};

use trace::limits::WireLimits;
use wire::{Decoder, Goodbye, Message};

use super::client::{Client, Outcome, encode_batch};
use super::http;

/// Makes requests as long as they succeed, until `until`: then a WebSocket is to be tried again.
pub(super) fn run(client: &Client, until: Instant) -> Outcome {
    loop {
        if let Some(outcome) = wait_until_due(client, until) {
            return outcome;
        }
        if let Err(outcome) = request(client) {
            return outcome;
        }
        let state = client.shared.lock();
        if state.is_ended {
            return Outcome::Ended;
        }
        // A busy job makes larger requests, not more of them.
        let pause = Instant::now() + Duration::from_millis(client.limits.post_millis);
        drop(state);
        client.shared.wait_until(pause, |state| state.end.is_some());
    }
}

/// Waits until a request is due: there is something to send, or the server would otherwise consider the job disconnected. Returns how
/// the series of requests ends, if it does.
fn wait_until_due(client: &Client, until: Instant) -> Option<Outcome> {
    let mut state = client.shared.lock();
    loop {
        let now = Instant::now();
        if state.is_over() {
            return Some(Outcome::Ended);
        }
        if now >= until {
            return Some(Outcome::TrySocket);
        }
        let idle_time = Duration::from_millis(client.limits.idle_millis);
        let idle = state.connection.last_activity.map_or(now, |since| since + idle_time);
        if !state.queue.is_empty() || state.end.is_some() || now >= idle {
            return None;
        }
        let wake = [Some(until), state.end].into_iter().flatten().fold(idle, Instant::min);
        state = client.shared.wait(state, wake.saturating_duration_since(now).max(Duration::from_millis(1)));
    }
}

/// Makes one request: the hello and as many batches as fit, or the goodbye when no batch is left.
fn request(client: &Client) -> Result<(), Outcome> {
    let stream = client.connect().map_err(|error| client.lost(error))?;
    let outer = stream.try_clone().map_err(|error| client.lost(error))?;
    let mut body = client.hello();
    {
        let mut state = client.shared.lock();
        // Each request is a connection of its own, but between two of them the server has not gone away.
        let was_welcome = state.connection.is_welcome;
        state.begin_connection(Some(outer));
        state.connection.is_welcome = was_welcome;
        state.queue.rewind();
        if state.queue.is_empty() && state.end.is_some() {
            state.connection.is_goodbye = true;
            Message::Goodbye(Goodbye { seq: state.queue.last() }).encode(&mut body);
        }
        let mut is_more = true;
        while is_more && let Some((number, chunks)) = state.queue.next() {
            encode_batch(number, &chunks, &mut body);
            is_more = body.len() < client.limits.post_bytes;
        }
    }
    let mut stream = client.secure(stream)?;
    let destination = &client.destination;
    let (authority, path) = (destination.authority(), destination.ingest_path());
    let answer = http::post(&mut stream, &authority, &path, &body, client.answer_time());
    let answer = answer.map_err(|error| client.lost(error))?;
    let mut state = client.shared.lock();
    state.connection.socket = None;
    state.bytes += body.len() as u64;
    let mut messages = 0;
    let mut decoder = Decoder::new(&WireLimits::default());
    let read = decoder.push(&answer.body, &mut |message| {
        messages += 1;
        state.handle_message(message);
    });
    let refused = state.connection.refused.take();
    drop(state);
    client.shared.notify();
    match refused {
        Some(refused) => Err(Outcome::Refused(refused)),
        // The error page of a proxy is not a message.
        None if answer.status != 200 => {
            let advice = destination.advice(answer.status);
            Err(client.lost(format!("the server answered a request with HTTP {}{advice}", answer.status)))
        }
        None => match read {
            Ok(()) if messages > 0 => Ok(()),
            Ok(()) => Err(client.lost("the server's answer was empty")),
            Err(error) => Err(client.lost(error)),
        },
    }
}
