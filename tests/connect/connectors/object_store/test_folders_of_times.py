"""Folders of times are those of the original, which names them with Joda-Time.

What Joda-Time 2.13.0 made of each hour from 2019 to 2027, 20 minutes into it, is here as hashes: of
its texts, a line each, with the beginning of the period that the original's partitioner finds.
"""

import datetime
import hashlib
from typing import Any, Final

import pytest

from connect.connectors.object_store.files import FileSettings
from connect.connectors.object_store.settings import CONFIG
from connect.connectors.object_store.sink import mistake_in
from connect.connectors.object_store.times import next_end_ms
from connect.java.joda_format import JodaFormat, begin_of_period, zone_of
from connect.java.joda_times import time_ms_of
from millstream.connect import DataException, Schema, Struct
from tests.lib.connect_tasks import sink_record

ALL_LETTERS: Final = (
    "xxxx-'W'ww-e/yyyy-DDD/yy/YY/xx/G/C/EEE/EEEE/MMM/MMMM/M/d/a/K/h/H/k/m/s/SSS/S/SSSSSS/Z/ZZ/ZZZ"
    "/''/Y/y/x/DDDD/hhh"
)
HOURS: Final = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
DAYS: Final = "'year'=YYYY/'month'=MM/'day'=dd"
HASHES: Final = [
    ("UTC", HOURS, 3_600_000, "4592357da35bf4414f7f"),
    ("America/Los_Angeles", HOURS, 3_600_000, "36436b434443df280c74"),
    ("America/Los_Angeles", DAYS, 86_400_000, "38c7f545e2a6cf5d2ef2"),
    ("Europe/Berlin", HOURS, 3_600_000, "ec4b58b5163a4b4b88bf"),
    ("Europe/Berlin", ALL_LETTERS, 900_000, "047c17ccd83c3cf8fb6c"),
    ("Australia/Lord_Howe", HOURS, 3_600_000, "2c5f8f1a50e43e662cc9"),
    ("Australia/Lord_Howe", "'d'=YYYY-MM-dd'T'HHmm", 21_600_000, "d50cad75492d212df35c"),
    ("America/St_Johns", HOURS, 3_600_000, "f8c45a1939fd40abff72"),
    ("America/St_Johns", "'h'=YYYYMMddHH", 7_200_000, "c750fa8f1715b212ada4"),
]
"""Zone, pattern, ms of a period, and what the SHA-256 begins with."""
HOUR_MS: Final = 3_600_000
BEGIN_MS: Final = 1_546_300_800_000
END_MS: Final = 1_830_297_600_000

ODD_PATTERNS: Final = {
    "b": None,
    "YYYY-q": None,
    "'open": "open",
    "J": None,
    "A": None,
    "YYYY''MM": "2024'12",
    "L": None,
    "u": None,
    "W": None,
    "F": None,
    "X": None,
    "V": None,
    "n": None,
    "N": None,
    "c": None,
    "t": None,
    "'a''b'": "a'b",
    "": None,
    "YYYY\\MM": "2024\\12",
    "[YYYY]": "[2024]",
    "{dd}": "{30}",
    "#": "#",
    "YYYY-MM-dd?": "2024-12-30?",
    "hha": "03AM",
}
"""What 2024-12-30T03:40Z is in each; None: it is refused."""

ISO_TIMES: Final = {
    "2024-12-30": 1_735_516_800_000,
    "2024-12-30T10:11:12Z": 1_735_553_472_000,
    "2024-12-30T10:11:12.5+01:00": 1_735_549_872_500,
    "2024-12-30T10:11:12,123456789Z": 1_735_553_472_123,
    "2024-12": 1_733_011_200_000,
    "2024-365": 1_735_516_800_000,
    "2024-W52-1": 1_734_912_000_000,
    "2024-W52": 1_734_912_000_000,
    "T10:11": 36_660_000,
    "2024-12-30T": 1_735_516_800_000,
    "2024-12-30T10": 1_735_552_800_000,
    "2024-12-30T10.5": 1_735_554_600_000,
    "2024-12-30T10:30.25Z": 1_735_554_615_000,
    "2024-12-30T10:11:12-0800": 1_735_582_272_000,
    "2024-12-30T10:11:12-08": 1_735_582_272_000,
    "2024-12-30TZ": 1_735_516_800_000,
    "2024-12-30 10:11:12": None,
    "2024-12-30T24:00:00": None,
    "2024-12-30T10:11:12.": None,
    "+2024-12-30": 1_735_516_800_000,
    "2024-1-2": 1_704_153_600_000,
    "2024-02-30": None,
    "2024-12-30T10:60": None,
    "2024-366": 1_735_603_200_000,
    "2023-366": None,
    "2024-W53-7": None,
    "2020-W53-7": 1_609_632_000_000,
    "2024-12-30T1:2:3": 1_735_520_523_000,
    "2024-12-30T10:11:12+01:00:30.5": 1_735_549_841_500,
    "2024-12-30T10:11:12+01:30:15": 1_735_548_057_000,
    "x": None,
    "": None,
    "2024-12-30t10:11:12z": 1_735_553_472_000,
    "2024-12-30T10:11:12.123Z ": None,
    "99999999999999999999": None,
    "2024-12-30T10:11:12.0001Z": 1_735_553_472_000,
    "2024-12-30T10:11:12 +01:00": None,
    "2024W521": None,
    "2024-12-30T+02:00": 1_735_509_600_000,
}


@pytest.mark.parametrize(("zone", "pattern", "period_ms", "expected"), HASHES)
def test_every_hour_of_nine_years_has_the_folder_of_the_original(
    zone: str, pattern: str, period_ms: int, expected: str
) -> None:
    at, names, found = zone_of(zone), JodaFormat(pattern, zone_of(zone)), hashlib.sha256()
    for hour_ms in range(BEGIN_MS, END_MS, HOUR_MS):
        begin_ms = begin_of_period(hour_ms + 1_234_567, period_ms, at)
        found.update(f"{names.format(begin_ms)}\n".encode())
    assert found.hexdigest()[:20] == expected


@pytest.mark.parametrize(("pattern", "expected"), ODD_PATTERNS.items())
def test_patterns_are_joda_times(pattern: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match=r"pattern|Illegal"):
            JodaFormat(pattern)
    else:
        assert JodaFormat(pattern).format(1_735_530_000_000) == expected


@pytest.mark.parametrize(("text", "expected"), ISO_TIMES.items())
def test_iso_texts_are_joda_times(text: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="not an ISO 8601 time"):
            time_ms_of(text)
    else:
        assert time_ms_of(text) == expected


@pytest.mark.parametrize("text", ["12024-01-01", "-0044-03-15", "9" * 20, "\u0661-01-01"])
def test_no_text_of_another_kind_is_a_time(text: str) -> None:
    with pytest.raises(ValueError, match="not an ISO 8601 time"):
        time_ms_of(text)


def test_digits_alone_are_ms_since_1970() -> None:
    assert [time_ms_of(text) for text in ("0", "-5", "1735530000000")] == [0, -5, 1_735_530_000_000]


def folder_of(value: Any, **settings: str) -> str:
    told = {
        "store.url": "file:///x",
        "flush.size": "1",
        "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
        "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
        "partition.duration.ms": "3600000",
        "locale": "en-US",
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    files = FileSettings(CONFIG.parse(told), clock=lambda: 1_735_603_200_000)
    folder, _ = files.place(sink_record(1, "k", value))
    return folder.removeprefix("topics/orders/")


MOMENT: Final = datetime.datetime(2024, 12, 30, 23, 30, tzinfo=datetime.UTC)
TEXT: Final = Schema.struct({"at": Schema.string()})


def test_the_zone_and_the_time_that_count_are_the_users() -> None:
    value = Struct(Schema.struct({"at": Schema.timestamp()}), {"at": MOMENT})
    by_field = {"timestamp_extractor": "RecordField", "timestamp_field": "at"}
    assert folder_of(value, **by_field) == "year=2024/month=12/day=30/hour=23"
    assert (
        folder_of(value, timezone="Europe/Berlin", **by_field)
        == "year=2024/month=12/day=31/hour=00"
    )
    for at in ("2024-12-30T23:30:00Z", "2024-12-31T00:30+01:00", "1735601400000"):
        text = Struct(TEXT, {"at": at})
        assert folder_of(text, timezone="+01:00", **by_field) == "year=2024/month=12/day=31/hour=00"
        assert folder_of({"at": at}, **by_field) == "year=2024/month=12/day=30/hour=23"
    # Without a word about it, the clock of the wall counts; a record's own time is 2023.
    assert folder_of(value) == "year=2024/month=12/day=31/hour=00"
    assert folder_of(value, timestamp_extractor="Record") == "year=2023/month=11/day=14/hour=22"
    java = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$RecordTimestampExtractor"
    assert folder_of(value, timestamp_extractor=java) == "year=2023/month=11/day=14/hour=22"


@pytest.mark.parametrize(
    ("zone", "at", "interval_ms", "expected"),
    [
        ("UTC", "2024-12-30T10:20:00Z", HOUR_MS, "2024-12-30T11:00:00Z"),
        ("UTC", "2024-12-30T11:00:00Z", HOUR_MS, "2024-12-30T12:00:00Z"),
        ("Asia/Kolkata", "2024-12-30T10:20:00Z", HOUR_MS, "2024-12-30T10:30:00Z"),
        # What does not divide the day ends with it.
        ("UTC", "2024-12-30T22:20:00Z", 7 * HOUR_MS, "2024-12-31T00:00:00Z"),
        ("America/Los_Angeles", "2024-12-30T22:20:00Z", 24 * HOUR_MS, "2024-12-31T08:00:00Z"),
        ("America/Los_Angeles", "2024-12-30T22:20:00Z", 90 * HOUR_MS, "2024-12-31T08:00:00Z"),
        # Days of 23 and of 25 hours.
        ("America/Los_Angeles", "2025-03-09T09:00:00Z", 24 * HOUR_MS, "2025-03-10T07:00:00Z"),
        ("America/Los_Angeles", "2024-11-03T08:00:00Z", 25 * HOUR_MS, "2024-11-04T08:00:00Z"),
    ],
)
def test_files_end_by_the_clock_of_the_zone(
    zone: str, at: str, interval_ms: int, expected: str
) -> None:
    assert next_end_ms(time_ms_of(at), interval_ms, zone_of(zone)) == time_ms_of(expected)


@pytest.mark.parametrize("at", ["soon", "", "2024-02-30", str(1 << 70), "9999999999999999"])
def test_a_text_that_is_no_time_is_a_bad_record(at: str) -> None:
    with pytest.raises(DataException):
        folder_of(Struct(TEXT, {"at": at}), timestamp_extractor="RecordField", timestamp_field="at")


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": "../../etc/passwd"}, "timezone"),
        ({"path.format": "YYYY/bb"}, "path.format"),
        ({"path.format": "YYYY/MMM", "locale": "de-DE"}, "locale"),
    ],
)
def test_what_has_no_folders_is_refused_when_it_is_configured(
    changes: dict[str, str], setting: str
) -> None:
    told = {
        "store.url": "file:///x",
        "flush.size": "1",
        "partitioner.class": "TimeBasedPartitioner",
        "path.format": "YYYY",
        "partition.duration.ms": "1",
        **changes,
    }
    found = mistake_in(CONFIG.parse(told))
    assert found is not None
    assert found[0] == setting
    numbers = {"path.format": "YYYY/MM", "locale": "de-DE"}
    assert mistake_in(CONFIG.parse({**told, "timezone": "", **numbers})) is None
