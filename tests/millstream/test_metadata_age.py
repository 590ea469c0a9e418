from common.kafka import metadata_age as programs
from millstream import metadata_age


def test_both_sides_are_told_the_same() -> None:
    """What users import cannot import what lies beside it, so the settings stand twice."""
    assert metadata_age.METADATA_MAX_AGE_MS == programs.METADATA_MAX_AGE_MS
    assert metadata_age.ADMIN_SETTINGS == programs.ADMIN_SETTINGS
