"""Crontabs: what each line becomes, and that it fires as the line says."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.importers.firing import fires_of, walked

from foliot.access.secrets import resolve
from foliot.importers.crontab import Reading, name_of, read
from foliot.importers.import_result import ImportResult, Item
from foliot.model.schedule import ScheduleSpec

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def found(text: str, **options: Any) -> ImportResult:
    return read(text, Reading(**{"now": NOW, "timezone": "UTC", **options}))


def item(text: str, **options: Any) -> Item:
    told = found(text, **options)
    assert not told.problems
    [only] = told.items
    return only


def why_left_out(text: str, **options: Any) -> str:
    told = found(text, **options)
    assert not told.items
    [problem] = told.problems
    return problem.why


def args(text: str, **options: Any) -> dict[str, Any]:
    target: dict[str, Any] = item(text, **options).document["target"]
    assert (target["kind"], target["name"]) == ("function", "shell")
    given_args: dict[str, Any] = target["args"]
    return given_args


# --- lines ----------------------------------------------------------------------------------------------


def test_a_line_becomes_a_cron_schedule_that_runs_its_command_with_a_shell() -> None:
    only = item("0 2 * * mon-fri /usr/local/bin/backup.sh --full >/dev/null 2>&1\n", timezone="Europe/Berlin")
    assert only.name == "backup"
    assert only.where == "line 1"
    assert only.document == {
        "name": "backup",
        "trigger": {"kind": "cron", "expression": "0 2 * * mon-fri", "timezone": "Europe/Berlin"},
        "target": {
            "kind": "function",
            "name": "shell",
            "args": {"command": "/usr/local/bin/backup.sh --full >/dev/null 2>&1"},
        },
        "timeout_seconds": 86400,
        "misfire": {"policy": "skip"},
        "overlap": {"policy": "allow"},
        "retry": {"max_attempts": 1},
    }
    assert only.notes == ()


def test_comments_and_empty_lines_are_passed_over_and_lines_keep_their_numbers() -> None:
    told = found("# m h dom mon dow command\n\n  # 0 1 * * * old\n\t5 4 * * * new\r\n")
    assert [(each.name, each.where) for each in told.items] == [("new", "line 4")]
    assert told.problems == ()


def test_an_empty_crontab_has_nothing_to_tell() -> None:
    assert found("# nothing\n") == ImportResult()


@pytest.mark.parametrize(
    "alias", ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"]
)
def test_an_alias_is_kept(alias: str) -> None:
    assert item(f"{alias}\t/bin/thing").document["trigger"]["expression"] == alias


def test_reboot_is_left_out_and_told() -> None:
    assert "a machine that boots" in why_left_out("@reboot /usr/bin/start-me")


def test_an_unknown_alias_is_left_out_and_told() -> None:
    assert "is not known" in why_left_out("@every_minute thing")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("0 2 * * *", "five fields and a command"),
        ("@daily", "no command"),
        ("hello", "five fields and a command"),
        ("61 * * * * thing", "minute field"),
        ("0 0 30 2 * thing", "never fires"),
        ("5/2 * * * * thing", "a step needs a range"),
        ("H * * * * thing", '"H" can\'t be read'),
        ("0 0 L * * thing", '"L" can\'t be read'),
        ("0 0 ? * 5#2 thing", "can't be read"),
        ("0 0 * * fri-sun thing", "day-of-week field"),
        ("PATH='/bin", "the quote is not closed"),
        ("0 0 * * * %only input", "no command"),
    ],
)
def test_what_is_no_crontab_line_is_left_out_with_the_reason_and_the_line(line: str, why: str) -> None:
    told = found(f"# first\n{line}\n0 1 * * * good")
    [problem] = told.problems
    assert (problem.where, problem.what) == ("line 2", line)
    assert why in problem.why
    assert [each.name for each in told.items] == ["good"], "the others are taken over all the same"


def test_a_time_chosen_at_random_is_hashed_instead_and_told() -> None:
    only = item("0~29 ~ * * 1-5 thing")
    assert only.document["trigger"]["expression"] == "H(0-29) H(0-23) * * 1-5"
    assert any("0~29" in note for note in only.notes)


# --- variables ------------------------------------------------------------------------------------------


def test_variables_go_to_the_commands_below_them() -> None:
    text = "A=1\n0 1 * * * one\nPATH = \"/opt/bin:/bin\"\nA=2 \nB='x y'\n0 2 * * * two\n"
    one, two = found(text).items
    assert one.document["target"]["args"]["env"] == {"A": "1"}
    assert two.document["target"]["args"]["env"] == {"A": "2", "PATH": "/opt/bin:/bin", "B": "x y"}


def test_the_shell_is_passed_on_for_the_task_function_to_use() -> None:
    assert args("SHELL=/bin/bash\n0 1 * * * thing") == {"command": "thing", "env": {"SHELL": "/bin/bash"}}


def test_a_variable_set_for_one_command_is_part_of_the_command() -> None:
    assert args("0 1 * * * LANG=C sort x") == {"command": "LANG=C sort x"}


@pytest.mark.parametrize(
    ("lines", "zone"),
    [
        ("CRON_TZ=Asia/Tokyo", "Asia/Tokyo"),
        ("TZ=:Asia/Tokyo", "Asia/Tokyo"),
        ("TZ=Asia/Tokyo\nCRON_TZ=Europe/Paris", "Europe/Paris"),
        ("CRON_TZ=", "America/Lima"),
    ],
)
def test_the_time_zone_is_that_of_cron_tz_or_tz_or_the_machine(lines: str, zone: str) -> None:
    only = item(f"{lines}\n0 1 * * * thing", timezone="America/Lima")
    assert only.document["trigger"]["timezone"] == zone


def test_that_tz_moves_the_schedule_is_told_since_not_every_cron_does_so() -> None:
    assert any("some crons" in note for note in item("TZ=Asia/Tokyo\n0 1 * * * thing").notes)
    assert item("CRON_TZ=Asia/Tokyo\n0 1 * * * thing").notes == ()


def test_lines_below_a_zone_that_there_is_not_are_left_out() -> None:
    assert "did you mean Europe/Berlin?" in why_left_out("CRON_TZ=Europe/Berln\n0 1 * * * thing")


def test_mail_is_told_to_be_no_more_and_not_passed_on() -> None:
    only = item("MAILTO=ops@example.com\n0 1 * * * thing")
    assert only.document["target"]["args"] == {"command": "thing"}
    assert only.notes == ("its output is not mailed to ops@example.com; it is kept with each execution",)
    assert item('MAILTO=""\n0 1 * * * thing').notes == ()


def test_a_random_delay_becomes_jitter() -> None:
    assert item("RANDOM_DELAY=3\n0 1 * * * thing").document["jitter_seconds"] == 180
    vague = item("RANDOM_DELAY=some\n0 1 * * * thing")
    assert "jitter_seconds" not in vague.document
    assert any("no number" in note for note in vague.notes)


def test_a_variable_that_looks_like_a_secret_is_pointed_out() -> None:
    assert any("DB_PASSWORD" in note for note in item("DB_PASSWORD=x\n0 1 * * * thing").notes)


# --- commands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "command", "stdin"),
    [
        ("mail -s hi me%Dear me,%%bye", "mail -s hi me", "Dear me,\n\nbye\n"),
        (r"date +\%F", "date +%F", None),
        (r"echo a\%b%c\%d%", "echo a%b", "c%d\n"),
        (r"echo a\nb", r"echo a\nb", None),
        ("cat%", "cat", "\n"),
        ("echo trailing\\", "echo trailing\\", None),
    ],
)
def test_what_stands_behind_a_percent_is_the_input(written: str, command: str, stdin: str | None) -> None:
    told = args(f"0 1 * * * {written}")
    assert (told["command"], told.get("stdin")) == (command, stdin)


def test_that_a_command_gets_input_is_told() -> None:
    assert any("behind %" in note for note in item("0 1 * * * cat%hello").notes)


def test_text_that_looks_like_a_secret_of_ours_reaches_the_command_as_it_was() -> None:
    told = args("A=${secret:a}\n0 1 * * * echo ${secret:1} $${secret:2} ${secret")
    assert resolve(told, {}) == {
        "command": "echo ${secret:1} $${secret:2} ${secret",
        "env": {"A": "${secret:a}"},
    }


def test_commands_can_be_posted_to_an_agent_instead() -> None:
    only = item("A=1\n0 1 * * * cat%x", url="https://agent.example/run")
    assert only.document["target"] == {
        "kind": "http",
        "method": "POST",
        "url": "https://agent.example/run",
        "body": {"command": "cat", "env": {"A": "1"}, "stdin": "x\n"},
    }


def test_what_is_left_in_the_background_is_told_to_end_with_the_command() -> None:
    assert any("background" in note for note in item("0 1 * * * serve &").notes)
    assert item("0 1 * * * a && b").notes == ()


# --- system crontabs ------------------------------------------------------------------------------------

DEBIAN = """\
SHELL=/bin/sh
# You can also override PATH, but by default, newer versions inherit it from the environment
17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly
25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
@weekly www-data /usr/bin/php /var/www/cron.php
"""


def test_the_users_of_a_system_crontab_are_told_and_no_part_of_the_command() -> None:
    hourly, daily, weekly = found(DEBIAN, is_system=True).items
    assert hourly.document["target"]["args"]["command"] == "cd / && run-parts --report /etc/cron.hourly"
    assert [each.name for each in (hourly, daily, weekly)] == [
        "run-parts-cron.hourly",
        "run-parts-cron.daily",
        "php-cron",
    ]
    assert "cron ran it as www-data" in weekly.notes[0]


def test_a_line_without_a_user_is_left_out_of_a_system_crontab() -> None:
    assert "is no user" in why_left_out("0 1 * * * /bin/thing", is_system=True)
    assert "is no user" in why_left_out("@daily", is_system=True)


def test_a_system_crontab_that_is_read_as_a_users_is_pointed_out() -> None:
    assert any("--system" in note for note in item("0 1 * * * root thing").notes)


# --- names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cd /srv/app && ./manage.py clearsessions -v0", "manage-clearsessions"),
        ("FOO=1 /usr/bin/python3 -m reports.daily --region eu", "python3-reports.daily-eu"),
        ("[ -x /usr/bin/certbot ] && perl -e 'sleep 1' ; certbot -q renew", "perl-sleep-1"),
        ("sleep 5; curl -s https://example.com/ping >/dev/null", "curl-ping"),
        ("/", "command"),
        ("cd /tmp", "cd-tmp"),
        ("échange", "change"),
        ("x" * 200, "x" * 60),
    ],
)
def test_a_name_is_made_of_what_the_command_calls(command: str, name: str) -> None:
    assert name_of(command) == name


def test_names_are_unique_and_may_have_a_prefix() -> None:
    told = found("0 1 * * * thing\n0 2 * * * thing\n0 3 * * * /bin/thing", prefix="web1-")
    assert [each.name for each in told.items] == ["web1-thing", "web1-thing-2", "web1-thing-3"]


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=300))
def test_any_command_gives_a_name_that_a_schedule_can_have(command: str) -> None:
    ScheduleSpec.parse(
        {
            "name": name_of(command),
            "trigger": {"kind": "cron", "expression": "@daily"},
            "target": {"kind": "function", "name": "shell"},
        }
    )


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=400), st.booleans())
def test_any_text_is_read_and_nothing_of_it_passes_without_a_word(text: str, is_system: bool) -> None:
    told = found(text, is_system=is_system)
    lines = [line.strip() for line in text.split("\n")]
    entries = [line for line in lines if line and not line.startswith("#") and "=" not in line]
    assert len(told.items) + len(told.problems) >= len(entries)


# --- times: what is imported fires as the line says -----------------------------------------------------

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
IS_RANGE_OF_ONE = re.compile(r"\b(\d+)-\1/")
"""cronsim takes 5-5/2 for 5/2, which cron does not."""
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


def terms(low: int, high: int, names: list[str]) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    steps = st.sampled_from(["", "/1", "/2", "/3", "/5", "/7", "/10", "/15"])
    pair = st.tuples(number, number).map(sorted)
    plain = [
        st.just("*"),
        st.builds("*{}".format, steps),
        number.map(str),
        st.builds(lambda ends, step: f"{ends[0]}-{ends[1]}{step}", pair, steps),
    ]
    return st.one_of(*plain, *([st.sampled_from(names)] if names else []))


def fields(low: int, high: int, names: list[str]) -> st.SearchStrategy[str]:
    return st.lists(terms(low, high, names), min_size=1, max_size=3).map(",".join)


LINES = st.tuples(
    fields(0, 59, []), fields(0, 23, []), fields(1, 31, []), fields(1, 12, MONTHS), fields(0, 7, WEEKDAYS)
)


def allowed(text: str, low: int, high: int, names: list[str]) -> set[int]:
    """The numbers of a field, by crontab(5)."""
    found_numbers: set[int] = set()
    for term in text.split(","):
        body, _, step = term.partition("/")
        first, dash, last = body.partition("-")
        if body == "*":
            ends = (low, high)
        elif body in names:
            ends = (names.index(body) + low,) * 2
        else:
            ends = (int(first), int(last) if dash else int(first))
        found_numbers.update(range(ends[0], ends[1] + 1, int(step or 1)))
    return found_numbers


def expected_of(parts: tuple[str, ...], after: datetime) -> list[datetime]:
    minute, hour, day, month, weekday = parts
    numbers = {
        "minute": allowed(minute, 0, 59, []),
        "hour": allowed(hour, 0, 23, []),
        "day_of_month": allowed(day, 1, 31, []),
        "month_of_year": allowed(month, 1, 12, MONTHS),
        "day_of_week": {number % 7 for number in allowed(weekday, 0, 7, WEEKDAYS)},
    }
    return walked(numbers, after, 20, either_day=not (day.startswith("*") or weekday.startswith("*")))


@settings(deadline=None, derandomize=True)
@given(LINES, st.integers(0, 4 * 366 * 86400))
def test_what_is_imported_fires_as_the_line_says(parts: tuple[str, ...], later_s: int) -> None:
    now = NOW + timedelta(seconds=later_s)
    told = found(f"{' '.join(parts)} thing", now=now)
    expected = expected_of(parts, now)
    if not expected:
        assert [problem.why for problem in told.problems if "never fires" in problem.why]
        return
    [only] = told.items
    assert fires_of(only, now, len(expected)) == expected


@settings(deadline=None, derandomize=True)
@given(st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata"]), LINES)
def test_it_fires_by_the_clock_of_its_zone_as_cronsim_has_it(zone: str, parts: tuple[str, ...]) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    line = f"{parts[0]} {parts[1]} * * {parts[4]}"
    assume(not any(IS_RANGE_OF_ONE.search(part) for part in parts))
    only = item(f"CRON_TZ={zone}\n{line} thing", now=now)
    oracle = CronSim(line.upper(), now.astimezone(ZoneInfo(zone)))
    assert fires_of(only, now, 20) == [next(oracle).astimezone(UTC) for _ in range(20)]
