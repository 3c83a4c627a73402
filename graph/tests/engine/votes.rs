//! Who may answer a gate, how many it takes, what they may change, and who is reminded.

use std::time::Duration;

use holdpoint_graph::{
    Answer, AnswerFault, Code, CompiledGraph, Event, Gate, GraphFaults, NodeOptions, Question,
    Refusal, StateGraph,
};
use serde_json::{Value, json};

use crate::driver::{Driver, lists, step};

/// a → gate on c, with nodes for a rejection and for `later`.
fn try_graph(gate: Gate) -> Result<CompiledGraph, GraphFaults> {
    StateGraph::new("g")
        .with_schema(lists())
        .add_node("a", step)
        .add_node_with("c", NodeOptions::new().gate(gate), step)
        .add_node("no", step)
        .set_entry_point("a")
        .add_edge("a", "c")
        .set_finish_point("c")
        .set_finish_point("no")
        .compile()
}

fn run(question: Question) -> Driver {
    let gate = Gate::new("pay", question).reject_to("no");
    let input = json!({ "amount": 10, "currency": "EUR", "requested_by": "eve" });
    let mut run = Driver::start(&try_graph(gate).unwrap(), input);
    run.run();
    run
}

fn by(who: &str, value: Value) -> Answer {
    Answer::new(value, who, 2_000)
}

fn approve() -> Value {
    json!({ "approve": true })
}

fn refusal(run: &mut Driver, answer: Answer) -> Refusal {
    match run.try_decide(&run.asked(), answer).expect_err("it is refused") {
        AnswerFault::Unfit(refusal) => refusal,
        AnswerFault::NotOpen(id) => panic!("{id} is not open"),
    }
}

fn code(run: &mut Driver, answer: Answer) -> Code {
    refusal(run, answer).code()
}

#[test]
fn a_quorum_takes_different_people_of_one_mind() {
    let mut run = run(Question::new("Pay {amount}?").quorum(2));
    let asked = run.asked();
    run.try_decide(&asked, by("ann", approve())).unwrap();
    assert_eq!(run.asked(), asked, "one vote leaves the question open under its id");
    assert_eq!(code(&mut run, by("ann", approve())), Code::Voted);
    run.try_decide(&asked, by("bob", approve())).unwrap();
    assert_eq!(run.run_to_end().walked(), "a c");
}

#[test]
fn a_rejection_decides_at_once() {
    let mut run = run(Question::new("Pay?").quorum(3));
    let asked = run.asked();
    run.try_decide(&asked, by("ann", approve())).unwrap();
    run.try_decide(&asked, by("bob", json!({ "approve": false }))).unwrap();
    assert_eq!(run.run_to_end().walked(), "a no");
}

#[test]
fn votes_are_counted_by_what_they_say() {
    let question = Question::new("Pay?").edits(["amount"]).quorum(2);
    let mut run = run(question);
    let asked = run.asked();
    let edit = |amount: u32| json!({ "choice": "edit", "set": { "amount": amount } });
    for (who, value) in [("ann", approve()), ("bob", edit(5)), ("cid", edit(6))] {
        run.try_decide(&asked, by(who, value)).unwrap();
        assert_eq!(run.asked(), asked, "{who} is the first to say so");
    }
    run.try_decide(&asked, by("dan", edit(6))).unwrap();
    assert_eq!(run.run_to_end().walked(), "a c");
    assert_eq!(run.value("amount"), 6);
}

#[test]
fn an_edit_changes_the_declared_keys_only() {
    let mut run = run(Question::new("Pay?").edits(["amount"]));
    let other = json!({ "choice": "edit", "set": { "currency": "USD" } });
    let refused = refusal(&mut run, by("ann", other));
    assert_eq!((refused.code(), refused.field()), (Code::Schema, "answer/set/currency"));
    assert_eq!(refused.message(), "may not be edited; the question allows amount");
    assert_eq!(code(&mut run, by("ann", json!({ "choice": "edit" }))), Code::Schema);
    let edit = json!({ "choice": "edit", "set": { "amount": 7 } });
    run.try_decide(&run.asked(), by("ann", edit)).unwrap();
    assert_eq!(run.run_to_end().walked(), "a c");
    assert_eq!((run.value("amount"), run.value("currency")), (json!(7), json!("EUR")));
}

#[test]
fn a_choice_goes_its_own_way() {
    let question = || Question::new("Pay?").choice("later");
    let gate = Gate::new("pay", question()).route("later", "no");
    let mut run = Driver::start(&try_graph(gate).unwrap(), json!({}));
    run.run();
    let refused = refusal(&mut run, by("ann", json!({ "choice": "never" })));
    assert_eq!(refused.code(), Code::Schema);
    let told = "answer/choice is \"never\", allowed are approve, reject, later";
    assert_eq!(refused.to_string(), told);
    let later = json!({ "choice": "later", "until": "May" });
    run.try_decide(&run.asked(), by("ann", later)).unwrap();
    assert_eq!(run.run_to_end().walked(), "a no");
    let gate = Gate::new("pay", question());
    let graph = try_graph(gate.clone().route("never", "no")).expect_err("no such choice");
    assert!(graph.to_string().contains("unknown_choice"), "{graph}");
    assert!(try_graph(gate.route("later", "no")).is_ok());
}

#[test]
fn whoever_asked_may_not_answer_and_a_closed_question_takes_its_assignees() {
    let question = Question::new("Pay?").not_by("requested_by").assignee("ann").group("finance");
    let mut asked = run(question.clone());
    assert_eq!(code(&mut asked, by("eve", approve())), Code::NotAllowed);
    asked.try_decide(&asked.asked(), by("stranger", approve())).unwrap();
    let mut closed = run(question.closed());
    assert_eq!(code(&mut closed, by("stranger", approve())), Code::NotAllowed);
    let member = Answer { groups: vec!["finance".to_owned()], ..by("fay", approve()) };
    closed.try_decide(&closed.asked(), member).unwrap();
    assert_eq!(closed.run_to_end().walked(), "a c");
}

#[test]
fn a_comment_may_be_asked_for() {
    let mut run = run(Question::new("Pay?").comment_on("reject"));
    let no = json!({ "approve": false });
    assert_eq!(code(&mut run, by("ann", no.clone())), Code::Schema);
    let blank = Answer { comment: Some("  ".to_owned()), ..by("ann", no.clone()) };
    assert_eq!(code(&mut run, blank), Code::Schema);
    let why = Answer { comment: Some("too much".to_owned()), ..by("ann", no) };
    run.try_decide(&run.asked(), why).unwrap();
    assert_eq!(run.run_to_end().walked(), "a no");
}

#[test]
fn reminders_come_in_time_and_ask_more_people() {
    let after = Duration::from_secs;
    let question = Question::new("Pay?")
        .assignee("ann")
        .remind(after(20), ["boss"])
        .remind(after(10), [""; 0])
        .deadline(after(60), json!({ "approve": false }));
    let mut run = run(question);
    let asked = run.asked();
    let opened = run.progress.question(&asked).unwrap().opened_at_ms;
    let wakes = |run: &Driver| run.progress.question(&asked).unwrap().wakes_at_ms();
    assert_eq!(wakes(&run), Some(opened + 10_000));
    assert_eq!(run.engine.remind(&mut run.progress, opened + 9_999), []);
    let first = run.engine.remind(&mut run.progress, opened + 10_000);
    assert_eq!(first, [Event::InterruptReminded { interrupt: asked.clone(), also: vec![] }]);
    assert_eq!(wakes(&run), Some(opened + 20_000));
    run.engine.remind(&mut run.progress, opened + 59_000);
    let open = run.progress.question(&asked).unwrap();
    assert_eq!(open.assignees, ["ann", "boss"]);
    assert_eq!(wakes(&run), Some(opened + 60_000), "only the deadline is left");
}

#[test]
fn an_edited_state_shows_the_question_anew() {
    let question = Question::new("Pay {amount}?").about(["amount"]).quorum(2);
    let mut run = run(question);
    let asked = run.asked();
    run.try_decide(&asked, by("ann", approve())).unwrap();
    let before = run.progress.question(&asked).unwrap().clone();
    assert_eq!(before.args.as_ref().unwrap().get("amount"), Some(&json!(10)));
    let mut state = run.progress.state().clone();
    state.set("currency", json!("USD"));
    assert_eq!(before.shown_anew(&state), None, "it is about the amount");
    state.set("amount", json!(99));
    let anew = before.shown_anew(&state).unwrap();
    assert_eq!((anew.question.as_str(), anew.votes.len()), ("Pay 99?", 0));
    assert_ne!(anew.args_hash, before.args_hash);
    let patches = vec![holdpoint_graph::Patch::set("amount", 99)];
    run.apply(Event::StateEdited { patches, by: "op".to_owned(), shown: vec![anew.clone()] });
    assert_eq!(run.progress.question(&asked), Some(&anew));
}

#[test]
fn a_bad_declaration_is_a_fault_of_the_graph() {
    let faults = |question: Question| {
        let faults = try_graph(Gate::new("pay", question)).expect_err("it is bad");
        faults.to_string()
    };
    for (question, fault) in [
        (Question::new("?").quorum(0), "bad_quorum"),
        (Question::new("?").quorum(101), "bad_quorum"),
        (Question::new("?").closed(), "no_assignee"),
        (Question::new("?").choice("approve"), "duplicate_choice"),
        (Question::new("?").comment_on("never"), "unknown_choice"),
    ] {
        let told = faults(question);
        assert!(told.contains(fault), "{fault}: {told}");
    }
}
