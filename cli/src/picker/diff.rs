//! Values as lines, `path: value`, and what an edit changes of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A line of values as they are, or as an edit leaves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// It stays.
    Same(String),
    /// It goes.
    Gone(String),
    /// It comes.
    New(String),
}

/// The lines of values, with an edit's next to those that they replace.
pub(crate) fn lines(values: &Map<String, Value>, set: &Map<String, Value>) -> Vec<Line> {
    let mut edited = values.clone();
    edited.extend(set.clone());
    let (before, after) = (flat(values), flat(&edited));
    let paths: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut lines = Vec::new();
    for path in paths {
        let line = |value: &String| format!("{path}: {value}");
        match (before.get(path), after.get(path)) {
            (Some(old), Some(new)) if old == new => lines.push(Line::Same(line(old))),
            (old, new) => {
                lines.extend(old.map(|old| Line::Gone(line(old))));
                lines.extend(new.map(|new| Line::New(line(new))));
            }
        }
    }
    lines
}

/// Each value that holds no others, under its path.
fn flat(values: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    for (key, value) in values {
        put(key.clone(), value, &mut flat);
    }
    flat
}

fn put(path: String, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| put(format!("{path}.{key}"), value, flat));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(n, item)| put(format!("{path}[{n}]"), item, flat));
        }
        value => drop(flat.insert(path, value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn check(values: Value, set: Value, expect: &[&str]) {
        let lines = lines(values.as_object().unwrap(), set.as_object().unwrap());
        let text = |line: &Line| match line {
            Line::Same(text) => format!("  {text}"),
            Line::Gone(text) => format!("- {text}"),
            Line::New(text) => format!("+ {text}"),
        };
        assert_eq!(lines.iter().map(text).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn an_edit_stands_beside_what_it_replaces() {
        let order = json!({ "amount": 50, "to": { "name": "Ann", "tags": ["a", "b"] } });
        check(
            order.clone(),
            json!({}),
            &["  amount: 50", "  to.name: \"Ann\"", "  to.tags[0]: \"a\"", "  to.tags[1]: \"b\""],
        );
        check(
            order.clone(),
            json!({ "amount": 5, "to": { "name": "Ann", "tags": ["a"] } }),
            &[
                "- amount: 50",
                "+ amount: 5",
                "  to.name: \"Ann\"",
                "  to.tags[0]: \"a\"",
                "- to.tags[1]: \"b\"",
            ],
        );
        check(json!({}), json!({ "note": [] }), &["+ note: []"]);
    }
}
