//! The JSON of one request: a batch line, or the body of an HTTP call.
//!
//! Strict: what is not understood is refused by name, and nothing is dropped in silence. The
//! fields are those of the command line, with underscores.

use std::{fmt, time::Duration};

use holdpoint_graph::{
    Code, ENVELOPE_VERSION, Memory, OnStale, Refusal, json,
    limits::{ANSWER_BYTES_MAX, PAYLOAD_BYTES_MAX},
    nearest, printable, shown,
};
use holdpoint_storage::IfBusy;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::{RunRequest, check::kind_of, parse_duration, parse_time};

const FIELDS: [&str; 24] = [
    "version",
    "graph",
    "input",
    "session",
    "run",
    "key",
    "request",
    "queue",
    "priority",
    "delay",
    "at",
    "expires_in",
    "expires_at",
    "deadline",
    "deadline_at",
    "stale_after",
    "on_stale",
    "if_busy",
    "tags",
    "max_steps",
    "budget_steps",
    "budget_time",
    "memory",
    "allow_unknown",
];

/// Reads one request from JSON of at most 1 MiB. A field that is null counts as absent.
///
/// ```
/// use holdpoint_producer::{RunRequest, parse_item};
/// let request = parse_item(br#"{"graph": "ship", "input": {"order": 7}, "delay": "5s"}"#);
/// assert!(request.is_ok());
/// let refusal = parse_item(br#"{"graph": "ship", "sesion": "s"}"#).unwrap_err();
/// assert_eq!(refusal.to_string(), "sesion is no field of a request, did you mean session?");
/// ```
///
/// # Errors
/// `E_TOO_LARGE`, `E_BODY_EMPTY`, `E_JSON`, `E_DUP_KEY`, `E_UNKNOWN_FIELD`, `E_TYPE`,
/// `E_ENVELOPE_VERSION`, and what the values themselves are refused with.
pub fn parse_item(text: &[u8]) -> Result<RunRequest, Refusal> {
    if text.len() > PAYLOAD_BYTES_MAX {
        let message = format!("has {} bytes, the limit is {PAYLOAD_BYTES_MAX}", text.len());
        return Err(Refusal::new(Code::TooLarge, "", message));
    }
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::new(Code::BodyEmpty, "", "is empty, JSON was expected"));
    }
    let fields = fields_of(text, "")?;
    let mut request = RunRequest::new("");
    let mut has_graph = false;
    for (name, raw) in &fields {
        if raw.get() == "null" {
            known(name)?;
            continue;
        }
        has_graph |= name == "graph";
        request = put(request, name, raw)?;
    }
    if !has_graph {
        return Err(Refusal::new(Code::Type, "graph", "is missing, a text was expected"));
    }
    Ok(request)
}

/// Reads several answers: a JSON object of answers by the ids of their questions.
///
/// ```
/// let answers = holdpoint_producer::parse_answers(br#"{"id-1": {"approve": true}, "id-2": 7}"#);
/// assert_eq!(answers.unwrap()[1], ("id-2".to_owned(), 7.into()));
/// ```
///
/// # Errors
/// `E_BODY_EMPTY`, `E_JSON`, `E_TYPE`, `E_DUP_KEY`, and what an answer itself is refused with.
pub fn parse_answers(text: &[u8]) -> Result<Vec<(String, Value)>, Refusal> {
    const FIELD: &str = "answers";
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::new(Code::BodyEmpty, FIELD, "is empty, JSON was expected"));
    }
    let answer = |(id, raw): (String, Box<RawValue>)| {
        let answer = json::parse(raw.get().as_bytes(), ANSWER_BYTES_MAX);
        let within = |refusal: Refusal| refusal.within(&format!("{FIELD}.{}", printable(&id, 80)));
        Ok((id.clone(), answer.map_err(within)?))
    };
    fields_of(text, FIELD)?.into_iter().map(answer).collect()
}

/// The fields of an object, each as its text; none may stand twice.
fn fields_of(text: &[u8], within: &str) -> Result<Vec<(String, Box<RawValue>)>, Refusal> {
    let Fields(fields) = serde_json::from_slice(text).map_err(|fault| {
        if fault.is_data() {
            let message = format!("is no object: {fault}");
            return Refusal::new(Code::Type, within, message);
        }
        // The check of numbers and depth knows better what is wrong with some texts.
        match json::parse(text, PAYLOAD_BYTES_MAX).map_err(|refusal| refusal.within(within)) {
            Err(refusal) if matches!(refusal.code(), Code::Number | Code::Depth) => refusal,
            Err(_) | Ok(_) => Refusal::new(Code::Json, within, format!("is not JSON: {fault}")),
        }
    })?;
    let mut seen = std::collections::BTreeSet::new();
    match fields.iter().find(|(name, _)| !seen.insert(name.as_str())) {
        None => Ok(fields),
        Some((name, _)) => {
            let refusal = Refusal::new(Code::DupKey, printable(name, 40), "stands there twice");
            Err(if within.is_empty() { refusal } else { refusal.within(within) })
        }
    }
}

struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

fn put(mut request: RunRequest, name: &str, raw: &RawValue) -> Result<RunRequest, Refusal> {
    let value = || {
        json::parse(raw.get().as_bytes(), PAYLOAD_BYTES_MAX).map_err(|refusal| refusal.within(name))
    };
    let text = || text(name, value()?);
    let duration = || -> Result<Duration, Refusal> { parse_duration(name, &text()?) };
    let time = || -> Result<i64, Refusal> { parse_time(name, &text()?) };
    match name {
        "version" => version(&value()?)?,
        "graph" => request.graph = text()?,
        "input" => request.input = value()?,
        "session" => request.session = Some(text()?),
        "run" => request.run = Some(text()?),
        "key" => request.key = Some(text()?),
        "request" => request.request = Some(text()?),
        "queue" => request.queue = text()?,
        "priority" => request.priority = priority(&value()?)?,
        "delay" => request.delay = Some(duration()?),
        "at" => request.at_ms = Some(time()?),
        "expires_in" => return Ok(request.expires_in(duration()?)),
        "expires_at" => return Ok(request.expires_at_ms(time()?)),
        "deadline" => return Ok(request.deadline_in(duration()?)),
        "deadline_at" => return Ok(request.deadline_at_ms(time()?)),
        "stale_after" => request.stale_after = Some(duration()?),
        "on_stale" => request.on_stale = parse_on_stale(&text()?)?,
        "if_busy" => request.if_busy = parse_if_busy(&text()?)?,
        "tags" => {
            for (tag, raw) in fields_of(raw.get().as_bytes(), name)? {
                let field = format!("tags.{}", printable(&tag, 40));
                let value = json::parse(raw.get().as_bytes(), PAYLOAD_BYTES_MAX);
                let value = value.map_err(|refusal| refusal.within(&field))?;
                request.tags.insert(tag, self::text(&field, value)?);
            }
        }
        "max_steps" => request.max_steps = Some(count(name, &value()?)?),
        "budget_steps" => request.budget_steps = Some(count(name, &value()?)?),
        "budget_time" => request.budget_time = Some(duration()?),
        "memory" => request.memory = memory(value()?)?,
        "allow_unknown" => request.allow_unknown = flag(name, &value()?)?,
        _ => known(name)?,
    }
    Ok(request)
}

fn known(name: &str) -> Result<(), Refusal> {
    if FIELDS.contains(&name) {
        return Ok(());
    }
    let near = nearest(name, FIELDS.into_iter());
    let near = near.map_or_else(String::new, |near| format!(", did you mean {near}?"));
    let message = format!("is no field of a request{near}");
    Err(Refusal::new(Code::UnknownField, printable(name, 40), message))
}

fn wrong_type(name: &str, found: &Value, expected: &str) -> Refusal {
    let message = format!("is {}, {expected} was expected", kind_of(found));
    Refusal::new(Code::Type, name, message)
}

fn text(name: &str, value: Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong_type(name, &value, "a text"))
        }
    }
}

fn flag(name: &str, value: &Value) -> Result<bool, Refusal> {
    value.as_bool().ok_or_else(|| wrong_type(name, value, "a boolean"))
}

fn count(name: &str, value: &Value) -> Result<u64, Refusal> {
    value.as_u64().ok_or_else(|| match value {
        Value::Number(number) => {
            let number = printable(&number.to_string(), 40);
            Refusal::new(Code::Range, name, format!("is {number}, a whole number was expected"))
        }
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            wrong_type(name, value, "a number")
        }
    })
}

/// Whatever is no priority is out of its range, words too.
fn priority(value: &Value) -> Result<i64, Refusal> {
    value.as_i64().ok_or_else(|| {
        let message = format!("is {}, it must be 0 to 9", printable(&value.to_string(), 40));
        Refusal::new(Code::Range, "priority", message)
    })
}

fn version(value: &Value) -> Result<(), Refusal> {
    if *value == ENVELOPE_VERSION {
        return Ok(());
    }
    let found = printable(&value.to_string(), 40);
    let message = format!("is {found}; supported: {ENVELOPE_VERSION}");
    Err(Refusal::new(Code::EnvelopeVersion, "version", message))
}

fn memory(value: Value) -> Result<Memory, Refusal> {
    let expected = "\"all\", \"none\" or a list of keys";
    match &value {
        Value::String(word) if word == "all" => return Ok(Memory::All),
        Value::String(word) if word == "none" => return Ok(Memory::None),
        Value::String(word) => return Err(no_word("memory", word, &["all", "none"])),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {}
    }
    let keys = serde_json::from_value(value.clone());
    keys.map(Memory::Keys).map_err(|_| wrong_type("memory", &value, expected))
}

/// Reads the word of `--on-stale`: `resume`, `ask` or `cancel`.
///
/// # Errors
/// `E_RANGE` with the words that exist.
pub fn parse_on_stale(word: &str) -> Result<OnStale, Refusal> {
    match word {
        "resume" => Ok(OnStale::Resume),
        "ask" => Ok(OnStale::Ask),
        "cancel" => Ok(OnStale::Cancel),
        _ => Err(no_word("on_stale", word, &["resume", "ask", "cancel"])),
    }
}

/// Reads the word of `--if-busy`: `enqueue`, `reject`, `interrupt` or `rollback`.
///
/// # Errors
/// `E_RANGE` with the words that exist.
pub fn parse_if_busy(word: &str) -> Result<IfBusy, Refusal> {
    match word {
        "enqueue" => Ok(IfBusy::Enqueue),
        "reject" => Ok(IfBusy::Reject),
        "interrupt" => Ok(IfBusy::Interrupt),
        "rollback" => Ok(IfBusy::Rollback),
        _ => Err(no_word("if_busy", word, &["enqueue", "reject", "interrupt", "rollback"])),
    }
}

fn no_word(field: &str, found: &str, words: &[&str]) -> Refusal {
    let message = format!("is {}, it must be one of {}", shown(found, 40), words.join(", "));
    Refusal::new(Code::Range, field, message)
}

#[cfg(test)]
mod tests;
