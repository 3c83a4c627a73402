//! JSON from the command line: text, `@file`, or `-` for stdin.

use std::{
    fs::File,
    io::{BufRead, Read, Write, stderr, stdin},
};

use holdpoint_graph::{Code, Refusal, json};
use serde_json::Value;

use crate::{
    failure::{Failure, Stop},
    out::Out,
};

/// Bytes of a whole batch file; it is held in memory while it is checked.
const BATCH_BYTES_MAX: usize = 256 * 1_024 * 1_024;

/// Reads a JSON argument of at most `bytes_max` bytes. More than one byte over the limit is never
/// read.
///
/// # Errors
/// Usage for a file that cannot be read, else the codes of [`json::parse`] under `field`.
pub(crate) fn json_argument(field: &str, text: &str, bytes_max: usize) -> Result<Value, Stop> {
    let bytes = text_argument(field, text, bytes_max)?;
    json::parse(&bytes, bytes_max).map_err(|refusal| refusal.within(field).into())
}

/// The text of an argument that may be in a file (`@FILE`) or come from stdin (`-`).
pub(crate) fn text_argument(field: &str, text: &str, bytes_max: usize) -> Result<Vec<u8>, Stop> {
    let bytes = match text.strip_prefix('@') {
        Some(path) => read_file(field, path, bytes_max)?,
        None if text == "-" => read_up_to(field, "stdin", stdin().lock(), bytes_max)?,
        None => text.as_bytes().to_vec(),
    };
    if bytes.len() > bytes_max {
        return Err(too_large(field, bytes_max).into());
    }
    Ok(bytes)
}

/// The lines of a batch, with their numbers from 1; empty ones are skipped. A line may be one
/// byte over the limit, so that its reader sees that it is too long.
pub(crate) fn batch_lines(path: &str) -> Result<Vec<(usize, Vec<u8>)>, Stop> {
    let bytes_max = BATCH_BYTES_MAX;
    let bytes = match path {
        "-" => read_up_to("batch", "stdin", stdin().lock(), bytes_max)?,
        path => read_file("batch", path, bytes_max)?,
    };
    if bytes.len() > bytes_max {
        return Err(too_large("batch", bytes_max).into());
    }
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..);
    let full = lines.filter(|(line, _)| !line.iter().all(u8::is_ascii_whitespace));
    let lines: Vec<(usize, Vec<u8>)> = full.map(|(line, number)| (number, line.to_vec())).collect();
    if lines.is_empty() {
        return Err(Refusal::new(Code::BodyEmpty, "batch", "is empty, lines were expected").into());
    }
    Ok(lines)
}

/// Asks whoever sits at the terminal for a yes or a no. None: neither was said.
pub(crate) fn yes_or_no(out: &Out, prompt: &str) -> Result<Option<bool>, Stop> {
    Ok(match line(out, &format!("{prompt} [y/n]"))?.to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    })
}

/// Asks whoever sits at the terminal for a line; empty when they say nothing.
pub(crate) fn line(out: &Out, prompt: &str) -> Result<String, Stop> {
    out.flush()?;
    let talk = || {
        let mut talk = stderr().lock();
        write!(talk, "{} ", holdpoint_graph::printable(prompt, 500))?;
        talk.flush()?;
        let mut line = String::new();
        stdin().lock().read_line(&mut line)?;
        Ok(line)
    };
    let line = talk().map_err(|fault: std::io::Error| cannot_read("answer", "stdin", &fault))?;
    Ok(line.trim().to_owned())
}

fn read_file(field: &str, path: &str, bytes_max: usize) -> Result<Vec<u8>, Stop> {
    let file = File::open(path).map_err(|fault| cannot_read(field, path, &fault))?;
    read_up_to(field, path, file, bytes_max)
}

fn read_up_to(
    field: &str,
    place: &str,
    from: impl Read,
    bytes_max: usize,
) -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    let one_more = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    from.take(one_more)
        .read_to_end(&mut bytes)
        .map_err(|fault| cannot_read(field, place, &fault))?;
    Ok(bytes)
}

fn cannot_read(field: &str, place: &str, fault: &std::io::Error) -> Stop {
    let place = holdpoint_graph::printable(place, 200);
    Failure::usage(field, format!("{field} cannot be read from {place}: {fault}")).into()
}

fn too_large(field: &str, bytes_max: usize) -> Refusal {
    Refusal::new(Code::TooLarge, field, format!("has more than {bytes_max} bytes, the limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, &str>) {
        let got = json_argument("input", text, 16);
        let got = match &got {
            Ok(value) => Ok(value.to_string()),
            Err(Stop::Failed(failure)) => Err(failure.code.clone()),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(got.as_deref().map_err(String::as_str), expect, "{text}");
    }

    #[test]
    fn arguments_are_strict_json_within_their_limit() {
        check("{\"a\":1}", Ok("{\"a\":1}"));
        check("{\"a\":\"0123456789\"}", Err("E_TOO_LARGE"));
        check("", Err("E_BODY_EMPTY"));
        check("{} x", Err("E_JSON"));
        check("@/no/such/file", Err("E_USAGE"));
    }

    #[test]
    fn a_file_over_the_limit_is_not_read_to_its_end() {
        check("@/dev/zero", Err("E_TOO_LARGE"));
    }
}
