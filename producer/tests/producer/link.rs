//! Signed links: each answers one question once, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{sync::Arc, time::Duration};

use holdpoint_graph::{Event, Interrupt, InterruptKind, RunStatus};
use holdpoint_producer::{LinkKeys, LinkOptions, Producer, SignalOptions};
use serde_json::json;

use crate::world::{World, code, question, question_id};

fn ring(ids: &[&str]) -> (String, LinkKeys) {
    let text = ids.iter().map(|id| LinkKeys::new_line(id)).collect::<Vec<_>>().join("\n");
    (text.clone(), LinkKeys::parse(&text).unwrap())
}

#[tokio::test]
async fn a_link_answers_its_question_once() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let (_, keys) = ring(&["k1"]);
    let options = LinkOptions::new("ann").allow("approve");
    let link = world.producer.link(&keys, &run, &question_id(&question), &options).await.unwrap();
    let view = world.producer.read_link(&keys, &link.token).await.unwrap();
    assert_eq!((view.by.as_str(), view.interrupt.as_str()), ("ann", question.as_str()));
    assert_eq!(world.status(&run).await, RunStatus::Parked, "looking at a link does nothing");

    let redeem = |answer| world.producer.redeem(&keys, &link.token, answer, None);
    assert_eq!(code(redeem(json!({ "approve": false })).await), "E_NOT_ALLOWED");
    let done = redeem(json!({ "approve": true })).await.unwrap();
    assert_eq!(done.decided_by, "ann");
    assert_eq!(world.status(&run).await, RunStatus::Queued);
    assert_eq!(code(redeem(json!({ "approve": true })).await), "E_LINK_USED");
    let mut owner = world.claim().await;
    owner.take_answer().await;
    assert_eq!(code(redeem(json!({ "approve": true })).await), "E_LINK_USED", "from the journal");
    let rows = world.producer.audit(&run).await.unwrap();
    let decided = rows.last().unwrap();
    assert_eq!(decided.from, Some(format!("link {}", link.id)));
}

#[tokio::test]
async fn a_link_that_was_tampered_with_is_refused() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let (text, keys) = ring(&["old"]);
    let (_, strangers) = ring(&["old"]);
    let options = LinkOptions::new("ann");
    let link = world.producer.link(&keys, &run, &question_id(&question), &options).await.unwrap();
    let parts: Vec<&str> = link.token.split('.').collect();
    let [prefix, id, claims, mac] = parts[..] else { panic!("{}", link.token) };
    let flipped = |text: &str| {
        let mut chars: Vec<char> = text.chars().collect();
        chars[3] = if chars[3] == 'A' { 'B' } else { 'A' };
        chars.into_iter().collect::<String>()
    };
    let forged = [
        String::new(),
        "hp_at1".to_owned(),
        format!("{prefix}.{id}.{claims}"),
        format!("{prefix}.{id}.{claims}."),
        format!("hp_at2.{id}.{claims}.{mac}"),
        format!("{prefix}.none.{claims}.{mac}"),
        format!("{prefix}.{id}.{}.{mac}", flipped(claims)),
        format!("{prefix}.{id}.{claims}.{}", flipped(mac)),
        format!("{prefix}.{id}.{claims}.{mac}.{mac}"),
        format!("{prefix}..{claims}.{mac}"),
        format!("{prefix}.{id}.{claims}.{}", &mac[..20]),
        format!("{id}.{claims}.{mac}"),
    ];
    let approve = || json!({ "approve": true });
    for token in forged {
        let said = world.producer.redeem(&keys, &token, approve(), None).await;
        assert_eq!(code(said), "E_LINK_INVALID", "{token}");
    }
    let said = world.producer.redeem(&strangers, &link.token, approve(), None).await;
    assert_eq!(code(said), "E_LINK_INVALID", "another key of the same name");
    assert_eq!(world.status(&run).await, RunStatus::Parked);
    // A newer key in front signs from now on; the old one still verifies.
    let newer = LinkKeys::new_line("new");
    let rotated = LinkKeys::parse(&format!("# keys\n{newer}\n{text}\n")).unwrap();
    world.producer.redeem(&rotated, &link.token, approve(), None).await.unwrap();
}

#[tokio::test]
async fn a_link_expires_and_stays_in_its_namespace() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let question = question_id(&question);
    let (_, keys) = ring(&["k1"]);
    let make = |options| {
        let producer = &world.producer;
        let (keys, run, question) = (&keys, &run, &question);
        async move { producer.link(keys, run, question, &options).await }
    };
    let short = LinkOptions::new("ann").expires_in(Duration::from_millis(1));
    let short = make(short).await.unwrap();
    holdpoint_testkit::until("the link expires", Duration::from_secs(5), || {
        let now = holdpoint_storage::Clock::wall_ms(&holdpoint_storage::SystemClock);
        (now > short.expires_at.0 + 1).then_some(())
    });
    let said = world.producer.redeem(&keys, &short.token, json!({ "approve": true }), None).await;
    assert_eq!(code(said), "E_LINK_EXPIRED");
    for life in [Duration::ZERO, Duration::from_secs(91 * 24 * 3600)] {
        assert_eq!(code(make(LinkOptions::new("ann").expires_in(life)).await), "E_RANGE");
    }
    assert_eq!(code(make(LinkOptions::new("ann").allow("never")).await), "E_NOT_ALLOWED");

    let other = World::in_namespace("other").await;
    let link = make(LinkOptions::new("ann")).await.unwrap();
    let said = other.producer.redeem(&keys, &link.token, json!({ "approve": true }), None).await;
    assert_eq!(code(said), "E_LINK_FOREIGN");
}

#[tokio::test]
async fn a_thousand_uses_at_once_are_one() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let (_, keys) = ring(&["k1"]);
    let options = LinkOptions::new("ann");
    let link = world.producer.link(&keys, &run, &question_id(&question), &options).await.unwrap();
    let (keys, token) = (Arc::new(keys), Arc::new(link.token));
    let uses = (0..1_000).map(|_| {
        let producer: Producer = world.producer.clone();
        let (keys, token) = (Arc::clone(&keys), Arc::clone(&token));
        tokio::spawn(async move {
            producer.redeem(&keys, &token, json!({ "approve": true }), None).await
        })
    });
    let mut good = 0;
    for used in uses.collect::<Vec<_>>() {
        match used.await.unwrap() {
            Ok(_) => good += 1,
            Err(error) => assert_eq!(error.code().as_str(), "E_LINK_USED"),
        }
    }
    assert_eq!(good, 1);
}

#[tokio::test]
async fn a_link_loses_to_a_decision() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let (_, keys) = ring(&["k1"]);
    let options = LinkOptions::new("ann");
    let link = world.producer.link(&keys, &run, &question_id(&question), &options).await.unwrap();
    world.producer.signal(&SignalOptions::run("r1").reject().by("bob")).await.unwrap();
    let said = world.producer.redeem(&keys, &link.token, json!({ "approve": true }), None).await;
    assert_eq!(code(said), "E_DECIDED");
}

#[tokio::test]
async fn a_link_is_bound_to_what_was_asked() {
    let world = World::new().await;
    let (run, question) = world.parked("r1").await;
    let (_, keys) = ring(&["k1"]);
    let options = LinkOptions::new("ann");
    let link = world.producer.link(&keys, &run, &question_id(&question), &options).await.unwrap();
    let seen = world.producer.get(&run).await.unwrap().seq.unwrap();
    world.producer.edit(&run, &json!({ "amount": 99 }), seen, "op").await.unwrap();
    let said = world.producer.redeem(&keys, &link.token, json!({ "approve": true }), None).await;
    assert_eq!(code(said), "E_ARGS_CHANGED");
    assert_eq!(world.status(&run).await, RunStatus::Parked);
}

#[tokio::test]
async fn a_link_may_be_for_one_word_of_an_uncertain_effect() {
    let world = World::new().await;
    let mut owner = world.begun("r1").await;
    let asked = Interrupt {
        kind: InterruptKind::Uncertain,
        schema: None,
        allowed: ["retry", "result", "skip"].map(str::to_owned).to_vec(),
        ..question("q1", &owner.task(), "gate")
    };
    owner.event(Event::InterruptOpened { interrupt: Box::new(asked) });
    owner.park().await;
    let (_, keys) = ring(&["k1"]);
    let options = LinkOptions::new("ann").allow("result");
    let (run, q1) = (crate::world::run("r1"), question_id("q1"));
    let link = world.producer.link(&keys, &run, &q1, &options).await.unwrap();
    let redeem = |answer| world.producer.redeem(&keys, &link.token, answer, None);
    for other in [json!("retry"), json!({ "approve": true }), json!(7)] {
        assert_eq!(code(redeem(other).await), "E_NOT_ALLOWED");
    }
    redeem(json!({ "result": { "paid": true } })).await.unwrap();
}

#[test]
fn a_ring_that_is_none_is_refused_with_its_line() {
    for (text, why) in [
        ("", "has no key"),
        ("# only a note", "has no key"),
        ("k1", "line 1 is no"),
        ("k.1 AAAA", "line 1 has an id"),
        ("\nk1 AAAA", "line 2 has a key of other than 32 bytes"),
    ] {
        let refusal = LinkKeys::parse(text).unwrap_err();
        assert_eq!((refusal.code().as_str(), refusal.field()), ("E_RANGE", "keys"));
        assert!(refusal.to_string().contains(why), "{refusal}");
    }
}
