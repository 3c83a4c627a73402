//! The checks of single values, each with its stable code and the limit it names.

use std::{collections::BTreeMap, time::Duration};

use holdpoint_graph::{Code, KeyId, Refusal, State, json, limits, shown};
use holdpoint_storage::When;
use serde_json::Value;

/// Checks a value that becomes a state or a part of it: an object, or null for the empty one.
pub(crate) fn object(field: &str, value: &Value) -> Result<State, Refusal> {
    json::check_depth(value).map_err(|refusal| refusal.within(field))?;
    State::from_json(value.clone()).ok_or_else(|| {
        let message = format!("is {}, an object was expected", kind_of(value));
        Refusal::new(Code::Type, field, message)
    })
}

pub(crate) fn input(value: &Value) -> Result<State, Refusal> {
    let state = object("input", value)?;
    let (bytes, max) = (state.json_len(), limits::PAYLOAD_BYTES_MAX);
    if bytes > max {
        let message = format!("has {bytes} bytes, the limit is {max}");
        return Err(Refusal::new(Code::TooLarge, "input", message));
    }
    Ok(state)
}

/// What a JSON value is, in words.
pub(crate) const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A duration in whole ms; one too long to be counted becomes the longest.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn is_near(field: &str, when: When, now_ms: i64) -> Result<(), Refusal> {
    let max = limits::DELAY_MS_MAX;
    let ahead = when.at_ms(now_ms).saturating_sub(now_ms);
    if ahead > max {
        let message = format!("is {ahead} ms ahead, the most is {max} (five years)");
        return Err(Refusal::new(Code::Range, field, message));
    }
    Ok(())
}

/// An end must be ahead of the store's time, and of the start.
pub(crate) fn end_is_ahead(
    field: &str,
    end: Option<When>,
    start: When,
    now_ms: i64,
) -> Result<(), Refusal> {
    let Some(end) = end else { return Ok(()) };
    let field = match end {
        When::In(_) if field == "expires" => "expires_in",
        When::At(_) if field == "expires" => "expires_at",
        When::In(_) => "deadline",
        When::At(_) => "deadline_at",
    };
    let (end_ms, start_ms) = (end.at_ms(now_ms), start.at_ms(now_ms));
    if end_ms <= now_ms {
        let message = format!("is {}, which has passed", crate::format_time(end_ms));
        return Err(Refusal::new(Code::DeadlinePast, field, message));
    }
    if end_ms <= start_ms {
        let message = format!("is {} ms before the start", start_ms.saturating_sub(end_ms));
        return Err(Refusal::new(Code::DeadlinePast, field, message));
    }
    is_near(field, end, now_ms.max(start_ms))
}

pub(crate) fn priority(priority: i64) -> Result<u8, Refusal> {
    let max = limits::PRIORITY_MAX;
    u8::try_from(priority).ok().filter(|priority| *priority <= max).ok_or_else(|| {
        Refusal::new(Code::Range, "priority", format!("is {priority}, it must be 0 to {max}"))
    })
}

/// Checks a step limit.
pub(crate) fn steps(max_steps: u64) -> Result<u64, Refusal> {
    number_of_steps("max_steps", max_steps)
}

pub(crate) fn budget_steps(steps: u64) -> Result<u64, Refusal> {
    number_of_steps("budget_steps", steps)
}

fn number_of_steps(field: &str, steps: u64) -> Result<u64, Refusal> {
    let max = limits::STEPS_MAX;
    if (1..=max).contains(&steps) {
        return Ok(steps);
    }
    let message = format!("is {steps}, it must be 1 to {max}");
    Err(Refusal::new(Code::Range, field, message))
}

pub(crate) fn stale_after(after: Duration) -> Result<i64, Refusal> {
    some_time("stale_after", after)
}

pub(crate) fn budget_time(time: Duration) -> Result<u64, Refusal> {
    some_time("budget_time", time).map(i64::unsigned_abs)
}

/// A time of at least a ms, in ms.
fn some_time(field: &str, time: Duration) -> Result<i64, Refusal> {
    let (ms, max) = (millis(time), limits::DELAY_MS_MAX);
    if (1..=max).contains(&ms) {
        return Ok(ms);
    }
    let message = format!("is {ms} ms, it must be 1 to {max}");
    Err(Refusal::new(Code::Range, field, message))
}

pub(crate) fn tags(tags: &BTreeMap<String, String>) -> Result<Vec<String>, Refusal> {
    let (count, max) = (tags.len(), limits::TAGS_MAX);
    if count > max {
        let message = format!("has {count} tags, the most is {max}");
        return Err(Refusal::new(Code::Range, "tags", message));
    }
    tags.iter().map(|(tag, value)| check_tag(tag, value)).collect()
}

/// Checks a tag and joins it as it is stored and filtered: `tag=value`. A tag is made like an id,
/// its value has at most 128 bytes and no control characters.
///
/// # Errors
/// `E_ID` for the tag, `E_RANGE` or `E_TOO_LARGE` for its value.
pub fn check_tag(tag: &str, value: &str) -> Result<String, Refusal> {
    KeyId::new(tag).map_err(|refusal| Refusal::new(Code::Id, "tags", refusal.message()))?;
    let (bytes, max) = (value.len(), limits::ID_BYTES_MAX);
    if bytes > max {
        let message = format!("has {bytes} bytes, the limit is {max}");
        return Err(Refusal::new(Code::TooLarge, format!("tags.{tag}"), message));
    }
    if value.chars().any(char::is_control) {
        let message = format!("is {}, which has control characters", shown(value, 40));
        return Err(Refusal::new(Code::Range, format!("tags.{tag}"), message));
    }
    Ok(format!("{tag}={value}"))
}
