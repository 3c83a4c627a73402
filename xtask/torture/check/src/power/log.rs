//! The undo log as the shim writes it: `xtask/torture/shim/src/format.rs` says how.

const HEADER: usize = 24;
const RECORD: usize = 48;
const MARKER: [u8; 16] = *b"\x93holdpoint-undo\x07";

/// What is to be undone in a file.
#[derive(Debug, Default)]
pub(super) struct Log<'a> {
    /// How many syncs ended well.
    pub(super) syncs: u64,
    /// What was written since the last of them began, the oldest first.
    pub(super) records: Vec<Record<'a>>,
}

/// One write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// Where.
    pub(super) offset: u64,
    /// The length of the file before.
    pub(super) old_len: u64,
    /// The bytes that were there, from `offset` on.
    pub(super) saved: &'a [u8],
}

impl<'a> Log<'a> {
    /// Reads a log; a record that a kill has torn was never followed by its write.
    pub(super) fn parse(text: &'a [u8]) -> Self {
        if text.len() < HEADER {
            return Self::default();
        }
        let synced = usize::try_from(number(text, 0)).unwrap_or(usize::MAX).max(HEADER);
        let mut rest = text.get(synced..).unwrap_or_default();
        let mut records = Vec::new();
        while rest.len() >= RECORD {
            let saved = usize::try_from(number(rest, 40)).unwrap_or(usize::MAX);
            let end = RECORD.saturating_add(saved);
            let is_whole = rest.starts_with(&MARKER)
                && rest.get(end..).is_some_and(|next| next.is_empty() || begins(next));
            if is_whole {
                let (offset, old_len) = (number(rest, 16), number(rest, 32));
                records.push(Record { offset, old_len, saved: &rest[RECORD..end] });
                rest = &rest[end..];
            } else {
                let next = rest.windows(MARKER.len()).skip(1).position(|bytes| bytes == MARKER);
                rest = next.map_or(&[], |next| &rest[next + 1..]);
            }
        }
        Self { syncs: number(text, 16), records }
    }
}

/// Whether a record begins here, perhaps one that was torn within its marker.
fn begins(next: &[u8]) -> bool {
    let len = next.len().min(MARKER.len());
    next[..len] == MARKER[..len]
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(synced: u64) -> Vec<u8> {
        [synced, 0, 7].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn record(offset: u64, old_len: u64, saved: &[u8]) -> Vec<u8> {
        let mut bytes = MARKER.to_vec();
        for number in [offset, 1, old_len, saved.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(saved);
        bytes
    }

    #[test]
    fn only_what_no_sync_covers_is_read() {
        let text = [header(0), record(1, 9, b"old"), record(2, 9, b"")].concat();
        assert_eq!(Log::parse(&text).records.len(), 2);
        let first = (HEADER + RECORD + 3) as u64;
        let text = [header(first), record(1, 9, b"old"), record(2, 9, b"")].concat();
        let log = Log::parse(&text);
        assert_eq!(log.syncs, 7);
        assert_eq!(log.records, [Record { offset: 2, old_len: 9, saved: b"" }]);
    }

    #[test]
    fn a_torn_record_is_skipped_wherever_it_stands_and_is_torn() {
        let torn = record(3, 9, b"torn");
        for end in 0..torn.len() {
            let last = [header(0), record(1, 9, b"old"), torn[..end].to_vec()].concat();
            assert_eq!(Log::parse(&last).records.len(), 1, "last, cut at {end}");
            let middle = [header(0), torn[..end].to_vec(), record(1, 9, b"old")].concat();
            let log = Log::parse(&middle);
            assert_eq!(log.records, [Record { offset: 1, old_len: 9, saved: b"old" }], "at {end}");
        }
    }

    #[test]
    fn an_empty_log_undoes_nothing() {
        assert!(Log::parse(&[]).records.is_empty());
        assert!(Log::parse(&header(HEADER as u64)).records.is_empty());
    }
}
