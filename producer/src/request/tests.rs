//! What a request is refused for, by table.

use super::*;

const NOW_MS: i64 = 1_790_000_000_000;

fn check(request: RunRequest, expect: Result<(), (&str, &str)>) {
    let got = request.check(NOW_MS);
    let got = got.as_ref().map_err(|refusal| (refusal.code().as_str(), refusal.field()));
    assert_eq!(got, expect.as_ref().map(|()| &()).map_err(|fault| *fault), "{request:?}");
}

fn g() -> RunRequest {
    RunRequest::new("g")
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

#[test]
fn ids_are_checked() {
    for bad in ["", "../x", "a{b}", "a b", "a:b", "-a", "a\u{1b}", &"x".repeat(129)] {
        check(RunRequest::new(bad), Err(("E_ID", "graph")));
        check(g().session(bad), Err(("E_ID", "session")));
        check(g().run(bad), Err(("E_ID", "run")));
        check(g().key(bad), Err(("E_ID", "key")));
        check(g().queue(bad), Err(("E_ID", "queue")));
        check(g().tag(bad, "v"), Err(("E_ID", "tags")));
    }
    check(RunRequest::new("x".repeat(128)), Ok(()));
}

#[test]
fn numbers_and_times_are_within_their_ranges() {
    for good in [0, 4, 9] {
        check(g().priority(good), Ok(()));
    }
    for bad in [-1, 10, 999, i64::MAX] {
        check(g().priority(bad), Err(("E_RANGE", "priority")));
    }
    check(g().max_steps(0), Err(("E_RANGE", "max_steps")));
    check(g().budget_steps(0), Err(("E_RANGE", "budget_steps")));
    check(g().budget_steps(limits::STEPS_MAX + 1), Err(("E_RANGE", "budget_steps")));
    check(g().budget_time(Duration::ZERO), Err(("E_RANGE", "budget_time")));
    check(g().budget_time(Duration::from_micros(999)), Err(("E_RANGE", "budget_time")));
    check(g().budget_time(Duration::MAX), Err(("E_RANGE", "budget_time")));
    check(g().budget_steps(1).budget_time(Duration::from_millis(1)), Ok(()));
    check(g().max_steps(limits::STEPS_MAX + 1), Err(("E_RANGE", "max_steps")));
    check(g().stale_after(Duration::ZERO), Err(("E_RANGE", "stale_after")));
    check(g().delay(Duration::from_millis(2_147_483_648)), Ok(()));
    check(g().delay(days(5 * 365)), Ok(()));
    check(g().delay(days(10 * 365)), Err(("E_RANGE", "delay")));
    check(g().delay(Duration::MAX), Err(("E_RANGE", "delay")));
    check(g().at_ms(0), Ok(()));
    check(g().at_ms(i64::MAX), Err(("E_RANGE", "at")));
    check(g().at_ms(NOW_MS).delay(days(1)), Err(("E_RANGE", "delay")));
}

#[test]
fn an_end_is_ahead_of_now_and_of_the_start() {
    check(g().expires_at_ms(NOW_MS), Err(("E_DEADLINE_PAST", "expires_at")));
    check(g().expires_in(Duration::ZERO), Err(("E_DEADLINE_PAST", "expires_in")));
    check(g().deadline_at_ms(NOW_MS - 1), Err(("E_DEADLINE_PAST", "deadline_at")));
    check(g().delay(days(2)).deadline_in(days(1)), Err(("E_DEADLINE_PAST", "deadline")));
    check(g().delay(days(2)).expires_in(days(2)), Err(("E_DEADLINE_PAST", "expires_in")));
    check(g().delay(days(2)).expires_in(days(3)).deadline_in(days(4)), Ok(()));
    check(g().at_ms(1).expires_in(days(1)), Ok(()));
    check(g().deadline_in(Duration::MAX), Err(("E_RANGE", "deadline")));
}

#[test]
fn an_input_is_an_object_that_can_be_stored() {
    check(g().input(Value::Null), Ok(()));
    check(g().input(json!({})), Ok(()));
    for bad in [json!(7), json!([]), json!("{}"), json!(false)] {
        check(g().input(bad), Err(("E_TYPE", "input")));
    }
    // The braces, the key and the quotes are 8 bytes.
    let text = "x".repeat(limits::PAYLOAD_BYTES_MAX - 8);
    check(g().input(json!({ "a": text })), Ok(()));
    check(g().input(json!({ "a": format!("{text}x") })), Err(("E_TOO_LARGE", "input")));
    let mut deep = json!(1);
    for _ in 0..63 {
        deep = json!([deep]);
    }
    check(g().input(json!({ "a": deep })), Ok(()));
    let refusal = g().input(json!({ "a": [deep] })).check(0).unwrap_err();
    assert_eq!(refusal.code(), Code::Depth);
    assert!(refusal.field().starts_with("input.a[0]"), "{refusal}");
}

#[test]
fn tags_have_limits() {
    check(g().tag("team", "blue green"), Ok(()));
    check(g().tag("team", "a\nb"), Err(("E_RANGE", "tags.team")));
    check(g().tag("team", "x".repeat(129)), Err(("E_TOO_LARGE", "tags.team")));
    let many = (0..17).fold(g(), |request, n| request.tag(format!("t{n}"), ""));
    check(many, Err(("E_RANGE", "tags")));
}

#[test]
fn equal_work_has_equal_hashes() {
    let hash = |request: RunRequest| request.prepare(NOW_MS, 9).unwrap().payload_hash;
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let first = hash(g().input(read(r#"{"x":1,"y":2}"#)));
    let same = g().input(read(r#"{ "y": 2, "x": 1 }"#)).priority(9).queue("q").tag("a", "b");
    assert_eq!(hash(same), first);
    let xy = || json!({ "x": 1, "y": 2 });
    for other in [
        g().input(json!({ "x": 2, "y": 2 })),
        RunRequest::new("h").input(xy()),
        g().input(xy()).session("s"),
        g().input(xy()).max_steps(7),
        g().input(xy()).memory(Memory::None),
    ] {
        assert_ne!(hash(other), first);
    }
}

#[test]
fn a_request_id_names_the_run_when_nothing_else_does() {
    let names = |request: RunRequest| {
        let new = request.prepare(NOW_MS, 9).unwrap();
        (new.run.to_string(), new.request.to_string())
    };
    assert_eq!(names(g().request("q")), ("q".to_owned(), "q".to_owned()));
    assert_eq!(names(g().run("r").request("q")), ("r".to_owned(), "q".to_owned()));
    let (run, request) = names(g());
    assert_eq!(run, request);
    assert_ne!(names(g().run("r")).1, "r");
}
