//! The undo log of one file: what to write back so that the file is as its last sync left it.
//!
//! The shim writes it, and `Shim::cut` of `holdpoint-torture-check` reads it.
//! The log is a header of three numbers (bytes of the log that a sync has made pointless, a
//! generation that counts how often the log was emptied, syncs so far) and records, oldest first.
//! A record is a marker, four numbers (the place of the write, its length or 0 when the file was
//! cut, the length of the file before it, the bytes saved) and the saved bytes.
//! Numbers are 8 bytes, the lowest first. A record that a kill has torn is skipped by the reader
//! to the next marker.

/// Bytes of the header.
pub(crate) const HEADER: usize = 24;
/// What a record begins with.
pub(crate) const MARKER: [u8; 16] = *b"\x93holdpoint-undo\x07";

/// One write, and what was there before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Where in the file.
    pub(crate) offset: u64,
    /// How many bytes are to be written; 0 when the file is cut.
    pub(crate) len: u64,
    /// The length of the file before.
    pub(crate) old_len: u64,
    /// The bytes that were there, from `offset` on.
    pub(crate) saved: &'a [u8],
}

impl Record<'_> {
    /// The record in the log's form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MARKER.to_vec();
        for number in [self.offset, self.len, self.old_len, self.saved.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.saved);
        bytes
    }
}

/// Reads a number of the header.
pub(crate) fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}
