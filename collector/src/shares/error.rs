//! Why something about shared traces is refused.

use std::io::ErrorKind;

use trace::error::ImportError;
use trace::units::Bytes;

use super::Gone;
use crate::access::Denied;
use crate::store::StoreError;

/// Why an operation on shares failed. `Display` is the end of a sentence or a clause for people.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// No link has this token.
    #[error("there is no such link; check that it was copied completely")]
    Unknown,
    /// The link was valid once.
    #[error("this link is gone")]
    Gone(Gone),
    /// The link has a password, and no key was shown.
    #[error("this link needs its password")]
    PasswordNeeded,
    /// It is not the link's password.
    #[error("this is not the link's password")]
    PasswordWrong,
    /// The password has no character but spaces.
    #[error("the password is empty; leave it out for a link without one")]
    PasswordEmpty,
    /// The password is longer than this number of bytes.
    #[error("a password has at most {0} bytes")]
    PasswordTooLong(usize),
    /// It is not the link's delete token.
    #[error("this is not the delete token of this link, which was shown when the link was made")]
    DeleteToken,
    /// There is nothing to upload.
    #[error("an upload has at least one byte")]
    Empty,
    /// The upload has more than this number of bytes.
    #[error("an upload has at most {}; share a window or one device of the trace", Bytes(*.0))]
    TooLarge(u64),
    /// A part begins elsewhere, or exceeds the upload. Holds the bytes that were received.
    #[error("the next part begins at byte {0}; go on from there")]
    Offset(u64),
    /// The part is longer than this number of bytes, or longer than the rest of the upload.
    #[error("a part has at most {0} bytes, and no more than are missing")]
    PartTooLong(u64),
    /// The upload is not complete. Holds the bytes that were received.
    #[error("only the first {0} bytes were received; send the others first")]
    Incomplete(u64),
    /// The hash of what arrived is not the announced one.
    #[error("the upload changed on the way; send it again")]
    Hash,
    /// What arrived can't be shared.
    #[error("{0}")]
    Refused(#[from] ImportError),
    /// There is no such upload of this token.
    #[error(
        "there is no such upload; it may have been finished, or given up because nothing arrived, so begin it again"
    )]
    NoUpload,
    /// There are too many uploads.
    #[error("there are too many uploads now; finish or cancel one, or try again in some minutes")]
    Busy,
    /// Another request writes to the upload, or finishes it.
    #[error("another request writes to this upload; wait until it has ended, and try again")]
    Taken,
    /// The token's quota of bytes.
    #[error("what this token shares would exceed its {}; delete older links first", Bytes(*.0))]
    Quota(u64),
    /// The most bytes that unfinished uploads of one token may take.
    #[error("the unfinished uploads of this token would take more than {}; finish or cancel one of them first", Bytes(*.0))]
    Unfinished(u64),
    /// The server's limit for shared traces, or its disk.
    #[error(
        "the server has no room for another trace of this size now; try again later, share a smaller window, or ask the person who runs it for more room"
    )]
    Full,
    /// The server allows no public links.
    #[error("this server allows no links for everybody; its owner can allow them with --public-links")]
    NotPublic,
    /// The expiry is not in the future.
    #[error("a link expires after one second or later")]
    ExpiresAtOnce,
    /// The expiry is later than the server allows. Holds the longest time in seconds.
    #[error("a link on this server expires after at most {} days", .0 / 86_400)]
    ExpiresLate(u64),
    /// The system has no random numbers.
    #[error("the system has no random numbers: {0}")]
    Random(String),
    /// The password could not be hashed.
    #[error("the password could not be hashed: {0}")]
    Hashing(String),
    /// The token of the request is not valid any more.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The object store does not answer.
    #[error("the object store in which this server keeps shared traces does not answer; try again later")]
    Away(#[source] std::io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for ShareError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full | StoreError::DiskFull => Self::Full,
            StoreError::Io(error) if error.kind() == ErrorKind::TimedOut => Self::Away(error),
            error => Self::Store(error),
        }
    }
}

impl From<std::io::Error> for ShareError {
    fn from(error: std::io::Error) -> Self {
        StoreError::from(error).into()
    }
}
