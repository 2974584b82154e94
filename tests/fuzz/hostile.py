"""The hostile fuzzers, `make hostile`: each does what an enemy or bad luck does, and the program must bear it."""

from __future__ import annotations

import exports
import floods
import hostile_actions
import hostile_disks
import hostile_kills
import hostile_messages
import hostile_pages
import hostile_pickles
import hostile_rivals
import hostile_sheets
import hostile_stores
import message_grammar
import page_grammar
from fuzz.fuzzer import Fuzzer

HOSTILE = {
    "floods": Fuzzer(floods.drawn, floods.assert_in_proportion),
    "messages": Fuzzer(
        message_grammar.drawn,
        hostile_messages.assert_borne,
        hostile_messages.fewer_steps,
        hostile_messages.session,
    ),
    "pages": Fuzzer(
        page_grammar.drawn,
        hostile_pages.assert_borne,
        hostile_pages.fewer_steps,
        hostile_pages.session,
    ),
    "kills": Fuzzer(hostile_kills.drawn, hostile_kills.assert_borne, hostile_kills.fewer_kills, hostile_kills.session),
    "sheets": Fuzzer(
        hostile_sheets.drawn,
        hostile_sheets.assert_bounded,
        hostile_sheets.smaller,
        hostile_sheets.session,
        hostile_sheets.counted_session,
    ),
    "imports": Fuzzer(exports.mutated, exports.assert_import_does_no_harm),
    "stores": Fuzzer(hostile_stores.drawn, hostile_stores.assert_stores_stay_sound, hostile_stores.reduced_example),
    "disks": Fuzzer(hostile_disks.drawn, hostile_disks.assert_nothing_is_lost),
    "rivals": Fuzzer(hostile_rivals.drawn, hostile_rivals.assert_no_match_is_lost),
    "actions": Fuzzer(hostile_actions.drawn, hostile_actions.assert_borne),
    "pickles": Fuzzer(hostile_pickles.drawn, hostile_pickles.assert_the_process_lives, hostile_pickles.reduced),
}
