//! Carries one collector's batches to its session's writer: a bounded queue, and a thread that waits for the disk.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use wire::Refused;

use super::admission::Joined;
use super::presence::Connection;
use super::{IngestError, Session, Sessions, word};
use crate::access::{Caller, audit};
use crate::store::StoreError;

/// The outcome of the batches that were sent so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// All batches up to this one are durable.
    pub acked: Option<u64>,
    /// Why nothing more is accepted.
    pub refused: Option<Refused>,
}

/// What a batch takes of the queue at least: its place in the queue takes memory, even if it is empty.
const COMMAND_BYTES: usize = 256;

enum Command {
    Batch { seq: u64, sent_us: i64, chunks: Vec<u8>, _permit: OwnedSemaphorePermit },
    Goodbye(u64),
}

/// One collector's queue. What was sent is stored even if the pipe is dropped.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) session: Arc<Session>,
    number: u64,
    commands: Option<mpsc::UnboundedSender<Command>>,
    /// Bytes that may still be queued.
    space: Arc<Semaphore>,
    replies: watch::Receiver<Reply>,
    has_goodbye: bool,
}

impl Pipe {
    /// Starts the thread of a collector. `permit` is its permit among the collectors, which it has until everything it sent is
    /// stored.
    pub(super) fn new(
        sessions: &Arc<Sessions>,
        joined: Joined,
        permit: Option<Arc<OwnedSemaphorePermit>>,
    ) -> Result<Self, IngestError> {
        let Joined { session, connection, number, caller, .. } = joined;
        let (commands, received) = mpsc::unbounded_channel();
        let (reply, replies) = watch::channel(Reply::default());
        let worker = Worker {
            sessions: Arc::clone(sessions),
            session: Arc::clone(&session),
            number,
            caller,
            reply,
            _connection: connection,
            _permit: permit,
        };
        let builder = thread::Builder::new().name("vramscope-ingest".to_owned());
        if builder.spawn(move || worker.run(received)).is_err() {
            let error = IngestError::Busy("this server can't start another thread");
            error.log_refusal(session.id());
            return Err(error);
        }
        let space = Arc::new(Semaphore::new(sessions.limits().queue_bytes));
        Ok(Self { session, number, commands: Some(commands), space, replies, has_goodbye: false })
    }

    /// Queues a batch; waits while the queue is full.
    pub(super) async fn batch(&self, (seq, sent_us): (u64, i64), chunks: Vec<u8>) {
        let Some(commands) = &self.commands else { return };
        // One message always fits the queue, and the semaphore is never closed.
        let bytes = u32::try_from(chunks.len().max(COMMAND_BYTES)).unwrap_or(u32::MAX);
        if let Ok(permit) = Arc::clone(&self.space).acquire_many_owned(bytes).await {
            // A thread that has ended gave its reason in the reply.
            let _ = commands.send(Command::Batch { seq, sent_us, chunks, _permit: permit });
        }
    }

    pub(super) fn goodbye(&mut self, seq: u64) {
        // A second one says nothing new, and any number of them would fit the queue.
        if !std::mem::replace(&mut self.has_goodbye, true)
            && let Some(commands) = &self.commands
        {
            let _ = commands.send(Command::Goodbye(seq));
        }
    }

    /// Ends the queue: nothing more will be sent.
    pub(super) fn close(&mut self) {
        self.commands = None;
    }

    /// Waits for a reply that was not returned yet; `None` when there will be none.
    pub(super) async fn reply(&mut self) -> Option<Reply> {
        self.replies.changed().await.ok()?;
        Some(self.replies.borrow_and_update().clone())
    }

    /// Resolves when another connection takes over the session.
    pub(super) fn replaced(&self) -> impl Future<Output = ()> + use<> {
        let (mut holder, number) = (self.session.holder(), self.number);
        async move {
            if holder.wait_for(|holder| *holder != number).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

struct Worker {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
    number: u64,
    caller: Caller,
    reply: watch::Sender<Reply>,
    _connection: Connection,
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl Worker {
    fn run(self, mut commands: mpsc::UnboundedReceiver<Command>) {
        if let Err(error) = self.serve(&mut commands) {
            self.sessions.note_store_error(self.session.id(), &error);
            error.log_refusal(self.session.id());
            audit::refused(&self.caller, self.session.id(), word(error.code()));
            self.reply.send_modify(|reply| reply.refused = Some(error.refused()));
            commands.close();
        }
    }

    fn serve(&self, commands: &mut mpsc::UnboundedReceiver<Command>) -> Result<(), IngestError> {
        let limits = self.sessions.limits();
        while let Some(first) = commands.blocking_recv() {
            let begun = Instant::now();
            let (mut next, mut failed) = (Some(first), None);
            // Batches that are queued together are synced together.
            while let Some(command) = next.take() {
                match self.execute(command) {
                    Ok(bytes)
                        if bytes < limits.sync_bytes && begun.elapsed() < Duration::from_millis(limits.sync_millis) =>
                    {
                        next = commands.try_recv().ok();
                    }
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
            }
            // Batches before a refused one are kept.
            let can_sync = matches!(failed, None | Some(IngestError::Order { .. } | IngestError::Ended));
            if can_sync {
                let begun = Instant::now();
                let acked = self.session.sync(self.number)?;
                self.sessions.counters.synced(begun.elapsed());
                self.sessions.note_store_success();
                self.reply.send_modify(|reply| reply.acked = Some(acked));
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Executes a command. Returns the bytes that are not synced yet.
    fn execute(&self, mut command: Command) -> Result<u64, IngestError> {
        match self.attempt(&mut command) {
            Err(IngestError::Store(full @ (StoreError::Full | StoreError::DiskFull))) => {
                // Old history gives way to new.
                self.sessions.make_room_for(&full);
                self.session.reopen(self.number, self.sessions.store(), *self.sessions.limits())?;
                self.attempt(&mut command)
            }
            done => done,
        }
    }

    fn attempt(&self, command: &mut Command) -> Result<u64, IngestError> {
        match command {
            Command::Goodbye(seq) => {
                self.session.end(self.number, *seq)?;
                self.sessions.outdate_catalogue();
                audit::session_ended(&self.caller, self.session.id());
                Ok(0)
            }
            Command::Batch { seq, sent_us, chunks, .. } => self.append((*seq, *sent_us), chunks),
        }
    }

    fn append(&self, of: (u64, i64), chunks: &mut Vec<u8>) -> Result<u64, IngestError> {
        let Sessions { counters, .. } = &*self.sessions;
        let shared = (&**self.sessions.bus(), counters, self.sessions.retention_now_us());
        self.session.append(self.number, of, chunks, shared)
    }
}
