//! The picker as a function of keys.

use holdpoint_graph::{GraphId, InterruptId, InterruptKind, RunId};
use holdpoint_producer::Timestamp;
use serde_json::json;

use super::{
    draw::{Frame, draw},
    keys::keys,
    *,
};
use crate::paint::Paint;

fn row(run: &str) -> GateRow {
    let args = json!({ "amount": 50, "customer": "Ann" });
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let open = InterruptView {
        interrupt: InterruptId::new("i1").unwrap(),
        node: Some("c".to_owned()),
        gate: Some("refund".to_owned()),
        kind: InterruptKind::Gate,
        question: format!("Refund 50 to {run}?"),
        schema: None,
        allowed: words(&["approve", "reject", "edit", "later"]),
        opened_at: Timestamp(0),
        deadline: Some(Timestamp(7_500_000)),
        assignees: words(&["ann"]),
        groups: words(&["finance"]),
        quorum: 1,
        votes: Vec::new(),
        args: Some(args.as_object().unwrap().clone().into()),
        editable: words(&["amount"]),
        comment_on: words(&["reject"]),
        reminder: None,
        args_hash: "h1".to_owned(),
    };
    let (run, graph) = (RunId::new(run).unwrap(), GraphId::new("refund").unwrap());
    GateRow { session: run.to_string(), run, graph, open }
}

fn picker() -> Picker {
    Picker::new(vec![row("r1"), row("r2"), row("r3")], false)
}

/// Presses keys, as a terminal sends them; gives the last action.
fn press(picker: &mut Picker, sent: &str) -> Action {
    let pressed = keys(&mut sent.as_bytes().to_vec());
    pressed.into_iter().map(|key| picker.press(key)).last().unwrap()
}

fn shown(picker: &Picker) -> String {
    let paint = Paint::new(false);
    let frame = Frame { columns: 72, lines: 20, now_ms: 300_000, by: "ann", paint };
    draw(picker, frame).join("\n")
}

/// The answer that keys come to, from the list on.
fn check(sent: &str, run: &str, answer: &Value, comment: Option<&str>) {
    let action = press(&mut picker(), sent);
    let Action::Send(reply) = action else { panic!("{sent:?} sends nothing: {action:?}") };
    assert_eq!(reply.row, row(run), "{sent:?}: bound to what was shown");
    assert_eq!((&reply.answer, reply.comment.as_deref()), (answer, comment), "{sent:?}");
}

#[test]
fn keys_lead_to_the_answers_of_a_question() {
    check("\ra", "r1", &json!({ "approve": true }), None);
    check("jj\ra", "r3", &json!({ "approve": true }), None);
    check("\x1b[B\rl", "r2", &json!({ "choice": "later" }), None);
    check("\rja", "r2", &json!({ "approve": true }), None);
    check("jjjjk\ra", "r2", &json!({ "approve": true }), None);
    check("\rcok\ra", "r1", &json!({ "approve": true }), Some("ok"));
    check("\rrtwice\x7fe\r", "r1", &json!({ "approve": false }), Some("twice"));
    check("\rr\rno\r", "r1", &json!({ "approve": false }), Some("no"));
    let edit = json!({ "choice": "edit", "set": { "amount": 5 } });
    check(
        "\re\x15{\"amount\": 5, \"customer\": \"Ann\"}\r\r",
        "r1",
        &json!({
            "choice": "edit", "set": { "amount": 5, "customer": "Ann" },
        }),
        None,
    );
    check("\re\x7f\x7f\x7f5}\r\r", "r1", &edit, None);
    check("\re\x15x\r\x15{\"amount\":5}\r\r", "r1", &edit, None);
    check("\re\x15{\"amount\":6}\r\x1b\x155\x15{\"amount\":5}\r\r", "r1", &edit, None);
}

#[test]
fn other_questions_take_words_outcomes_and_any_json() {
    let mut uncertain = row("r1");
    uncertain.open.kind = InterruptKind::Uncertain;
    uncertain.open.allowed = ["retry", "result", "skip", "fail"].map(str::to_owned).to_vec();
    let mut budget = row("r1");
    budget.open.kind = InterruptKind::Budget;
    budget.open.allowed = ["raise_by", "fail"].map(str::to_owned).to_vec();
    let mut choice = row("r1");
    (choice.open.allowed, choice.open.schema) =
        (Vec::new(), Some(json!({ "enum": ["again", "done", 3] })));
    let mut any = row("r1");
    any.open.allowed = Vec::new();
    for (row, sent, expect) in [
        (&uncertain, "\rr", json!("retry")),
        (&uncertain, "\re{\"id\":7}\r", json!({ "result": { "id": 7 } })),
        (&uncertain, "\rs", json!("skip")),
        (&budget, "\rr20\r", json!({ "raise_by": 20 })),
        (&budget, "\rf", json!("fail")),
        (&choice, "\rd", json!("done")),
        (&choice, "\r3", json!(3)),
        (&any, "\ra[1]\r", json!([1])),
    ] {
        let action = press(&mut Picker::new(vec![row.clone()], false), sent);
        let Action::Send(reply) = action else { panic!("{sent:?} sends nothing: {action:?}") };
        assert_eq!(reply.answer, expect, "{sent:?}");
    }
}

#[test]
fn what_is_no_answer_sends_nothing() {
    for sent in
        ["a", "j", "\r", "\rx", "\re\r", "\re{\r", "\rr\r", "\rc", "\rr\x1b", "\re\x7f5}\rx"]
    {
        assert_eq!(press(&mut picker(), sent), Action::Draw, "{sent:?}");
    }
    for sent in ["q", "\x1b", "\x03", "\rq", "\r\x03", "\re\x03", "\rr\x04"] {
        assert_eq!(press(&mut picker(), sent), Action::Leave, "{sent:?}");
    }
    let mut one = picker();
    press(&mut one, "\rx");
    assert_eq!(one.note.as_deref(), Some("x is no choice of this question"));
    press(&mut one, "j");
    assert_eq!(one.note.as_deref(), None, "a note is for one look");
}

#[test]
fn a_taken_answer_leads_to_the_next_question() {
    let mut one = picker();
    press(&mut one, "j\ra");
    one.told(Told::Taken, vec![row("r1"), row("r3")], false);
    assert!(shown(&one).contains("Refund 50 to r3?"), "{}", shown(&one));
    one.told(Told::Taken, vec![row("r1")], false);
    assert!(shown(&one).starts_with("1 open question\n> r1"), "{}", shown(&one));
    press(&mut one, "\ra");
    one.told(Told::Taken, Vec::new(), false);
    assert!(one.is_empty());
    assert_eq!(press(&mut one, "j"), Action::Leave);
}

/// An answer is in the list until a worker has taken it, and a vote for as long as it needs more.
#[test]
fn a_question_that_was_answered_is_not_shown_again_until_it_is_another() {
    let mut one = picker();
    press(&mut one, "\ra");
    one.told(Told::Taken, vec![row("r1"), row("r2"), row("r3")], false);
    assert!(shown(&one).starts_with("1 of 2  r2"), "{}", shown(&one));
    press(&mut one, "a");
    let over = Told::Over("E_DECIDED: by bob".to_owned());
    one.told(over, vec![row("r1"), row("r2"), row("r3")], false);
    let text = shown(&one);
    assert!(text.starts_with("1 of 1  r3") && text.contains("E_DECIDED: by bob"), "{text}");
    press(&mut one, "a");
    let mut anew = row("r1");
    anew.open.args_hash = "h2".to_owned();
    one.told(Told::Taken, vec![anew, row("r2"), row("r3")], false);
    assert!(shown(&one).starts_with("1 of 1  r1"), "{}", shown(&one));
}

#[test]
fn a_refused_answer_stays_with_its_question_as_it_is_now() {
    let mut one = picker();
    press(&mut one, "\rja");
    let mut edited = row("r2");
    (edited.open.question, edited.open.args_hash) = ("Refund 9?".to_owned(), "h2".to_owned());
    let why = Told::Refused("E_ARGS_CHANGED: it is another by now".to_owned());
    one.told(why.clone(), vec![row("r1"), edited.clone()], false);
    let text = shown(&one);
    assert!(text.contains("Refund 9?") && text.contains("E_ARGS_CHANGED"), "{text}");
    let Action::Send(reply) = press(&mut one, "a") else { panic!("it sends the answer") };
    assert_eq!(reply.row, edited);
    one.told(why, vec![row("r1")], false);
    assert_eq!(
        one.note.as_deref(),
        Some("E_ARGS_CHANGED: it is another by now"),
        "it is open no more"
    );
}

#[test]
fn the_list_shows_the_questions_around_the_marked_one() {
    assert_eq!(
        shown(&picker()),
        "3 open questions\n\
         > r1  5m ago    in 2h           refund: Refund 50 to r1?\n\
        \x20 r2  5m ago    in 2h           refund: Refund 50 to r2?\n\
        \x20 r3  5m ago    in 2h           refund: Refund 50 to r3?\n\
         ↑ ↓ or j k move · Enter opens · q leaves"
    );
    let rows = (0..100).map(|n| row(&format!("r{n}"))).collect();
    let mut many = Picker::new(rows, true);
    press(&mut many, &"j".repeat(50));
    let text = shown(&many);
    assert!(
        text.starts_with("the first 100 open questions") && text.contains("\n> r50 "),
        "{text}"
    );
    assert!(text.lines().count() < 20, "{text}");
}

#[test]
fn a_question_shows_what_it_is_about_and_what_an_edit_changes() {
    let mut one = picker();
    press(&mut one, "\r");
    assert_eq!(
        shown(&one),
        "1 of 3  r1  refund refund\n\
         Refund 50 to r1?\n\
         opened 5m ago, answered by itself in 2h, asked of ann, finance\n\
        \x20 amount: 50\n\
        \x20 customer: \"Ann\"\n\
         a approve · r reject · e edit · l later\n\
         c comment · j k next, last · Esc list · q leave    as ann"
    );
    press(&mut one, "e\x155");
    assert!(shown(&one).contains("edit, as JSON: 5▏"), "{}", shown(&one));
    press(&mut one, "\x15{\"amount\":5}\r");
    assert_eq!(
        shown(&one),
        "1 of 3  r1  refund refund\n\
         Refund 50 to r1?\n\
         opened 5m ago, answered by itself in 2h, asked of ann, finance\n\
         - amount: 50\n\
         + amount: 5\n\
        \x20 customer: \"Ann\"\n\
         Enter sends the edit as ann · Esc goes back"
    );
}

#[test]
fn text_from_outside_never_reaches_the_terminal_raw() {
    let mut evil = row("r1");
    evil.open.question = "\x1b[2J\u{202e} x".repeat(200);
    evil.open.gate = Some("\x1b]0;t\x07".to_owned());
    let mut one = Picker::new(vec![evil], false);
    for keys in ["j", "\r", "c\u{9b}A"] {
        press(&mut one, keys);
        let text = shown(&one);
        assert!(!text.contains(['\x1b', '\x07', '\u{202e}', '\u{9b}']), "{text:?}");
        assert!(text.lines().all(|line| crate::table::width(line) < 72), "{text}");
    }
}
