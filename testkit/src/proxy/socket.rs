//! A stream of either kind, shared by the two threads that relay its two ways.

use std::{
    io::{ErrorKind, Read, Result, Write},
    net::{Shutdown, TcpStream},
    os::unix::net::UnixStream,
};

/// A connected stream.
#[derive(Debug)]
pub(super) enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Reads what is there, at most a buffer full; 0 at the end.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let read = match self {
                Self::Tcp(stream) => (&mut &*stream).read(buffer),
                Self::Unix(stream) => (&mut &*stream).read(buffer),
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Writes all of it.
    pub(super) fn write_all(&self, piece: &[u8]) -> Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nodelay(true)?;
                (&mut &*stream).write_all(piece)
            }
            Self::Unix(stream) => (&mut &*stream).write_all(piece),
        }
    }

    /// Closes a way, or both; one that is closed already stays so.
    pub(super) fn shutdown(&self, how: Shutdown) {
        let _closed = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        };
    }
}
