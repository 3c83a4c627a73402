//! The store's traits, a file for each kind of caller: from requests to arguments, from replies to
//! answers.

mod claim;
mod commit;
mod doctor;
mod enqueue;
mod fsck;
mod inspect;
mod maintain;
mod questions;
mod read;

use holdpoint_graph::{Fingerprint, RequestId};
use holdpoint_storage::Lane;

/// The 8 bytes by which a run remembers a request.
fn digest(request: &str) -> [u8; 8] {
    let hash = blake3::hash(request.as_bytes());
    let mut digest = [0; 8];
    digest.copy_from_slice(hash.as_bytes().get(..8).unwrap_or(&[0; 8]));
    digest
}

/// A lane in keys. Scripts must be able to name the lane of a run that is pinned to another
/// structure, so it is the text and no hash of it.
fn lane_text(lane: &Lane) -> String {
    let fingerprint = lane.fingerprint.as_ref().map_or("", Fingerprint::as_str);
    format!("{}|{}|{fingerprint}", lane.queue, lane.graph)
}

/// The request id of a call that is known by its nonce.
fn request_of(nonce: &str) -> RequestId {
    RequestId::new(nonce).unwrap_or_else(|_| holdpoint_storage::Random.request_id())
}
