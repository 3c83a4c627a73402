//! Reading JSON from outside, and checking values that nodes return.
//!
//! The rules are stricter than the parser's: nothing is accepted that would come back changed.
//! Called by the producer for payloads and answers, by the command line, and by the engine for
//! whatever a node returns.

use serde_json::Value;

use crate::{Code, Refusal, limits::JSON_DEPTH_MAX, printable};

/// Parses a JSON document of at most `bytes_max` bytes.
///
/// Numbers are i64, u64, or decimals that a double gives back digit for digit.
///
/// # Errors
/// `E_TOO_LARGE`, `E_BODY_EMPTY`, `E_DEPTH`, `E_JSON` with line and column, `E_NUMBER` with the
/// number and its place.
pub fn parse(text: &[u8], bytes_max: usize) -> Result<Value, Refusal> {
    if text.len() > bytes_max {
        let message = format!("has {} bytes, the limit is {bytes_max}", text.len());
        return Err(Refusal::new(Code::TooLarge, "", message));
    }
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::new(Code::BodyEmpty, "", "is empty, JSON was expected"));
    }
    scan(text)?;
    check_numbers(text)?;
    serde_json::from_slice(text).map_err(|fault| {
        let message = format!("is not JSON: {fault}");
        Refusal::new(Code::Json, "", message)
    })
}

/// Refuses too deep a text before the parser sees it. The text need not be valid JSON.
fn scan(text: &[u8]) -> Result<(), Refusal> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > JSON_DEPTH_MAX {
                    return Err(too_deep(""));
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

fn too_deep(field: &str) -> Refusal {
    let message = format!("is nested more than {JSON_DEPTH_MAX} levels deep");
    Refusal::new(Code::Depth, field, message)
}

/// Finds the first number that a double or a 64-bit integer would change. What is no number at
/// all is left to the parser.
fn check_numbers(text: &[u8]) -> Result<(), Refusal> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at),
            b'-' | b'0'..=b'9' => {
                let rest = text.get(at..).unwrap_or_default();
                let is_part = |b: &u8| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let len = rest.iter().take_while(|b| is_part(b)).count();
                let number = std::str::from_utf8(rest.get(..len).unwrap_or_default());
                check_number(number.unwrap_or_default(), at)?;
                at += len;
            }
            b'N' | b'I' => {
                let rest = text.get(at..).unwrap_or_default();
                if let Some(word) =
                    ["NaN", "Infinity"].iter().find(|w| rest.starts_with(w.as_bytes()))
                {
                    let message = format!("holds {word} at byte {at}, which is no JSON number");
                    return Err(Refusal::new(Code::Number, "", message));
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// The place after the string that begins at `at`.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = text.get(end) {
        match byte {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    end
}

fn check_number(number: &str, at: usize) -> Result<(), Refusal> {
    let is_integer = !number.contains(['.', 'e', 'E']);
    let kept = if is_integer {
        number.parse::<i64>().is_ok()
            || number.parse::<u64>().is_ok()
            || number.parse::<f64>().is_err()
    } else {
        number.parse::<f64>().map_or(true, |double| {
            double.is_finite() && digits(&format!("{double:e}")) == digits(number)
        })
    };
    if kept {
        return Ok(());
    }
    let message = format!(
        "holds the number {} at byte {at}, which would lose digits; send it as a string",
        printable(number, 60)
    );
    Err(Refusal::new(Code::Number, "", message))
}

/// The significant digits and the exponent of a decimal, so that equal values compare equal.
fn digits(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX / 2);
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return (String::new(), 0);
    }
    let leading = i64::try_from(all.len() - significant.len()).unwrap_or(i64::MAX);
    let places = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let scale = exponent.saturating_add(places).saturating_sub(leading);
    (significant.trim_end_matches('0').to_owned(), scale)
}

/// Checks a value made in memory: depth, and keys and lists on the way for the message.
///
/// A `Value` holds no non-finite number, so those are refused where one is made of a node's type.
///
/// # Errors
/// `E_DEPTH` with the path of the place that is too deep.
pub fn check_depth(value: &Value) -> Result<(), Refusal> {
    check_depth_below(value, 1)
}

/// [`check_depth`] of a value that stands at level `level` of another, whose root is level 1.
///
/// # Errors
/// As [`check_depth`].
pub fn check_depth_below(value: &Value, level: usize) -> Result<(), Refusal> {
    let mut path = Vec::new();
    if depth_fits(value, level, &mut path) {
        return Ok(());
    }
    Err(too_deep(&path_text(&path)))
}

enum Part<'a> {
    Key(&'a str),
    Index(usize),
}

fn depth_fits<'a>(value: &'a Value, depth: usize, path: &mut Vec<Part<'a>>) -> bool {
    let is_container = value.is_array() || value.is_object();
    if !is_container {
        return true;
    }
    if depth > JSON_DEPTH_MAX {
        return false;
    }
    let mut fits = |part: Part<'a>, inner: &'a Value| {
        path.push(part);
        let fits = depth_fits(inner, depth + 1, path);
        if fits {
            path.pop();
        }
        fits
    };
    match value {
        Value::Array(items) => items.iter().enumerate().all(|(i, v)| fits(Part::Index(i), v)),
        Value::Object(map) => map.iter().all(|(k, v)| fits(Part::Key(k), v)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn path_text(path: &[Part<'_>]) -> String {
    let mut text = String::new();
    for part in path.iter().take(8) {
        match part {
            Part::Key(key) if text.is_empty() => text.push_str(&printable(key, 40)),
            Part::Key(key) => text.push_str(&format!(".{}", printable(key, 40))),
            Part::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    if path.len() > 8 {
        text.push('…');
    }
    text
}

/// The JSON text of a value; object keys are in byte order, so equal values give equal bytes.
///
/// # Panics
/// Never: a JSON value always has a text.
#[must_use]
pub fn to_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value always has a text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, Code>) {
        let got = parse(text.as_bytes(), 1_000_000);
        let got = got.as_ref().map(ToString::to_string).map_err(Refusal::code);
        assert_eq!(got.as_deref(), expect.as_ref().map(|text| *text), "{text}");
    }

    #[test]
    fn numbers_come_back_digit_for_digit_or_are_refused() {
        check("130775545883395173", Ok("130775545883395173"));
        check("9007199254740993", Ok("9007199254740993"));
        check("18446744073709551615", Ok("18446744073709551615"));
        check("-9223372036854775808", Ok("-9223372036854775808"));
        check("0.1", Ok("0.1"));
        check("-0.0", Ok("-0.0"));
        check("1.0", Ok("1.0"));
        check("1.50", Ok("1.5"));
        check("100e2", Ok("10000.0"));
        check("18446744073709551616", Err(Code::Number));
        check("123456789.123456789", Err(Code::Number));
        check("[1, {\"a\": 0.1000000000000000055511151231257827}]", Err(Code::Number));
        check("{\"a\": \"18446744073709551616\"}", Ok("{\"a\":\"18446744073709551616\"}"));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        check("", Err(Code::BodyEmpty));
        check(" \n", Err(Code::BodyEmpty));
        check("{} x", Err(Code::Json));
        check("\u{feff}{}", Err(Code::Json));
        check("{\"a\":", Err(Code::Json));
        check("\"\\ud800\"", Err(Code::Json));
        check("NaN", Err(Code::Number));
        check("[-Infinity]", Err(Code::Number));
        check("1e999", Err(Code::Number));
        check("--1", Err(Code::Json));
        let fault = parse(b"{\n \"a\": tru}", 100).expect_err("not JSON");
        assert!(fault.message().contains("line 2"), "{fault}");
    }

    #[test]
    fn depth_is_counted_from_the_root() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(64).as_bytes(), 1_000_000).is_ok());
        check(&nested(65), Err(Code::Depth));
        check(&"[".repeat(100_000), Err(Code::Depth));
        check(&format!("[\"{}\"]", "[".repeat(100)), Ok(&format!("[\"{}\"]", "[".repeat(100))));
    }

    #[test]
    fn a_value_that_is_too_deep_is_named_by_its_path() {
        let mut value = Value::from(7);
        for _ in 0..70 {
            value = Value::from(vec![value]);
        }
        let state = serde_json::json!({ "ok": 1, "deep": value });
        let fault = check_depth(&state).expect_err("too deep");
        assert!(fault.field().starts_with("deep[0][0]"), "{fault}");
        assert!(check_depth(&serde_json::json!({ "a": [[1]] })).is_ok());
    }
}
