//! The tests, in the order in which they run: each file shows one part of what the kernel promises.

pub mod alert;
pub mod authority;
pub mod chaos;
pub mod clan;
pub mod coverage;
pub mod crowd;
pub mod debug;
pub mod device;
pub mod door;
pub mod door_items;
pub mod door_long;
pub mod exception;
pub mod exhaust;
mod foreign;
pub mod handover;
pub mod inherit;
pub mod ipc;
pub mod kernel_half;
pub mod large;
pub mod local;
pub mod long;
pub mod map;
pub mod meanwhile;
pub mod pager;
pub mod random;
pub mod realtime;
mod redirected;
pub mod sched;
pub mod state;
pub mod strings;
pub mod task;
mod thread_state;
pub mod transcript;
pub mod turns;
pub mod uids;
mod warden;

use crate::kit::Outcome;

/// A test: its name and what it does.
pub type Case = (&'static str, fn() -> Outcome);

macro_rules! cases {
    ($($module:ident { $($name:ident)* })*) => {
        /// All tests.
        pub const CASES: &[Case] = &[$($((concat!(stringify!($module), ".", stringify!($name)), $module::$name)),*),*];
    };
}

cases! {
    uids { who_makes_many_threads_pays }
    ipc {
        words_and_label_between_tasks words_and_label_within_a_task words_and_label_in_the_own_task
        words_and_label_across_the_clan_border general_form_meets_short_form plain_send_is_no_request
        closed_receive_takes_only_its_partner send_timeouts receive_timeouts timeouts_at_their_limits points_in_time many_timeouts_end_in_order
        senders_are_served_first_come_first_served reply_to_nobody_is_dropped call_chain answers_after_a_call_that_was_ended answers_out_of_order
        abort_in_each_phase partner_ends_in_each_phase sender_ends_in_the_queue stale_uid_is_an_error
        forged_uids_reach_nobody odd_destinations foreign_interrupts_are_denied reserved_bits_are_refused
        flags_come_back_plain registers_leak_nothing many_round_trips reply_then_closed_receive_times_out
    }
    local {
        calls_do_not_enter_the_kernel others_are_called_by_the_kernel carried_threads_take_their_own calls_in_calls
        kernel_and_local_calls_meet answers_out_of_order callees_that_end crowds
    }
    door {
        words_and_label_come_and_go the_datum_names_the_object a_call_within_a_task a_call_in_a_call servers_that_are_special
        a_crowded_task_ends callers_wait_in_order who_waits_learns_of_a_shortage identifiers_are_handed_on calls_that_are_denied some_may_not_be_handed_on moved_identifiers_are_gone
        revoked_doors a_running_call_survives_revocation unreferenced_comes_once unreferenced_waits_for_calls
        numbers_that_are_no_identifier returns_without_a_call the_called_ends the_caller_ends the_middle_ends
        a_stop_in_the_chain_stops_one aborted_calls returns_after_a_call_that_was_ended servers_resign tasks_end_with_their_doors what_doors_cost too_many_servers
        a_task_full_of_doors
    }
    door_long {
        blocks_both_ways strings_both_ways queued_calls_bring_their_blocks identifiers_travel_in_calls_and_returns pages_move
        no_room_is_the_callers_error bad_blocks_are_refused too_long_is_the_callers_error patience_with_the_partners_pager
        the_caller_is_cut_off_in_the_middle the_called_ends_in_the_middle the_caller_ends_in_the_middle_of_the_return the_door_goes_in_the_middle
        what_does_not_arrive_stays
        items_travel_in_registers bad_items_in_registers_are_refused ends_while_pages_are_mapped
        words_cross_borders_and_nothing_else calls_for_words_take_nothing_else a_fault_before_the_second_call
    }
    inherit {
        a_hog_a_server_and_three_clients a_chain_of_calls a_line_of_queues a_chain_of_queues a_chain_that_was_cut who_gives_up_helps_no_more
        who_is_out_of_time_helps_no_more a_client_in_the_queue_gets_other_priorities callers_of_a_door
        many_chains_are_cut_at_once
    }
    turns { an_answer_with_words an_answer_with_a_block a_return a_return_with_a_block }
    door_items { identifiers_come_and_go }
    alert {
        set_told_and_cleared alerts_run_forward the_call_of_the_alerted_arrives_alerted the_caller_ends the_middle_ends
        alertable_ipc alertable_calls a_crowded_chain_ends alertable_calls_with_items alertable_copies faults_are_not_ended
    }
    chaos { chains_of_doors_and_sudden_ends }
    long {
        answers_after_a_call_that_was_ended direct_words_of_all_sizes what_was_received_is_sent_on who_takes_no_block_gets_none a_block_for_a_while within_a_task strings_of_all_sizes
        flags_do_not_turn_copies_round flags_of_others_do_not_turn_copies_round strings_from_and_to_large_pages a_string_as_long_as_can_be
        many_strings_are_scattered queued_senders_deliver_when_taken the_general_form_sends_blocks a_receive_behind_many_callers items_in_a_block
        as_many_items_as_can_be bad_items_are_refused
        too_long_is_an_error_for_both no_room_is_the_senders_error_alone bad_blocks_are_refused
        bad_strings_are_refused overlapping_buffers_hurt_their_owner_only patience_with_the_partners_pager abort_in_the_middle partner_ends_in_the_middle
        memory_revoked_in_between a_dead_receivers_frames_are_not_written blocks_for_one_who_has_ended
    }
    strings {
        faults_in_each_of_them bad_ones_behind_good_ones up_to_the_end_of_the_user_half more_than_a_step_takes each_byte_is_copied_once
        buffers_far_from_the_block buffers_that_no_window_shows_whole buffers_in_front_of_the_window out_of_the_user_half with_something_beside_them more_words_than_there_is_room_for the_slow_path_begins_at_the_beginning descriptors_are_read_once replies_bring_them
    }
    meanwhile {
        a_block_stays_where_the_message_was_accepted an_item_that_shrinks_stays_in_the_window many_wait_for_one_that_ends
    }
    kernel_half {
        blocks_come_from_nowhere_there queued_blocks_come_from_nowhere_there answers_come_from_nowhere_there
        blocks_through_doors_come_from_nowhere_there queued_blocks_through_doors_come_from_nowhere_there
        strings_neither_come_from_nor_go_there blocks_with_strings_come_from_nowhere_there pages_are_neither_given_nor_taken_there pages_through_doors_are_not_given_there control_takes_no_address_there
        programs_touch_nothing_there handlers_resume_nobody_there
    }
    clan {
        leaving_goes_to_the_chief entering_goes_to_the_chief borders_are_crossed_one_after_the_other ways_that_are_known chiefs_show_only_what_crosses their_border_is_crossed_by_blocks
        chiefs_that_end depth_is_limited
    }
    map {
        mapped_page_is_shared received_item_is_announced rights_only_shrink code_is_nobodys_to_write executable_pages_execute
        hot_spot_in_a_larger_window hot_spot_in_a_larger_flexpage equal_sizes_need_no_hot_spot no_window_no_item
        flush_reaches_grandchildren flush_of_a_slab_for_each_page flush_of_one_right flush_of_mixed_sizes flush_of_oneself flush_reports_access grant_hands_over
        grant_keeps_the_tree long_trees_lose_a_right mapping_over_a_page bad_flexpages_are_refused large_ranges
        runs_that_end_at_once receiver_without_quota_gets_a_part nothing_comes_from_nothing pager_chain faults_name_the_access
        pager_ends children_start_with_nothing item_in_a_reply
    }
    large {
        one_entry_for_all small_pages_out_of_it part_is_taken_from_oneself part_is_taken_by_the_giver part_is_granted
        all_of_it_is_granted flush_meets_all_sizes no_memory_to_split a_gibibyte
    }
    pager {
        managers_stack managers_keep_to_their_limits figure_1 mapped_files_are_shared users_choose_the_policy
        clean_pages_are_not_stored pages_have_their_colours callees_see_arguments_in_place pages_are_copied_when_written locked_memory_faults_once
    }
    realtime { locked_task_beside_thrashing }
    device { ports_come_and_go ports_map_to_themselves_only ports_on_demand wide_ports_on_demand interrupts_come_as_messages devices_of_others }
    exception {
        arithmetic_and_traps privileged_instructions ports_without_permission handler_sees_and_sets_registers
        handler_answers_nonsense handler_gives_up wild_jumps syscall_at_the_last_address stack_overflow
        bad_stack_pointers flags_do_not_spoil_the_kernel unknown_system_calls native_calls_denied random_code
        exceptions_queue_like_messages
    }
    foreign {
        all_registers_pass calls_queue answers_come_in_any_order late_returns_give_all_registers faults_are_answered_with_the_next_wait handlers_that_end stopped_threads_are_answered
        others_get_exceptions interrupts_of_programs_are_exceptions sysenter_is_an_exception native_calls_are_exceptions other_code_segments_are_exceptions
    }
    debug {
        registers_are_handed_over registers_of_a_waiting_thread single_steps watchpoints the_kernel_reads_what_is_watched
        debuggers_have_limits
    }
    thread_state {
        all_registers_are_got what_is_set_runs denied_parts_are_initial a_thread_is_copied general_registers_alone a_thread_that_never_ran new_threads_show_nothing_of_others states_that_are_refused
        blocks_that_are_refused pages_come_on_demand pages_that_nobody_has threads_that_do_not_stand_still
        on_a_borrowed_shuttle after_an_exception in_a_foreign_call a_foreign_call_leaves_the_rest
    }
    authority {
        siblings_and_chiefs_are_out_of_reach first_tasks_are_out_of_reach grandchildren_belong_to_their_chief
        priorities_have_a_limit bad_arguments_of_control states_forbid enumeration identity_is_true
    }
    task {
        everything_comes_back quota_is_conserved domains_talk_as_others_do quota_limits_threads_and_tasks attacker_at_its_limit
        ended_tasks_are_gone generations_grow families_end_together families_that_grow_end threads_end_themselves
        who_may_exhaust
    }
    sched {
        urgent_threads_come_first equals_take_turns time_slices_differ stopped_threads_stand_still
        stopped_threads_go_on_receiving switch_to_a_thread servers_run_at_their_callers_priority
        callers_get_their_shuttle_back who_is_answered_has_its_own_time lent_time_is_the_callers own_time_is_ones_own clock_and_sleep timeouts_end_in_time
        a_queued_call_is_taken_before_the_answered_continues
        copies_are_interrupted copies_are_aborted senders_that_are_stopped pagers_that_answer_with_nothing
    }
    state { floating_point_is_private vector_registers_pass_to_the_partner new_threads_find_clean_registers fs_base_passes_to_the_partner_alone }
    handover {
        callers_in_a_queue callers_in_the_queue_of_a_door a_server_that_keeps_a_call a_call_in_a_call a_chief_in_between
        a_kill_in_the_middle an_alert_in_the_middle a_timeout_in_the_middle
    }
    exhaust {
        thread_create set_block items grants page_faults port_faults long_messages
        other_calls_need_no_memory
    }
    random { random_system_calls }
    transcript { stories_repeat }
    coverage { every_error_was_seen }
}
