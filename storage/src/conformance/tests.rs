//! The list in the macro and the properties in the files are the same.

const THEMES: [(&str, &str); 16] = [
    ("enqueue", include_str!("enqueue.rs")),
    ("batch", include_str!("batch.rs")),
    ("session", include_str!("session.rs")),
    ("lanes", include_str!("lanes.rs")),
    ("claim", include_str!("claim.rs")),
    ("commit", include_str!("commit.rs")),
    ("damage", include_str!("damage.rs")),
    ("park", include_str!("park.rs")),
    ("signal", include_str!("signal.rs")),
    ("answers", include_str!("answers.rs")),
    ("votes", include_str!("votes.rs")),
    ("append", include_str!("append.rs")),
    ("tick", include_str!("tick.rs")),
    ("upkeep", include_str!("upkeep.rs")),
    ("inspect", include_str!("inspect.rs")),
    ("model_test", include_str!("model_test.rs")),
];

#[test]
fn every_property_is_in_the_macro() {
    let suite = include_str!("../conformance.rs");
    let words: Vec<&str> = suite.split_whitespace().collect();
    for (theme, source) in THEMES {
        assert!(words.contains(&format!("{theme}:").as_str()), "no theme {theme}");
        for line in source.lines() {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let name = rest.split('(').next().expect("a split has a first part");
            assert!(words.contains(&name), "{theme}: {name} is not in the macro");
        }
    }
}
