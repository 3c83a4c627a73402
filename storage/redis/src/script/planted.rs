//! Bugs planted into the scripts, by exact replacement of what prevents them.

use holdpoint_storage::Planted;

use super::SOURCES;

/// The script to change, or all that have the text; the text; what takes its place.
type Edit = (&'static str, &'static str, &'static str);

const ALL: &str = "*";

/// The time of the scripts, so that a torture can set the clock of the store alone: by so many ms.
const CLOCK: Edit = (
    ALL,
    "local t = redis.call('TIME')\n",
    "local t = redis.call('TIME')\n\
     t[2] = t[2] + 1000 * (redis.call('GET', 'torture-clock-ms') or 0)\n",
);

fn edits(bug: Planted) -> &'static [Edit] {
    match bug {
        Planted::NoFencing => &[
            ("commits", "v[1] ~= 'r' or v[2] ~= epoch or v[7] ~= ARGV[i + 2]", "v[1] ~= 'r'"),
            (
                "commit",
                "if h.s ~= 'r' or v[2] ~= ARGV[3] or v[3] ~= ARGV[4] then",
                "if h.s ~= 'r' then",
            ),
            ("renew", "v[1] == 'r' and v[2] == ARGV[i + 1] and v[3] == ARGV[i + 2]", "v[1] == 'r'"),
            ("release", "or h.e ~= ARGV[3] or h.o ~= ARGV[4] then", "then"),
        ],
        Planted::InboxSkipped => &[(
            "commit",
            "if what == 'p' and #waiting > 0 and is_answered() then what = 'c' end",
            "",
        )],
        Planted::Pop => &[
            ("claim", "redis.call('ZADD', T .. 'lse', unpack(leases))", ""),
            ("claim", "redis.call('SADD', T .. 'h:' .. worker, unpack(held))", ""),
            ("renew", "for first = 1, #leases, 1000 do", "for first = 1, 0 do"),
            (
                "commits",
                "if #leases > 0 then redis.call('ZADD', T .. 'lse', unpack(leases)) end",
                "",
            ),
            ("commit", "redis.call('ZADD', T .. 'lse', int(now + ARGV[8]), run)", ""),
        ],
        // Without its first line the server checks its memory at the first writes instead of never.
        Planted::ErrorSwallowed => &[
            ("commits", "#!lua flags=allow-oom\n", ""),
            ("commits", "redis.call(", "redis.pcall("),
        ],
        Planted::RetryNotIdempotent => &[(ALL, "return at ~= nil\n", "return false\n")],
        Planted::NoHold => {
            &[("tick", "if jumped or other or ARGV[7] == '1' then hold = now + long end", "")]
        }
        Planted::CounterAtReap => &[
            ("claim", "int(h.row + 1) .. '|' .. int(h.life + 1)", "h.row .. '|' .. h.life"),
            (
                "tick",
                "lose(run, h, now, ARGV[9], delays, what)\n",
                "lose(run, h, now, ARGV[9], delays, what)\n\
                 redis.call('HSET', T .. 'r:' .. run, 'c', \
                 h.claims .. '|' .. int(h.row + 1) .. '|' .. int(h.life + 1))\n",
            ),
        ],
        Planted::CancelInMemory => &[(
            "append",
            "redis.call('HSET', T .. 'r:' .. run, 'x', kind == 'rollback' and 'b' or 'a')",
            "",
        )],
        Planted::EventSkipped => &[(
            "commits",
            "for first = plan.first, plan.last, 1000 do",
            "for first = math.min(plan.first + 1, plan.last), plan.last, 1000 do",
        )],
        Planted::AnswerUnbound => {
            &[("signal", "if args ~= '' and args ~= found[2] then return {'H', found[2]} end", "")]
        }
        // Elsewhere: in the other store, and in the worker.
        Planted::EarlyAcknowledgement | Planted::NoRenewalInDrain => &[],
    }
}

/// The texts with the bug in them.
///
/// # Panics
/// When what is to be replaced is not there any more: the bug would be none.
pub(super) fn plant(mut texts: Vec<String>, bug: Option<Planted>) -> Vec<String> {
    for (name, from, to) in bug.map(edits).unwrap_or_default().iter().chain([&CLOCK]) {
        let mut places = 0;
        for (text, (script, _)) in texts.iter_mut().zip(SOURCES) {
            if (*name == ALL || *name == script) && text.contains(from) {
                *text = text.replace(from, to);
                places += 1;
            }
        }
        assert!(places > 0, "{bug:?} is planted nowhere: {name} does not have {from:?}");
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::texts;

    #[test]
    fn every_bug_has_its_place() {
        for bug in Planted::ALL {
            let is_here = plant(texts(), Some(bug)) != plant(texts(), None);
            let is_elsewhere =
                matches!(bug, Planted::EarlyAcknowledgement | Planted::NoRenewalInDrain);
            assert_ne!(is_here, is_elsewhere, "{bug:?}");
        }
    }
}
