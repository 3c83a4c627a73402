//! A run's journal as it is stored, verified to its end.

use holdpoint_graph::RunId;
use holdpoint_storage::{Chain, Record, Store};

/// Records of one page.
const PAGE: usize = 200;

/// Reads the whole journal of a run: without gaps, with a good chain, and as long and with the
/// hash that the run's head says.
///
/// # Panics
///
/// When it is not, or the store does not answer.
pub async fn verified_journal(store: &dyn Store, run: &RunId) -> Vec<Record> {
    let mut chain = Chain::start(store.namespace(), run);
    let mut records = Vec::new();
    loop {
        let part = store.journal(run, chain.seq(), PAGE).await.expect("the store answers");
        let part = part.unwrap_or_else(|| panic!("there is no run {run}"));
        let is_last = part.records.is_empty();
        for record in &part.records {
            let record = chain.decode(record).unwrap_or_else(|fault| panic!("{fault}"));
            records.push(record);
        }
        if is_last || chain.seq() >= part.head.seq {
            let (found, said) = ((chain.seq(), chain.hash()), (part.head.seq, part.head.hash));
            assert_eq!(found, said, "the journal of {run} ends otherwise than its head says");
            return records;
        }
    }
}
