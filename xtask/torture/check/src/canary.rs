//! The canary: a planted secret that must come out nowhere.
//!
//! It is looked for as it is, in hexadecimal and in base 64 at each of the three alignments.
//! Cannot show: a secret that was cut, hashed, compressed or encrypted.

use holdpoint_graph::Event;
use serde::Serialize;

use crate::{count::Count, facts::Facts};

/// Where secrets were found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Canary {
    /// Texts that were searched.
    pub searched: u64,
    /// Texts with a secret in them.
    pub found: Count,
}

/// `logs` are further texts by name.
pub(crate) fn check(facts: &Facts<'_>, canaries: &[String], logs: &[(String, String)]) -> Canary {
    let mut found = Canary::default();
    let needles: Vec<String> = canaries.iter().flat_map(|canary| shapes(canary)).collect();
    if needles.is_empty() {
        return found;
    }
    let mut search = |name: &dyn Fn() -> String, text: &str| {
        found.searched += 1;
        if needles.iter().any(|needle| text.contains(needle)) {
            found.found.add(name());
        }
    };
    for line in &facts.history.lines {
        let text = serde_json::to_string(line).unwrap_or_default();
        search(&|| format!("a line of {} at {}", line.process, line.mono), &text);
    }
    for run in &facts.dump.runs {
        for event in &run.events {
            search(&|| format!("event {} of {}", event.seq, run.run), &text(&event.event));
        }
    }
    for (name, text) in logs {
        search(&|| name.clone(), text);
    }
    found
}

fn text(event: &Event) -> String {
    serde_json::to_string(event).unwrap_or_default()
}

/// The texts as which a secret may appear.
fn shapes(secret: &str) -> Vec<String> {
    let mut shapes = vec![secret.to_owned()];
    let hex = |byte: &u8| format!("{byte:02x}");
    shapes.push(secret.as_bytes().iter().map(hex).collect());
    for skipped in 0..3 {
        // The middle of the text, which does not depend on what stands around the secret.
        let bytes = secret.as_bytes().get(skipped..).unwrap_or_default();
        let whole = bytes.get(..bytes.len() / 3 * 3).unwrap_or_default();
        if whole.len() >= 9 {
            shapes.push(base64(whole));
        }
    }
    shapes
}

/// Base 64 of a multiple of three bytes.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |bits: u32| char::from(LETTERS[(bits & 63) as usize]);
    let four = |three: &[u8]| {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        [letter(bits >> 18), letter(bits >> 12), letter(bits >> 6), letter(bits)]
    };
    bytes.chunks_exact(3).flat_map(four).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Line, Op, Phase,
        testing::{World, run},
    };

    const SECRET: &str = "canary-7f3a9c21b5";

    fn found(world: &World, logs: &[(String, String)]) -> Vec<String> {
        check(&world.facts(), &[SECRET.to_owned()], logs).found.examples
    }

    #[test]
    fn clean_texts_are_clean() {
        let mut world = World::new();
        world.enqueue("r", Phase::Ok).has(run("r").event(0, Event::RunCompleted));
        let logs = [("log".to_owned(), "nothing here: canary-".to_owned())];
        assert!(found(&world, &logs).is_empty());
        let searched = check(&world.facts(), &[SECRET.to_owned()], &logs).searched;
        assert_eq!(searched, 3);
    }

    #[test]
    fn a_secret_is_found_in_lines_events_and_logs() {
        let mut world = World::new();
        let line = Line::now(Op::Worker, Phase::Fail, "").detail(json!({ "said": [SECRET] }));
        world.at(1).line("w", line);
        assert_eq!(found(&world, &[]), ["a line of w at 1000000"]);
        let mut world = World::new();
        world.has(run("r").event(0, Event::RunCancelled { by: format!("by {SECRET}") }));
        assert_eq!(found(&world, &[]), ["event 0 of r"]);
        let logs = [("log".to_owned(), format!("token={SECRET}&"))];
        assert_eq!(found(&World::new(), &logs), ["log"]);
    }

    /// Each alignment of base 64, and hexadecimal.
    #[test]
    fn a_secret_is_found_in_disguise() {
        for before in ["", "x", "xy"] {
            let text = format!("{before}{SECRET}xyz");
            let whole = &text.as_bytes()[..text.len() / 3 * 3];
            let logs = [("log".to_owned(), format!("Basic {}", base64(whole)))];
            assert_eq!(found(&World::new(), &logs), ["log"], "{before}");
        }
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found(&World::new(), &[("log".to_owned(), hex)]), ["log"]);
    }

    #[test]
    fn base_64_is_the_usual_one() {
        assert_eq!(base64(b"Many hands make light work. "), "TWFueSBoYW5kcyBtYWtlIGxpZ2h0IHdvcmsu");
    }
}
