//! Failures inside this crate, before they become a [`StoreError`].
//!
//! The bridge lets `?` work on both kinds of errors, and is the only place that reads SQLite's
//! codes.

use holdpoint_graph::{Refusal, RequestId};
use holdpoint_storage::StoreError;
use rusqlite::ErrorCode;

/// A failure of SQLite, or an error that is already the store's.
#[derive(Debug)]
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Store(StoreError),
}

pub(crate) type Done<T> = Result<T, Fault>;

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Store(StoreError::Refused(refusal))
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Store(error) => error,
            Fault::Sql(error) => of_sql(&error),
        }
    }
}

/// Says that something stored is damaged.
pub(crate) fn corrupt(what: impl Into<String>, why: impl ToString) -> Fault {
    Fault::Store(StoreError::Corrupt { what: what.into(), why: why.to_string() })
}

impl Fault {
    /// What a stored value that cannot be read makes of `what`; other failures stay what they are.
    pub(crate) fn in_what(self, what: impl FnOnce() -> String) -> Self {
        match self {
            Self::Sql(error) if code(&error).is_none() => corrupt(what(), error),
            Self::Store(StoreError::Refused(refusal)) => corrupt(what(), refusal),
            Self::Sql(_) | Self::Store(_) => self,
        }
    }
}

/// SQLite's own code; none when rusqlite could not read a value.
pub(crate) fn code(error: &rusqlite::Error) -> Option<ErrorCode> {
    error.sqlite_error_code()
}

fn of_sql(error: &rusqlite::Error) -> StoreError {
    let cause = error.to_string();
    match code(error) {
        Some(ErrorCode::DiskFull | ErrorCode::OutOfMemory | ErrorCode::TooBig) => {
            StoreError::Full { cause }
        }
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch,
        )
        | None => StoreError::Corrupt { what: "the database".to_owned(), why: cause },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Unavailable {
            cause: format!("another process holds the lock of the file: {cause}"),
        },
        Some(_) => StoreError::Unavailable { cause },
    }
}

/// What a failed COMMIT means: unless SQLite refused before it wrote, nobody knows.
pub(crate) fn of_commit(error: &rusqlite::Error, request: Option<&RequestId>) -> StoreError {
    match (code(error), request) {
        (Some(ErrorCode::SystemIoFailure), Some(request)) => {
            StoreError::UnknownOutcome { request: request.clone(), cause: error.to_string() }
        }
        _ => of_sql(error),
    }
}
