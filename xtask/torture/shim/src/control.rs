//! What the harness wants of the next call: the file `control` in the shim's folder.
//!
//! Its text is words: `delay=MS`, `sync=eio`, `sync=enospc`, `full`. It is read at each call, so
//! that it can change while the program runs.

use std::{ffi::CString, time::Duration};

use libc::c_int;

/// The wishes of now.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    /// How long a sync takes.
    pub(crate) delay: Duration,
    /// The error with which a sync ends.
    pub(crate) sync: Option<c_int>,
    /// Whether nothing can grow any more.
    pub(crate) is_full: bool,
}

impl Control {
    pub(crate) fn read(folder: &str) -> Self {
        let mut text = [0_u8; 128];
        let path = CString::new(format!("{folder}/control")).unwrap_or_default();
        // SAFETY: the path ends with a zero and the buffer has the length that is told.
        let len = unsafe {
            let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            let len = libc::read(fd, text.as_mut_ptr().cast(), text.len());
            libc::close(fd);
            len
        };
        let text = text.get(..usize::try_from(len).unwrap_or(0)).unwrap_or_default();
        Self::parse(std::str::from_utf8(text).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut control = Self::default();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("delay", ms)) => {
                    control.delay = Duration::from_millis(ms.parse().unwrap_or(0));
                }
                Some(("sync", "eio")) => control.sync = Some(libc::EIO),
                Some(("sync", "enospc")) => control.sync = Some(libc::ENOSPC),
                _ => control.is_full |= word == "full",
            }
        }
        control
    }
}
