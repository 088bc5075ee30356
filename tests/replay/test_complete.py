"""Every reported kind of fault is replayed by a test, or says why it cannot be yet."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SECTIONS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m")
IDS = {
    "a": "A03 A04 A07 A08 A09 A11 A12 A15 A16 A17 A18 A19 A20 A21",
    "b": "B04 B05 B09 B10 B11 B12 B13 B14 B15 B16 B17 B18",
    "c": "C02 C03 C05 C06 C08 C10 C11 C13 C14 C15",
    "d": "D04 D05 D06 D07 D09 D11 D12 D13 D15 D17 D18 D19 D20",
    "e": "E03 E04 E05 E06 E07 E09 E10 E11 E12 E15 E17 E18 E20 E21 E22 E24 E25",
    "f": "F02 F03 F05 F06 F07 F08 F09 F11 F12 F13 F14 F15 F18",
    "g": "G01 G03 G04 G05 G06 G07 G09 G10 G11 G13 G15 G17 G18 G21 G22 G23 G25 G28 G29 G30",
    "h": "H04 H05 H07 H08 H09 H10 H12 H13 H15 H16 H18 H19 H21 H22 H23 H24",
    "i": "I03 I04 I05 I06 I07 I08 I10 I11 I12 I14 I15 I16 I17 I18 I19 I23",
    "j": "J01 J04 J05 J07 J08 J09",
    "k": "K02 K03 K04 K05 K07 K10 K11 K12",
    "l": "L01 L02 L03 L05 L09 L10 L11 L12 L13 L17 L18 L19 L20 L21",
    "m": "M02 M03 M05 M08 M11 M12 M13 M15 M16 M17 M18 M19 M20 M21 M22",
}
REASON_WORDS_MIN = 5
_TEST = re.compile(r"test_([a-z])(\d\d)_\w+")
_WITHOUT_ID = re.compile(r"test_(?![a-z]\d\d_)")


def trees_of(section: str) -> list[ast.Module]:
    """The files of a section."""
    files = sorted(FOLDER.glob(f"test_{section}_*.py"))
    assert files, f"section {section} has no file"
    return [ast.parse(path.read_text(encoding="utf-8")) for path in files]


def names_of(section: str) -> list[str]:
    """The names of a section's tests."""
    nodes = [node for tree in trees_of(section) for node in ast.walk(tree)]
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [node.name for node in functions if node.name.startswith("test_")]


def ids_of(names: list[str]) -> Counter[str]:
    matches = (_TEST.fullmatch(name) for name in names)
    return Counter(f"{found[1].upper()}{found[2]}" for found in matches if found)


def reasons_of(section: str) -> dict[str, str]:
    """What the section says of ids that do not apply yet."""
    found: dict[str, str] = {}
    for node in (node for tree in trees_of(section) for node in tree.body):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and node.target.id == "NOT_APPLICABLE"
            and node.value is not None
        ):
            found |= ast.literal_eval(node.value)
    return found


@pytest.mark.parametrize("section", SECTIONS)
def test_each_id_has_a_test_or_a_reason(section: str) -> None:
    expected = set(IDS[section].split())

    tested, excused = set(ids_of(names_of(section))), set(reasons_of(section))

    assert expected - tested - excused == set(), "neither a test nor a reason"
    assert (tested | excused) - expected == set(), "not of this section"
    assert tested & excused == set(), "both a test and a reason"


@pytest.mark.parametrize("section", SECTIONS)
def test_each_test_has_an_id_and_each_reason_its_words(section: str) -> None:
    without = [name for name in names_of(section) if _WITHOUT_ID.match(name)]
    short = [one for one, why in reasons_of(section).items() if len(why.split()) < REASON_WORDS_MIN]

    assert without == []
    assert short == []


def test_every_file_here_belongs_to_a_section_that_is_checked() -> None:
    files = {path.stem for path in FOLDER.glob("test_*.py")} - {"test_complete"}

    assert {name.removeprefix("test_")[:2] for name in files} == {f"{one}_" for one in SECTIONS}
