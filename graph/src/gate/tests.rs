//! Questions and answers.

use serde_json::{Value, json};

use super::*;
use crate::{Code, State};

#[test]
fn a_question_shows_the_state() {
    let state = State::from_json(json!({ "amount": 12, "who": "Ann" })).unwrap();
    let shown = Question::new("Charge {amount} to {who}? {\"a\":1} {none} {").shown(&state);
    assert_eq!(shown, "Charge 12 to Ann? {\"a\":1} {none} {");
}

#[test]
fn an_answer_that_does_not_fit_is_refused_with_its_path() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let fault = check_answer(Some(&schema), &json!({ "n": "x" })).expect_err("no integer");
    assert_eq!((fault.code(), fault.field()), (Code::Schema, "answer/n"));
    assert!(check_answer(Some(&schema), &json!({ "n": 1 })).is_ok());
    assert!(check_answer(None, &Value::Null).is_ok());
}
