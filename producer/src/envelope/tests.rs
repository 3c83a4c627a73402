//! What is read, and what is refused by name.

use super::*;

fn check(text: &str, expect: Result<(), (&str, &str)>) {
    let got = parse_item(text.as_bytes()).and_then(|request| request.check(1_790_000_000_000));
    let got = got.as_ref().map_err(|refusal| (refusal.code().as_str(), refusal.field()));
    assert_eq!(got, expect.as_ref().map(|()| &()).map_err(|fault| *fault), "{text}");
}

#[test]
fn every_field_is_read() {
    let text = r#"{"version": 1, "graph": "g", "input": {"n": 9007199254740993},
        "session": "s", "run": "r", "key": "k", "request": "q", "queue": "fast",
        "priority": 9, "delay": "5s", "expires_in": "1m", "deadline": "1h",
        "stale_after": "2d", "on_stale": "resume", "if_busy": "reject",
        "tags": {"team": "blue"}, "max_steps": 7, "budget_steps": 5, "budget_time": "30m",
        "memory": ["n"], "allow_unknown": true}"#;
    let expect = RunRequest::new("g")
        .input(serde_json::json!({ "n": 9_007_199_254_740_993_i64 }))
        .session("s")
        .run("r")
        .key("k")
        .request("q")
        .queue("fast")
        .priority(9)
        .delay(Duration::from_secs(5))
        .expires_in(Duration::from_secs(60))
        .deadline_in(Duration::from_secs(3_600))
        .stale_after(Duration::from_secs(2 * 86_400))
        .on_stale(OnStale::Resume)
        .if_busy(IfBusy::Reject)
        .tag("team", "blue")
        .max_steps(7)
        .budget_steps(5)
        .budget_time(Duration::from_secs(1_800))
        .memory(Memory::Keys(vec!["n".to_owned()]))
        .allow_unknown();
    assert_eq!(parse_item(text.as_bytes()), Ok(expect));
    check(r#"{"graph":"g","input":null,"session":null,"memory":"none"}"#, Ok(()));
    check(r#"{"graph":"g","at":"2026-10-25T00:30:00Z","memory":"all"}"#, Ok(()));
    check(r#"{"graph":"g","expires_at":"2026-10-25T00:30:00Z"}"#, Ok(()));
    check(r#"{"graph":"g","deadline_at":"2026-10-25T00:30:00Z"}"#, Ok(()));
}

#[test]
fn answers_are_read_by_question_and_none_twice() {
    let check = |text: &str, expect: Result<usize, (&str, &str)>| {
        let got = parse_answers(text.as_bytes()).map(|answers| answers.len());
        let got = got.as_ref().map_err(|refusal| (refusal.code().as_str(), refusal.field()));
        assert_eq!(got, expect.as_ref().map_err(|fault| *fault), "{text}");
    };
    check(r#"{"a": null, "b": {"approve": true}}"#, Ok(2));
    check("{}", Ok(0));
    check(" ", Err(("E_BODY_EMPTY", "answers")));
    check("[1]", Err(("E_TYPE", "answers")));
    check("{", Err(("E_JSON", "answers")));
    check(r#"{"a": 1, "a": 2}"#, Err(("E_DUP_KEY", "answers.a")));
    check(r#"{"a": 1, "b": 1e999}"#, Err(("E_NUMBER", "answers.b")));
    let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(ANSWER_BYTES_MAX));
    check(&long, Err(("E_TOO_LARGE", "answers.a")));
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let input = |value: &str| format!(r#"{{"graph":"g","input":{{"a":{value}}}}}"#);
    check("", Err(("E_BODY_EMPTY", "")));
    check("{", Err(("E_JSON", "")));
    check("{} x", Err(("E_JSON", "")));
    check("\u{feff}{}", Err(("E_JSON", "")));
    check("[]", Err(("E_TYPE", "")));
    check("7", Err(("E_TYPE", "")));
    check("{}", Err(("E_TYPE", "graph")));
    check(r#"{"graph":null}"#, Err(("E_TYPE", "graph")));
    check(r#"{"graph":"g","graph":"g"}"#, Err(("E_DUP_KEY", "graph")));
    check(r#"{"graph":"g","gr\u0061ph":"g"}"#, Err(("E_DUP_KEY", "graph")));
    check(r#"{"graph":"g","tags":{"a":"1","a":"2"}}"#, Err(("E_DUP_KEY", "tags.a")));
    check(r#"{"graph":"g","tag":{}}"#, Err(("E_UNKNOWN_FIELD", "tag")));
    check(r#"{"graph":"g","priorty":null}"#, Err(("E_UNKNOWN_FIELD", "priorty")));
    check(r#"{"graph":"g","version":2}"#, Err(("E_ENVELOPE_VERSION", "version")));
    check(r#"{"graph":"g","version":0}"#, Err(("E_ENVELOPE_VERSION", "version")));
    check(r#"{"graph":"g","version":"1"}"#, Err(("E_ENVELOPE_VERSION", "version")));
    check(r#"{"graph":7}"#, Err(("E_TYPE", "graph")));
    check(r#"{"graph":"g","input":[1]}"#, Err(("E_TYPE", "input")));
    check(r#"{"graph":"g","session":["s"]}"#, Err(("E_TYPE", "session")));
    check(r#"{"graph":"g","tags":["a=b"]}"#, Err(("E_TYPE", "tags")));
    check(r#"{"graph":"g","tags":{"a":1}}"#, Err(("E_TYPE", "tags.a")));
    check(r#"{"graph":"g","delay":5}"#, Err(("E_TYPE", "delay")));
    check(r#"{"graph":"g","memory":{"keys":[]}}"#, Err(("E_TYPE", "memory")));
    check(r#"{"graph":"g","max_steps":"7"}"#, Err(("E_TYPE", "max_steps")));
    check(r#"{"graph":"g","budget_steps":"7"}"#, Err(("E_TYPE", "budget_steps")));
    check(r#"{"graph":"g","budget_steps":0}"#, Err(("E_RANGE", "budget_steps")));
    check(r#"{"graph":"g","budget_steps":-1}"#, Err(("E_RANGE", "budget_steps")));
    check(r#"{"graph":"g","budget_steps":1000001}"#, Err(("E_RANGE", "budget_steps")));
    check(r#"{"graph":"g","budget_time":60}"#, Err(("E_TYPE", "budget_time")));
    check(r#"{"graph":"g","budget_time":"0s"}"#, Err(("E_RANGE", "budget_time")));
    check(r#"{"graph":"g","budget_time":"2000d"}"#, Err(("E_RANGE", "budget_time")));
    check(r#"{"graph":"g","budget_time":"-1s"}"#, Err(("E_DURATION", "budget_time")));
    check(r#"{"graph":"g","allow_unknown":"yes"}"#, Err(("E_TYPE", "allow_unknown")));
    check(r#"{"graph":"g","max_steps":1.5}"#, Err(("E_RANGE", "max_steps")));
    check(r#"{"graph":"g","if_busy":"queue"}"#, Err(("E_RANGE", "if_busy")));
    check(r#"{"graph":"g","on_stale":"fail"}"#, Err(("E_RANGE", "on_stale")));
    check(r#"{"graph":"g","priority":"high"}"#, Err(("E_RANGE", "priority")));
    check(r#"{"graph":"g","at":"2026-10-25T00:30:00"}"#, Err(("E_TIME", "at")));
    check(r#"{"graph":"g","delay":"soon"}"#, Err(("E_DURATION", "delay")));
    check(&input("18446744073709551616"), Err(("E_NUMBER", "input")));
    check(&input("1e999"), Err(("E_NUMBER", "input")));
    check(&input("NaN"), Err(("E_NUMBER", "")));
    check(&input("\"\\ud800\""), Err(("E_JSON", "input")));
    check(&input(&deep(63)), Ok(()));
    check(&input(&deep(64)), Err(("E_DEPTH", "input")));
    check(&input(&deep(100_000)), Err(("E_DEPTH", "input")));
    check(&input(&format!("\"{}\"", "x".repeat(1 << 20))), Err(("E_TOO_LARGE", "")));
}
