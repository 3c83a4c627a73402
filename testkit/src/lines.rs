//! JSON lines as a process that may be killed at any byte leaves them.

use serde::de::DeserializeOwned;

/// Parses every complete line of `text`.
///
/// A last line without a line feed is what a killed writer leaves, so it does not count.
/// A complete line that does not parse is a fault of the writer: panics with the line and `what`.
#[track_caller]
pub(crate) fn complete_lines<T: DeserializeOwned>(text: &str, what: &str) -> Vec<T> {
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |(index, line): (usize, &str)| {
        serde_json::from_str(line).unwrap_or_else(|error| {
            panic!("line {} of {what} is not what it should be: {error}: {line}", index + 1)
        })
    };
    complete.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_lines_count() {
        let check = |text: &str, expect: &[u64]| {
            assert_eq!(complete_lines::<u64>(text, "a test"), expect, "{text:?}");
        };
        check("", &[]);
        check("1", &[]);
        check("1\n", &[1]);
        check("1\n2", &[1]);
        check("1\n\n2\n", &[1, 2]);
        check("1\n{\"torn", &[1]);
    }

    #[test]
    fn a_bad_complete_line_is_named() {
        let panic = std::panic::catch_unwind(|| complete_lines::<u64>("1\nx\n", "the output"));
        let panic = panic.unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("line 2 of the output"), "{text}");
    }
}
