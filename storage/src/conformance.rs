//! The conformance suite: what a backend must do, as named properties, one test each.
//!
//! A backend is whatever passes this suite. It offers a [`Bench`] and asks for the tests in its
//! `tests/conformance.rs`:
//!
//! ```ignore
//! struct SqliteBench(tempfile::TempDir);
//!
//! #[async_trait::async_trait]
//! impl holdpoint_storage::conformance::Bench for SqliteBench {
//!     async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store> { /* open it */ }
//! }
//!
//! holdpoint_storage::conformance_tests!(SqliteBench::start().await);
//! ```
//!
//! The expression is evaluated once in each test, in an async context, and gives the bench of that
//! test alone. The property `model_test::model_agrees` runs random sequences on the backend and on
//! [`Model`]; `HOLDPOINT_CASES` sets their number (64 by default).
//!
//! Nothing here uses a backend in another way than through the traits, and nothing changes the
//! backend's clock: a property that needs time waits until the store's own time has passed.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_graph::{Namespace, RunId};

use crate::Store;

pub mod answers;
pub mod append;
pub mod batch;
pub mod claim;
pub mod commit;
pub mod damage;
pub mod enqueue;
pub mod inspect;
pub mod lanes;
pub mod lists;
mod model;
pub mod model_test;
pub mod park;
pub mod questions;
pub mod session;
pub mod signal;
pub mod tick;
pub mod upkeep;
pub mod votes;
mod world;

pub use model::Model;
use world::id;

/// How a backend gives stores to the suite.
#[async_trait]
pub trait Bench: Send + Sync {
    /// A store of this namespace, empty. Stores of different namespaces that come from the same
    /// bench stand on one server where the backend has such a thing. The suite asks for a
    /// namespace once.
    async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store>;

    /// The stored bytes of a part of a run, behind the store's back.
    async fn stored(&self, namespace: &Namespace, run: &RunId, part: Part) -> Vec<u8>;

    /// Overwrites the stored bytes of a part, or takes it away, as a broken disk would.
    async fn overwrite(&self, namespace: &Namespace, run: &RunId, part: Part, bytes: Option<&[u8]>);

    /// The ways in which the head of a run can become unreadable.
    fn head_breaks(&self) -> &'static [&'static str];

    /// Whether this way also destroys what tells the run's session.
    fn forgets_the_session(&self, way: &str) -> bool;

    /// Breaks the head of a run in one of these ways.
    async fn break_head(&self, namespace: &Namespace, run: &RunId, way: &str);
}

/// A part of a run that a backend stores as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The payload.
    Payload,
    /// The event of this number; only the last of a journal can be taken away.
    Event(u64),
    /// The newest snapshot.
    Snapshot,
}

/// Makes one test of each property for a backend, see the [module](mod@crate::conformance).
#[macro_export]
macro_rules! conformance_tests {
    ($setup:expr) => {
        $crate::conformance_tests! { @properties $setup;
            enqueue:
                payload_and_head_come_back
                empty_payload_comes_back
                unknown_run_is_none
                repeated_request_has_one_effect
                taken_run_id_is_refused
                key_finds_its_run
                key_with_other_payload_conflicts
                repeat_wins_over_its_key
                racing_keys_make_one_run
                queue_depth_is_kept
                start_time_decides_the_state
                start_now_makes_due
                ;
            batch:
                batch_keeps_its_order
                empty_batch_is_nothing
                refused_item_stops_the_batch
                refused_batch_leaves_no_trace
                partial_batch_stores_the_rest
                items_see_each_other
                repeated_batch_has_one_effect
                ;
            session:
                session_runs_one_by_one
                active_run_stays_active
                busy_session_rejects
                newer_run_cancels_the_active_one
                interrupted_run_counts
                asked_wish_stays
                session_keeps_its_graph
                delayed_start_joins_when_due
                delayed_start_fires_in_a_session
                cancelled_run_leaves_the_order
                redriven_run_waits_its_turn
                sessions_are_apart
                deleted_session_is_gone
                ;
            lanes:
                priority_then_age
                oldest_first_ignores_priority
                release_keeps_the_place
                return_keeps_the_place
                lanes_are_merged
                foreign_lanes_are_left_alone
                paused_queue_is_skipped
                paused_queue_lets_runs_end
                pin_moves_the_lane
                session_heads_are_in_line
                claim_fires_due_timers
                ;
            claim:
                claim_brings_the_run
                claim_brings_the_history
                epoch_rises
                repeated_claim_answers_the_same
                repeated_claim_takes_nothing_new
                lost_run_is_claimed_alone
                claim_keeps_its_budget
                renewal_keeps_and_tells
                renewals_are_in_order
                late_renewal_is_kept
                release_hands_back
                stale_lease_is_fenced
                lost_worker_is_fenced
                unwanted_run_is_claimable
                claims_do_not_overlap
                wait_wakes_on_enqueue
                ;
            commit:
                commit_appends_records
                journal_is_read_in_parts
                records_are_opaque
                snapshot_covers_the_records
                wrong_place_is_refused
                racing_commits_take_one_number
                repeated_commit_has_one_effect
                eight_requests_are_known
                cancelled_run_only_ends
                refusals_have_an_order
                missing_run_is_corrupt
                commit_renews_the_lease
                finish_ends_the_run
                progress_clears_the_row
                reschedule_waits_for_its_time
                ;
            damage:
                damaged_head_stops_no_claim
                damaged_head_stops_no_tick
                damaged_head_stops_no_loss
                damaged_head_stops_no_prune
                damaged_head_stops_no_renewal
                damaged_head_stops_no_list
                damaged_head_lets_its_session_go_on
                damaged_payload_is_told
                missing_parts_let_a_run_end
                ;
            park:
                parked_run_waits
                answer_wakes_and_is_taken_once
                answer_before_park_is_seen
                early_gate_answer_is_seen
                foreign_gate_answer_waits
                consumed_answer_does_not_count
                wake_timer_wakes
                next_due_is_the_nearest_timer
                past_wake_timer_queues
                answer_beats_the_timer
                no_answer_is_lost_in_a_race
                ;
            questions:
                each_condition_finds_its_questions
                people_find_what_is_asked_of_everybody
                one_run_is_filtered_and_ordered
                pages_stay_while_questions_move
                equal_deadlines_are_paged
                cursor_goes_with_its_order
                ;
            lists:
                closed_questions_leave_every_list
                edited_questions_change_their_lists
                reminded_people_find_the_question
                ended_runs_leave_every_list
                ;
            signal:
                every_address_finds_the_question
                ended_run_takes_no_answer
                unknown_question_is_refused
                several_questions_are_ambiguous
                changed_arguments_are_refused
                first_answer_wins
                early_answer_is_kept
                early_answer_of_an_old_look_is_refused
                early_answer_decides_the_gate
                answer_moves_only_parked_runs
                answer_stays_with_its_opening
                ;
            answers:
                several_answers_are_taken_together
                one_refused_answer_means_none
                a_later_answer_sees_those_before_it
                ;
            votes:
                votes_decide_together
                counted_votes_stay_with_their_question
                an_unread_vote_holds_a_park_back
                an_edit_shows_a_question_anew
                ;
            append:
                cancel_ends_a_waiting_run
                cancel_tells_the_owner
                ended_run_is_not_cancelled
                moved_journal_is_told
                repeated_append_has_one_effect
                unknown_run_is_not_found
                only_parked_runs_are_edited
                redrive_starts_counters_anew
                only_failed_runs_are_redriven
                migrate_moves_the_lane
                unpinned_run_is_not_migrated
                ;
            tick:
                ended_lease_is_reaped
                grace_is_kept
                losses_wait_longer
                lost_worker_hands_back
                doubt_holds_the_reaper
                gap_holds_the_reaper
                tick_fires_timers
                expired_run_is_closed
                started_run_does_not_expire
                overdue_run_is_closed
                unwanted_run_is_closed
                released_unwanted_run_is_closed
                waiting_session_run_is_closed
                tick_keeps_its_limit
                ticks_do_not_overlap
                ;
            upkeep:
                prune_takes_old_ends
                prune_never_takes_live_runs
                prune_keeps_a_sessions_last
                prune_keeps_a_last_that_came_back
                prune_keeps_its_limit
                key_outlives_its_run
                workers_are_listed
                graphs_are_published
                pinned_runs_are_listed
                partials_are_in_order
                change_wakes_the_watcher
                sound_store_has_no_findings
                namespaces_are_apart
                ;
            inspect:
                filters_show_what_they_accept
                paging_survives_moves
                questions_are_paged
                question_ids_belong_to_their_run
                sessions_are_paged
                stats_count_everything_once
                time_goes_on
                ;
            model_test:
                model_agrees
                ;
        }
    };
    (@properties $setup:expr; $($theme:ident: $($property:ident)+;)+) => {
        $(mod $theme {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $property() {
                    let bench = $setup;
                    $crate::conformance::$theme::$property(&bench).await;
                }
            )+
        })+
    };
}

#[cfg(test)]
mod tests;
