//! Encodes and decodes messages. Written by hand: code generated for every type of message took a tenth of the page's
//! module.

use super::message::{
    Ack, Ask, Batch, Code, Goodbye, HEAD_BYTES, Hello, Message, Refused, SessionState, Skipped, Status, Watch, Welcome,
};
use codec::checksum::Checksum;
use codec::msgpack::{MapReader, MapWriter};
use trace::error::{Checked, damaged};
use trace::narrow::number32;

/// The first byte of a body: a MessagePack array of two.
const PAIR: u8 = 0x92;

/// The kind of [`Watch`].
const WATCH: u8 = 8;

const CODES: [(Code, &str); 11] = [
    (Code::Protocol, "protocol"),
    (Code::Token, "token"),
    (Code::Key, "key"),
    (Code::Session, "session"),
    (Code::Ended, "ended"),
    (Code::Order, "order"),
    (Code::Full, "full"),
    (Code::Busy, "busy"),
    (Code::Restart, "restart"),
    (Code::Store, "store"),
    (Code::Malformed, "malformed"),
];

const STATES: [SessionState; 3] = [SessionState::Live, SessionState::Ended, SessionState::Lost];

/// Appends the message of a kind and a map to `out`.
fn append(kind: u8, map: MapWriter, out: &mut Vec<u8>) {
    let map = map.into_bytes();
    // Writers stay far below 4 GiB: readers refuse more than `WireLimits::frame_bytes`.
    let length = number32(map.len() + 2);
    let mut sum = Checksum::new();
    sum.update(&[PAIR, kind]);
    sum.update(&map);
    out.reserve(HEAD_BYTES + 2 + map.len());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(&[PAIR, kind]);
    out.extend_from_slice(&map);
}

impl Watch {
    fn body(&self) -> MapWriter {
        let Self { protocol, token, after, events } = self;
        let mut map = MapWriter::map(4);
        map.unsigned("protocol", (*protocol).into());
        map.string("token", token);
        map.unsigned("after", *after);
        map.unsigned("events", *events);
        map
    }

    /// Returns the message alone. Viewers send nothing else, so the page needs no code for the other messages.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        append(WATCH, self.body(), &mut out);
        out
    }
}

impl<'a> Message<'a> {
    /// Appends the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, map) = self.body();
        append(kind, map, out);
    }

    /// Returns the message alone.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// Returns the kind and the map.
    fn body(&self) -> (u8, MapWriter) {
        let mut map;
        let kind = match self {
            Self::Hello(Hello { protocol, session, key, token, mode, header, first }) => {
                map = MapWriter::map(7);
                map.unsigned("protocol", (*protocol).into());
                map.string("session", session);
                map.string("key", key);
                map.string("token", token);
                map.string("mode", mode);
                map.column("header", header);
                map.unsigned("first", *first);
                1
            }
            Self::Batch(Batch { seq, sent_us, chunks }) => {
                map = MapWriter::map(3);
                map.unsigned("seq", *seq);
                map.signed("sent_us", *sent_us);
                map.column("chunks", chunks);
                2
            }
            Self::Goodbye(Goodbye { seq }) => {
                map = MapWriter::map(1);
                map.unsigned("seq", *seq);
                3
            }
            Self::Welcome(Welcome { protocol, next }) => {
                map = MapWriter::map(2);
                map.unsigned("protocol", (*protocol).into());
                map.unsigned("next", *next);
                4
            }
            Self::Ack(Ack { seq }) => {
                map = MapWriter::map(1);
                map.unsigned("seq", *seq);
                5
            }
            Self::Refused(Refused { code, message, retry }) => {
                let name = CODES.iter().find(|(known, _)| known == code).map_or("malformed", |(_, name)| name);
                map = MapWriter::map(3);
                map.string("code", name);
                map.string("message", message);
                map.flag("retry", *retry);
                6
            }
            Self::Ask(Ask { what }) => {
                map = MapWriter::map(1);
                map.string("what", what);
                7
            }
            Self::Watch(watch) => {
                map = watch.body();
                WATCH
            }
            Self::Status(Status { state, last, now_us, events, lost_events, behind_us }) => {
                map = MapWriter::map(6);
                map.string("state", state.name());
                map.unsigned("last", *last);
                map.signed("now_us", *now_us);
                map.unsigned("events", *events);
                map.unsigned("lost_events", *lost_events);
                map.signed("behind_us", *behind_us);
                9
            }
            Self::Skipped(Skipped { from, to, reason }) => {
                map = MapWriter::map(3);
                map.unsigned("from", *from);
                map.unsigned("to", *to);
                map.string("reason", reason);
                10
            }
            Self::Unknown(kind) => {
                map = MapWriter::map(0);
                *kind & 0x7f
            }
        };
        (kind, map)
    }

    /// Decodes a body; `None` if it is malformed.
    pub(super) fn decode(body: &'a [u8]) -> Option<Self> {
        // Kinds are below 128: one byte in MessagePack.
        let [PAIR, kind @ 0..=0x7f, rest @ ..] = body else { return None };
        let mut message = match kind {
            1 => Self::Hello(Hello::default()),
            2 => Self::Batch(Batch::default()),
            3 => Self::Goodbye(Goodbye::default()),
            4 => Self::Welcome(Welcome::default()),
            5 => Self::Ack(Ack::default()),
            6 => Self::Refused(Refused::default()),
            7 => Self::Ask(Ask::default()),
            &WATCH => Self::Watch(Watch::default()),
            9 => Self::Status(Status::default()),
            10 => Self::Skipped(Skipped::default()),
            kind => return Some(Self::Unknown(*kind)),
        };
        MapReader::new(rest).map(&mut |key, values| message.read_value(key, values)).ok()?;
        Some(message)
    }

    /// Reads the value of a key. Returns false, and reads nothing, for an unknown key.
    fn read_value(&mut self, key: &str, values: &mut MapReader<'a>) -> Checked<bool> {
        match (self, key) {
            (Self::Hello(Hello { protocol, .. }), "protocol") => *protocol = values.number()?,
            (Self::Hello(Hello { session, .. }), "session") => *session = values.string()?,
            (Self::Hello(Hello { key, .. }), "key") => *key = values.string()?,
            (Self::Hello(Hello { token, .. }) | Self::Watch(Watch { token, .. }), "token") => {
                *token = values.string()?;
            }
            (Self::Hello(Hello { mode, .. }), "mode") => *mode = values.string()?,
            (Self::Hello(Hello { header, .. }), "header") => *header = values.column()?.to_vec(),
            (Self::Hello(Hello { first, .. }), "first") => *first = values.unsigned()?,
            (Self::Batch(Batch { seq, .. }) | Self::Goodbye(Goodbye { seq }) | Self::Ack(Ack { seq }), "seq") => {
                *seq = values.unsigned()?;
            }
            (Self::Batch(Batch { sent_us, .. }), "sent_us") => *sent_us = values.signed()?,
            (Self::Batch(Batch { chunks, .. }), "chunks") => *chunks = values.column()?,
            (Self::Welcome(Welcome { protocol, .. }) | Self::Watch(Watch { protocol, .. }), "protocol") => {
                *protocol = values.number()?;
            }
            (Self::Welcome(Welcome { next, .. }), "next") => *next = values.unsigned()?,
            (Self::Refused(Refused { code, .. }), "code") => {
                let name = values.str()?;
                *code = CODES.iter().find(|(_, known)| *known == name).map_or(Code::Malformed, |(code, _)| *code);
            }
            (Self::Refused(Refused { message, .. }), "message") => *message = values.string()?,
            (Self::Refused(Refused { retry, .. }), "retry") => *retry = values.flag()?,
            (Self::Ask(Ask { what }), "what") => *what = values.string()?,
            (Self::Watch(Watch { after, .. }), "after") => *after = values.unsigned()?,
            (Self::Status(Status { state, .. }), "state") => {
                let name = values.str()?;
                // A state of a later protocol has no equivalent here.
                let known = STATES.into_iter().find(|known| known.name() == name);
                *state = known.ok_or_else(|| damaged("an unknown session state"))?;
            }
            (Self::Status(Status { last, .. }), "last") => *last = values.unsigned()?,
            (Self::Status(Status { now_us, .. }), "now_us") => *now_us = values.signed()?,
            (Self::Status(Status { events, .. }) | Self::Watch(Watch { events, .. }), "events") => {
                *events = values.unsigned()?;
            }
            (Self::Status(Status { lost_events, .. }), "lost_events") => *lost_events = values.unsigned()?,
            (Self::Status(Status { behind_us, .. }), "behind_us") => *behind_us = values.signed()?,
            (Self::Skipped(Skipped { from, .. }), "from") => *from = values.unsigned()?,
            (Self::Skipped(Skipped { to, .. }), "to") => *to = values.unsigned()?,
            (Self::Skipped(Skipped { reason, .. }), "reason") => *reason = values.string()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
