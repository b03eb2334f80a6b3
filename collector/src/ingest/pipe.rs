//! The way of one collector's batches to its desk: a queue with a bound, and a thread that waits for the disk.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use shared::wire::Refused;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::sessions::Joined;
use super::{IngestError, Session, Sessions};
use crate::store::StoreError;

/// What has become of what was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// All batches up to this one are safe.
    pub acked: Option<u64>,
    /// Nothing more is taken, and why.
    pub refused: Option<Refused>,
}

enum Command {
    Batch { seq: u64, sent_us: i64, chunks: Vec<u8>, _room: OwnedSemaphorePermit },
    Goodbye(u64),
}

/// See the module. What was sent is stored even when this is dropped.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) session: Arc<Session>,
    number: u64,
    commands: Option<mpsc::UnboundedSender<Command>>,
    room: Arc<Semaphore>,
    replies: watch::Receiver<Reply>,
}

impl Pipe {
    pub(super) fn new(sessions: &Arc<Sessions>, joined: Joined) -> Result<Self, IngestError> {
        let Joined { session, number, .. } = joined;
        let (commands, received) = mpsc::unbounded_channel();
        let (reply, replies) = watch::channel(Reply::default());
        let worker = Worker { sessions: Arc::clone(sessions), session: Arc::clone(&session), number, reply };
        let builder = thread::Builder::new().name("vramscope-ingest".to_owned());
        if builder.spawn(move || worker.run(received)).is_err() {
            session.leave();
            return Err(IngestError::Busy("this server has as many threads as it can"));
        }
        let room = Arc::new(Semaphore::new(sessions.limits().queue_bytes));
        Ok(Self { session, number, commands: Some(commands), room, replies })
    }

    /// Sends a batch on its way; waits while too much is.
    pub(super) async fn batch(&self, (seq, sent_us): (u64, i64), chunks: Vec<u8>) {
        let Some(commands) = &self.commands else { return };
        // One frame is smaller than the queue. A closed semaphore there is none.
        let bytes = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
        if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(bytes).await {
            // A thread that has gone has said why.
            let _ = commands.send(Command::Batch { seq, sent_us, chunks, _room: room });
        }
    }

    pub(super) fn goodbye(&self, seq: u64) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(Command::Goodbye(seq));
        }
    }

    /// No more will be sent.
    pub(super) fn close(&mut self) {
        self.commands = None;
    }

    /// Waits for another reply than the last one that was seen; `None` when there will be none.
    pub(super) async fn reply(&mut self) -> Option<Reply> {
        self.replies.changed().await.ok()?;
        Some(self.replies.borrow_and_update().clone())
    }

    /// Resolves when another connection speaks for the session.
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
    reply: watch::Sender<Reply>,
}

impl Worker {
    fn run(self, mut commands: mpsc::UnboundedReceiver<Command>) {
        if let Err(error) = self.serve(&mut commands) {
            self.sessions.heed(&error);
            self.reply.send_modify(|reply| reply.refused = Some(error.refused()));
            commands.close();
        }
        self.session.leave();
    }

    fn serve(&self, commands: &mut mpsc::UnboundedReceiver<Command>) -> Result<(), IngestError> {
        let limits = self.sessions.limits();
        while let Some(first) = commands.blocking_recv() {
            let begun = Instant::now();
            let (mut next, mut failed) = (Some(first), None);
            // What has come together is made safe together.
            while let Some(command) = next.take() {
                match self.take(command) {
                    Ok(bytes)
                        if bytes < limits.sync_bytes && begun.elapsed() < Duration::from_millis(limits.sync_millis) =>
                    {
                        next = commands.try_recv().ok();
                    }
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
            }
            // What came before a bad one is good.
            let can_sync = matches!(failed, None | Some(IngestError::Order { .. } | IngestError::Ended));
            if can_sync {
                let begun = Instant::now();
                let acked = self.session.sync(self.number)?;
                self.sessions.counters.synced(begun.elapsed());
                self.sessions.is_well();
                self.reply.send_modify(|reply| reply.acked = Some(acked));
            }
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives the bytes that are not safe yet.
    fn take(&self, command: Command) -> Result<u64, IngestError> {
        match command {
            Command::Goodbye(seq) => self.session.end(self.number, seq).map(|_| 0),
            Command::Batch { seq, sent_us, mut chunks, .. } => match self.append((seq, sent_us), &mut chunks) {
                Err(IngestError::Store(StoreError::Full)) => {
                    // Old history makes room for new.
                    self.sessions.make_room();
                    self.session.reopen(self.number, self.sessions.store(), *self.sessions.limits())?;
                    self.append((seq, sent_us), &mut chunks)
                }
                done => done,
            },
        }
    }

    fn append(&self, of: (u64, i64), chunks: &mut Vec<u8>) -> Result<u64, IngestError> {
        let Sessions { counters, .. } = &*self.sessions;
        self.session.append(self.number, of, chunks, &**self.sessions.bus(), counters)
    }
}
