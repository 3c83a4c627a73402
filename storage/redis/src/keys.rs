//! The names of all keys and channels.
//!
//! Every name begins with `hp:NAMESPACE:{TAG}:`, so that all keys of a namespace are in one slot
//! of a cluster and one pattern of an access list covers them. Scripts get the prefix from the
//! name of the sentinel and put the names of [`NAMES`] behind it.

use holdpoint_graph::{Namespace, RunId, fingerprint::of_parts};

/// What stands behind the prefix, the type, and what it holds. A name that ends in `:` goes on
/// with an id, a lane or a tag.
#[cfg(test)]
pub(crate) const NAMES: &[(&str, &str, &str)] = &[
    ("meta", "string", "the sentinel: version of the layout, instance"),
    ("r:", "hash", "the head of a run"),
    ("p:", "string", "its envelope"),
    ("j:", "list", "its journal; the index is the number"),
    ("z:", "string", "its newest snapshot"),
    ("o:", "hash", "its open questions: opening, hash, gate, votes, deadline, asked, question"),
    ("i:", "hash", "its inbox: `iINTERRUPT` or `gGATE` to request and record"),
    ("y:", "list", "its partial results: number, length of the journal, body"),
    ("s:", "list", "the order of a session; the first run is the active one"),
    ("S:", "hash", "a session: graph, last run, number of open runs"),
    ("x:", "zset", "the runs of a session by creation"),
    ("q:", "zset", "a lane: priority, then order of enqueuing"),
    ("w:", "list", "its wake tokens, 64 at most"),
    ("h:", "set", "the runs that a worker holds"),
    ("u:", "string", "digests of the newest nonces of a worker"),
    ("k:", "string", "an idempotency key: run, payload's hash, its end when it is gone"),
    ("t:", "zset", "the runs with a tag by creation"),
    ("f:", "channel", "a run changed"),
    ("ix", "zset", "all runs by creation"),
    ("sx", "zset", "all sessions by id"),
    ("due", "zset", "scheduled runs by their time"),
    ("wak", "zset", "timers of parked runs"),
    ("lse", "zset", "running runs by the end of their lease"),
    ("prk", "zset", "parked runs by when they parked"),
    ("ou:", "zset", "a list of questions without a deadline, by opening: interrupt and run"),
    ("oo:", "zset", "the same list, questions with a deadline by opening"),
    ("od:", "zset", "the same list, questions with a deadline by it"),
    ("exp", "zset", "runs without an owner by when they must end"),
    ("fin", "zset", "completed runs by their end; with `.l` those that are a session's last"),
    ("can", "zset", "cancelled runs, the same"),
    ("dead", "zset", "failed runs, the same"),
    ("bad", "zset", "what was put aside because it could not be read"),
    ("n", "string", "the last number of the order of enqueuing"),
    ("c", "hash", "queues to scheduled and queued runs"),
    ("l", "set", "the lanes that ever held a run"),
    ("m", "hash", "last tick, hold, longest lease, the server's run id"),
    ("paused", "set", "paused queues"),
    ("workers", "zset", "workers by their last sign"),
    ("wk", "hash", "their records"),
    ("graphs", "hash", "published graphs"),
    ("was:", "any", "a key that had the wrong type, by when and by its name"),
];

/// The keys that all runs share, with their types.
pub(crate) const SHARED: [(&str, &str); 29] = [
    ("ix", "zset"),
    ("sx", "zset"),
    ("due", "zset"),
    ("wak", "zset"),
    ("lse", "zset"),
    ("prk", "zset"),
    ("ou:all", "zset"),
    ("ou:some", "zset"),
    ("oo:all", "zset"),
    ("oo:some", "zset"),
    ("od:all", "zset"),
    ("od:some", "zset"),
    ("exp", "zset"),
    ("fin", "zset"),
    ("fin.l", "zset"),
    ("can", "zset"),
    ("can.l", "zset"),
    ("dead", "zset"),
    ("dead.l", "zset"),
    ("bad", "zset"),
    ("workers", "zset"),
    ("n", "string"),
    ("c", "hash"),
    ("l", "set"),
    ("m", "hash"),
    ("paused", "set"),
    ("wk", "hash"),
    ("graphs", "hash"),
    ("meta", "string"),
];

/// The prefix of a namespace's keys.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    /// All of a namespace is in one partition, number 0.
    pub(crate) fn new(namespace: &Namespace) -> Self {
        Self { prefix: format!("hp:{namespace}:{{{}}}:", tag(namespace, 0)) }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The sentinel, by which a script knows the prefix and the instance.
    pub(crate) fn meta(&self) -> String {
        format!("{}meta", self.prefix)
    }

    /// The wake tokens of a lane, by its text.
    pub(crate) fn wake(&self, lane: &str) -> String {
        format!("{}w:{lane}", self.prefix)
    }

    /// The channel that tells of a run's changes.
    pub(crate) fn changes(&self, run: &RunId) -> String {
        format!("{}f:{run}", self.prefix)
    }

    /// The run of such a channel.
    pub(crate) fn run_of<'a>(&self, channel: &'a str) -> Option<&'a str> {
        channel.strip_prefix(&self.prefix)?.strip_prefix("f:")
    }
}

/// The hash tag of a partition: namespaces spread over the slots of a cluster.
fn tag(namespace: &Namespace, partition: u32) -> String {
    let mut tag = of_parts(&["partition", namespace.as_str(), &partition.to_string()]);
    tag.truncate(4);
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_has_the_namespace_and_one_tag() {
        let keys = Keys::new(&Namespace::new("shop").unwrap());
        let meta = keys.meta();
        assert!(meta.starts_with("hp:shop:{") && meta.ends_with("}:meta"), "{meta}");
        assert_eq!(meta.matches('{').count(), 1);
        let run = RunId::new("r1").unwrap();
        assert_eq!(keys.run_of(&keys.changes(&run)), Some("r1"));
    }

    /// Every name in a script is one of the list, so that the list is the whole layout.
    #[test]
    fn scripts_use_no_other_names() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/scripts");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            for rest in text.split("T .. '").skip(1) {
                let name = rest.split('\'').next().unwrap().trim_end_matches(".l");
                assert!(NAMES.iter().any(|(known, ..)| *known == name), "{name} in {path:?}");
            }
        }
    }
}
