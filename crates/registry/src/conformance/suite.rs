//! The single list of all clauses.

/// Expands every clause of the contract as a test of one backend: `conformance_suite!(memory,
/// MemoryHarness);`, where `MemoryHarness` is a [`Harness`](crate::conformance::Harness).
///
/// After each clause, `books::balance` compares the journal with the state.
#[macro_export]
macro_rules! conformance_suite {
    ($name:ident, $harness:ty) => {
        mod $name {
            use super::*;

            $crate::conformance_list! { conformance_clauses $harness }
        }
    };
}

/// Lists every clause of the contract on one backend, by name and start function. A caller must run each
/// clause on a separate task, because a clause fails by panicking.
#[macro_export]
macro_rules! conformance_runs {
    ($harness:ty) => {
        $crate::conformance_list! { conformance_list_of_runs $harness }
    };
}

/// Passes the list of clauses to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_list {
    ($then:ident $harness:ty) => {
        $crate::$then! { $harness:
            admission {
                a_pool_admits_up_to_its_limit_and_then_denies,
                an_admission_tells_of_its_session,
                a_full_pool_admits_again_once_a_ttl_is_over,
                a_seat_that_was_given_back_can_be_taken_at_once,
                a_denial_says_in_how_long_a_seat_can_come_free,
                a_denial_far_above_the_limit_tells_the_wait_until_a_bounded_number_is_gone,
                a_limit_of_zero_denies,
                a_full_pool_of_devices_evicts_the_stalest,
                a_heartbeat_keeps_a_device_from_being_the_stalest,
                after_a_downgrade_as_many_are_evicted_as_it_takes,
                a_limit_lowered_by_thousands_is_kept_once_the_claim_is_answered,
                the_session_that_is_named_is_replaced,
                a_session_whose_seat_is_handed_over_is_superseded,
                a_seat_is_handed_over_in_one_step_also_while_another_is_free,
                a_seat_that_is_not_handed_over_is_kept_while_another_is_free,
                where_newcomers_are_denied_one_can_still_be_replaced,
                a_session_of_another_pool_is_not_replaced,
                an_unknown_limit_never_evicts,
                where_no_limit_was_ever_known_there_is_one_seat,
                pools_do_not_share_seats,
            }
            membership {
                one_machine_takes_one_seat,
                another_user_of_a_machine_shares_its_session,
                a_session_that_is_named_by_its_holder_is_refreshed,
                a_device_is_refreshed_on_another_network,
                a_session_shown_by_another_holder_counts_for_nothing,
                a_copied_device_identity_throws_the_other_out,
                a_higher_tier_replaces_a_lower_one,
                the_same_or_a_lower_tier_changes_nothing,
                a_session_that_stands_stays_the_one_users_who_acquired_it,
                a_holder_is_never_told_that_the_pool_is_full,
            }
            expiry {
                a_heartbeat_keeps_a_session_alive_past_its_first_ttl,
                a_heartbeat_shortens_the_ttl_only_of_a_holder_that_is_told_so,
                a_session_with_several_users_keeps_a_longer_ttl_until_one_is_left,
                a_heartbeat_after_the_expiry_is_told_so_and_brings_nothing_back,
                a_silent_holders_seat_comes_free_while_the_others_heartbeat,
                a_session_that_is_over_is_not_shown,
                a_view_shows_nobody_who_is_over,
                naming_a_session_that_is_over_does_not_refresh_it,
                the_end_of_the_entitlement_comes_before_the_ttl,
                newer_terms_revive_nobody_of_a_large_pool,
                what_was_over_ends_as_expired_whatever_was_asked,
                what_was_over_when_a_device_came_back_is_not_superseded,
            }
            ends {
                a_session_ends_once,
                nothing_brings_an_ended_session_back,
                each_reason_that_is_asked_for_is_the_reason_on_record,
                a_pool_can_be_emptied,
                an_empty_pool_has_nothing_to_end,
                a_session_that_never_was_is_missing,
            }
            groups {
                a_full_group_admits_nobody_and_ends_no_member,
                the_end_of_a_screen_ends_all_members_with_its_reason,
                a_larger_group_counts_from_the_next_join_on_and_a_smaller_one_for_new_groups,
            }
            ownership {
                a_stranger_finds_every_session_missing,
                a_stranger_finds_nothing_out_about_what_is_over,
                an_admin_reaches_every_session_of_its_tenant,
                users_who_share_a_session_may_all_renew_it_and_the_last_ends_it,
                a_service_of_another_tenant_reaches_what_it_acquired,
            }
            terms {
                a_lowered_limit_ends_nobody_and_binds_the_next_admission,
                a_raised_limit_admits_at_once,
                closed_terms_end_every_session_and_admit_nobody,
                reopened_terms_admit_again,
                older_terms_change_nothing,
                terms_of_the_same_version_change_nothing_but_the_ttl,
                a_ttl_of_the_same_version_counts_from_the_next_claim_on,
                a_ttl_of_the_same_version_reaches_an_empty_pool,
                a_claim_brings_newer_terms_along,
                a_shortened_entitlement_expires_who_is_in,
                an_extended_entitlement_brings_nothing_back,
                a_changed_ttl_binds_from_the_next_renewal_on,
            }
            journal {
                every_change_is_one_event_and_in_order,
                an_event_says_who_did_what_and_when,
                what_time_ends_is_the_systems_own_work,
                renewals_are_not_events,
                reading_again_gives_the_same_again,
                a_journal_can_be_read_piece_by_piece,
                what_waits_is_read_to_its_end_whoever_wrote_it,
                what_happens_in_one_step_can_be_acknowledged_event_by_event,
                acknowledged_events_are_gone_and_the_others_stay,
                a_receipt_covers_the_events_of_its_answer,
                a_denial_waits_for_the_admissions_that_it_was_decided_by,
                the_end_of_a_journal_covers_all_that_happened,
                a_full_journal_admits_nobody_and_lets_everything_else_go_on,
                the_depth_counts_what_waits,
                the_reader_is_stirred_by_an_event,
            }
            opening {
                a_pool_that_is_not_open_has_no_answer,
                opening_an_open_pool_does_nothing,
                restored_sessions_get_one_full_ttl,
                restored_sessions_keep_a_ttl_longer_than_the_pools_until_the_next_renewal,
                restored_sessions_hold_their_seats,
                restored_sessions_that_have_no_heartbeats_keep_their_end,
                what_was_over_before_the_pool_opened_ends_as_it_opens,
                the_numbers_of_events_go_on_where_the_record_ended,
                a_restored_session_is_its_users,
                what_the_entitlement_ended_meanwhile_ends_as_the_pool_opens,
                a_pool_whose_events_wait_for_the_ledger_stays_open,
            }
            sweeping {
                a_sweep_ends_what_is_over_and_records_it_once,
                a_sweep_leaves_the_living_alone,
                a_sweep_ends_those_who_are_over_and_keeps_the_others_of_their_pool,
                a_sweep_that_leaves_some_who_are_over_says_so,
                a_sweep_takes_no_more_pools_than_it_may_and_says_that_more_is_due,
                what_is_due_is_never_later_than_the_next_expiry,
                after_a_sweep_nothing_is_due_already,
                a_shortened_entitlement_is_due_at_its_new_end,
                a_session_renewed_under_a_shorter_ttl_is_due_no_later_than_it_is_over,
                a_shorter_ttl_of_a_claim_is_due_no_later_than_it_is_over,
                a_bucket_that_never_held_anything_has_nothing_due,
            }
            denials {
                denials_past_a_rate_are_counted_into_one_record,
                counted_denials_come_on_record_with_the_next_window,
                counted_denials_are_due_when_their_window_is_over,
            }
            reading {
                a_view_shows_the_stalest_first_and_no_more_than_asked,
                the_stalest_come_first_whatever_their_ttl,
                a_session_is_shown_as_it_stands,
                renewals_can_be_read_by_the_time_they_were_made,
            }
            concurrency {
                claims_racing_for_the_last_seat_admit_one,
                retries_of_one_claim_take_one_seat,
                one_device_claiming_many_times_at_once_is_left_with_one_session,
                a_session_that_many_end_at_once_ends_once,
                a_storm_never_fills_a_pool_above_its_limit,
            }
            clock {
                time_never_goes_back,
                what_is_known_of_the_time_is_not_behind_it,
                a_clock_that_is_set_back_frees_no_seat,
                a_holder_that_is_silent_after_a_pause_loses_the_seat_after_one_ttl,
                a_pause_of_the_process_ends_no_session,
                a_clock_that_is_set_back_expires_nothing_when_it_has_caught_up,
            }
        }
    };
}

/// Expands every clause of the rebuild contract as a test of a
/// [`Rebuildable`](crate::conformance::rebuilding::Rebuildable) backend.
#[macro_export]
macro_rules! rebuilding_suite {
    ($name:ident, $harness:ty) => {
        mod $name {
            use super::*;

            $crate::conformance_clauses! { $harness:
                rebuilding {
                    a_bucket_that_is_being_rebuilt_serves_nobody,
                    a_node_that_knows_another_epoch_is_served_nothing,
                    a_record_read_in_an_earlier_epoch_opens_no_pool,
                    a_rebuild_that_was_overtaken_goes_no_further,
                    a_repeated_step_of_a_rebuild_changes_nothing,
                    what_waits_in_the_journal_can_be_replayed,
                    a_rebuilt_bucket_holds_what_it_was_filled_with_and_nothing_else,
                    filled_sessions_get_one_full_ttl_from_the_filling_on,
                    a_rebuild_that_finishes_long_after_its_fill_is_refused,
                    a_short_ttl_refuses_no_rebuild,
                    a_rebuilt_bucket_is_not_earlier_than_the_record,
                    a_bucket_rebuilt_without_pools_is_not_earlier_than_the_record,
                    the_conditions_tell_how_each_bucket_is,
                }
            }
        }
    };
}

/// Expands every clause on the age of the record from which a pool opens, as a test of a backend whose events are on record.
#[macro_export]
macro_rules! record_suite {
    ($name:ident, $harness:ty) => {
        mod $name {
            use super::*;

            $crate::conformance_clauses! { $harness:
                opening {
                    a_record_that_may_be_outdated_opens_no_pool,
                }
            }
        }
    };
}

/// Expands a test for each clause of a list.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_clauses {
    ($harness:ty: $($group:ident { $($clause:ident,)* })*) => { $( $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $clause() {
            use $crate::conformance::{Harness, JOURNAL_EVENTS_MAX, books, rounds, $group};
            for _ in 0..rounds() {
                let h = <$harness as Harness>::start(JOURNAL_EVENTS_MAX).await;
                $group::$clause(&h).await;
                books::balance(&h).await;
            }
        }
    )* )* };
}

/// Expands a name and a start function for each clause of a list.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_list_of_runs {
    ($harness:ty: $($group:ident { $($clause:ident,)* })*) => {
        vec![ $( $( (stringify!($clause), {
            let run: fn() -> $crate::conformance::Run = || Box::pin(async {
                use $crate::conformance::{Harness, JOURNAL_EVENTS_MAX, books, $group};
                let h = <$harness as Harness>::start(JOURNAL_EVENTS_MAX).await;
                $group::$clause(&h).await;
                books::balance(&h).await;
            });
            run
        }), )* )* ]
    };
}
