//! Keys from the bytes that a terminal sends.

use super::Key;

/// Takes the keys out of `bytes`, and leaves what is only the beginning of one. An escape with
/// nothing behind it is the key of that name: a terminal sends the rest of an arrow with it.
pub(crate) fn keys(bytes: &mut Vec<u8>) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((key, length)) = first(rest) {
        keys.extend(key);
        rest = rest.get(length..).unwrap_or_default();
    }
    *bytes = rest.to_vec();
    keys
}

/// The first key, when it is one of ours, and its bytes; none when more bytes must come.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let key = match *bytes.first()? {
        b'\x1b' => return escaped(bytes),
        b'\r' | b'\n' => Key::Enter,
        0x7f | 0x08 => Key::Backspace,
        0x15 => Key::Clear,
        0x03 | 0x04 => Key::Interrupt,
        byte if byte < 0x20 => return Some((None, 1)),
        _ => return character(bytes),
    };
    Some((Some(key), 1))
}

fn escaped(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let Some(kind) = bytes.get(1) else { return Some((Some(Key::Escape), 1)) };
    if !matches!(kind, b'[' | b'O') {
        return Some((Some(Key::Escape), 1));
    }
    let last = bytes.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte))? + 2;
    let key = match bytes.get(last) {
        Some(b'A') => Some(Key::Up),
        Some(b'B') => Some(Key::Down),
        Some(_) | None => None,
    };
    Some((key, last + 1))
}

fn character(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let text = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(text) => text.chars().next().map(|sign| (Some(Key::Char(sign)), sign.len_utf8())),
        Err(fault) if fault.valid_up_to() > 0 => {
            let good = text.get(..fault.valid_up_to()).map(String::from_utf8_lossy);
            let sign = good.as_ref().and_then(|good| good.chars().next());
            sign.map(|sign| (Some(Key::Char(sign)), sign.len_utf8()))
        }
        // Half a character waits for its rest; what can never be one is dropped.
        Err(fault) => fault.error_len().map(|length| (None, length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: &[&[u8]], expect: &[Key]) {
        let (mut bytes, mut got) = (Vec::new(), Vec::new());
        for part in sent {
            bytes.extend_from_slice(part);
            got.extend(keys(&mut bytes));
        }
        assert_eq!(got, expect, "{sent:?}");
        assert!(bytes.is_empty(), "{sent:?} leaves {bytes:?}");
    }

    #[test]
    fn keys_are_told_apart_however_their_bytes_come() {
        use Key::{Backspace, Char, Clear, Down, Enter, Escape, Interrupt, Up};
        check(&[b"a\r\n"], &[Char('a'), Enter, Enter]);
        check(&[b"\x1b[A\x1bOB"], &[Up, Down]);
        check(&[b"\x1b[", b"B"], &[Down]);
        check(&[b"\x1b"], &[Escape]);
        check(&[b"\x1bx"], &[Escape, Char('x')]);
        check(&[b"\x1b[1;5C\x1b[3~q"], &[Char('q')]);
        check(&[b"\x7f\x08\x15\x03\x04\x01"], &[Backspace, Backspace, Clear, Interrupt, Interrupt]);
        check(&["äö訂".as_bytes()], &[Char('ä'), Char('ö'), Char('訂')]);
        check(&[b"\xc3", b"\xa4"], &[Char('ä')]);
        check(&[b"\xff\xfex"], &[Char('x')]);
    }
}
