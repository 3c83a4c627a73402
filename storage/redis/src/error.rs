//! What the server's and the connection's errors mean for a call.

use holdpoint_graph::{RequestId, printable};
use holdpoint_storage::StoreError;
use redis::{ErrorKind, RedisError};

/// What went wrong, by what is to be done about it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server does not have the script (any more): load it and repeat.
    NoScript,
    /// The namespace is not the one this process saw.
    Reset,
    /// The answer did not come: the write may have happened. Repeat on another connection.
    Unknown(String),
    /// The answer did not come in time; the connection may still be good.
    Late(String),
    /// The server refused for now, and wrote nothing. `is_stale`: the connection is no good.
    Refused { cause: String, is_stale: bool },
    /// A final answer.
    Final(StoreError),
}

impl Fault {
    pub(crate) fn of(error: &RedisError) -> Self {
        if let Some(code) = error.code() {
            return Self::of_server(code, error.detail().unwrap_or_default());
        }
        if error.is_timeout() {
            return Self::Late("the server did not answer in time".to_owned());
        }
        if matches!(error.kind(), ErrorKind::Io) {
            return Self::Unknown(error.to_string());
        }
        Self::Final(StoreError::Unavailable { cause: error.to_string() })
    }

    fn of_server(code: &str, detail: &str) -> Self {
        let detail = detail.split(" script: ").next().unwrap_or_default();
        let cause = format!("{code} {}", printable(detail, 200));
        match code {
            "NOSCRIPT" => Self::NoScript,
            "RESET" => Self::Reset,
            "CORRUPT" => {
                let (run, why) = detail.split_once('|').unwrap_or((detail, "it is damaged"));
                Self::Final(StoreError::Corrupt { what: format!("run {run}"), why: why.to_owned() })
            }
            "WRONGTYPE" => Self::Final(StoreError::Corrupt {
                what: "a key of the namespace".to_owned(),
                why: "it has another type than Holdpoint gave it".to_owned(),
            }),
            "OOM" | "MISCONF" => Self::Final(StoreError::Full { cause }),
            "READONLY" | "MASTERDOWN" | "LOADING" | "UNBLOCKED" => {
                Self::Refused { cause, is_stale: true }
            }
            _ => Self::Refused { cause, is_stale: false },
        }
    }

    /// The error of a call that is not repeated any more. `is_sent`: one of its attempts went out
    /// and no answer came.
    pub(crate) fn into_error(self, request: &RequestId, is_sent: bool) -> StoreError {
        let unknown = |cause| StoreError::UnknownOutcome { request: request.clone(), cause };
        match self {
            Self::Unknown(cause) | Self::Late(cause) => unknown(cause),
            Self::Refused { cause, .. } if is_sent => unknown(cause),
            // A server that is full now may have taken the earlier attempt.
            Self::Final(StoreError::Full { cause } | StoreError::Unavailable { cause })
                if is_sent =>
            {
                unknown(cause)
            }
            Self::Refused { cause, .. } => StoreError::Unavailable { cause },
            Self::NoScript => {
                StoreError::Unavailable { cause: "the server keeps no scripts".to_owned() }
            }
            Self::Reset => StoreError::Unavailable { cause: "the store was reset".to_owned() },
            Self::Final(error) => error,
        }
    }
}

/// The error of a connection that did not open: nothing was sent.
pub(crate) fn not_connected(error: &RedisError) -> StoreError {
    match Fault::of(error) {
        Fault::Unknown(cause) | Fault::Late(cause) | Fault::Refused { cause, .. } => {
            StoreError::Unavailable { cause }
        }
        Fault::Final(error) => error,
        Fault::NoScript | Fault::Reset => StoreError::Unavailable { cause: error.to_string() },
    }
}

/// Says that a reply is not what the script answers.
pub(crate) fn unreadable(what: &str) -> StoreError {
    StoreError::Corrupt { what: what.to_owned(), why: "the store's reply is not one".to_owned() }
}

#[cfg(test)]
mod tests {
    use holdpoint_storage::Random;

    use super::*;

    #[test]
    fn a_full_server_does_not_tell_what_became_of_an_attempt_without_an_answer() {
        let request = Random.request_id();
        for cause in ["OOM no memory", "MISCONF no disk"] {
            let (code, detail) = cause.split_once(' ').unwrap();
            let error = |is_sent| Fault::of_server(code, detail).into_error(&request, is_sent);
            assert!(matches!(error(false), StoreError::Full { .. }), "{cause}");
            assert!(matches!(error(true), StoreError::UnknownOutcome { .. }), "{cause}");
        }
    }
}
