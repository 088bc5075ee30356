r"""How sections become text in five forms, and how they are read back from it.

An item is one text that nothing in it can leave. Its line breaks, what nobody sees (controls,
direction marks, tags) and what opens a frame elsewhere (`<tag`, `<|token|>`, `[INST]`) are written
as escapes: `\u003c|im_start|>`. Around the items of a frame stands a boundary, made of what they
say, that occurs in none of them. So `parse(render(sections, form), form)` gives the sections for
every text, and the same sections always give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import groupby

from mnemic.model.context import APPROVED, FOUND, KNOWN, ContextForm, Frame, Section, frame_of

__all__ = ["boundary_of", "join", "parse", "part_of", "pieces", "render"]

BOUNDARY_LETTERS = 6
BOUNDARY_ATTEMPTS_MAX = 50
_ALPHABET = "bcdfghjklmnpqrstvwxz"  # no vowels, so that it is no word
_VOLATILE = (APPROVED, FOUND)

# What is not seen, or breaks a line, beside what JSON escapes anyway; what joins emoji and letters
# (U+200C, U+200D) stays.
_UNSEEN = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_OPENS = r"<(?=[|/!?<A-Za-z])|\[(?=/?[A-Z_]{3,}\])"
_ESCAPED = re.compile(rf"[{_UNSEEN}]|{_OPENS}")
_XML_ESCAPED = re.compile(rf"[&<>\"\x00-\x1f{_UNSEEN}]|{_OPENS}")
_XML_ESCAPE = re.compile(r"&(?:(amp|lt|gt|quot)|#x([0-9a-f]+));")
_XML_NAMES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot"}
_XML_CHARACTERS = {name: character for character, name in _XML_NAMES.items()}
_XML_LINE = re.compile(r'<section title="(?P<title>[^"]*)">|<item>(?P<item>.*)</item>')


def render(sections: Sequence[Section], form: ContextForm = ContextForm.MARKDOWN) -> str:
    """The sections, each in the frame of its title; empty without items."""
    return join(part_of(sections, (KNOWN,), form), part_of(sections, _VOLATILE, form), form)


def part_of(sections: Sequence[Section], frames: Sequence[Frame], form: ContextForm) -> str:
    """The sections of some frames as a text of its own; empty without items."""
    filled = [
        (frame, [one for one in sections if one.items and frame_of(one.title) is frame])
        for frame in frames
    ]
    texts = [_framed(frame, held, form) for frame, held in filled if held]
    if form is ContextForm.JSON:
        return f"[{','.join(texts)}]" if texts else ""
    return "\n\n".join(texts)


def join(stable: str, volatile: str, form: ContextForm) -> str:
    """Both parts as one text; the stable one stands first, so that a prompt cache keeps it."""
    parts = {"stable": stable, "volatile": volatile}
    filled = {name: text for name, text in parts.items() if text}
    if not filled:
        return ""
    if form is ContextForm.JSON:
        return "{" + ",".join(f"{_quoted(name)}:{text}" for name, text in filled.items()) + "}"
    if form is ContextForm.MESSAGES:
        return f"[{','.join(map(_message, filled.values()))}]"
    return "\n\n".join(filled.values())


def pieces(section: str, item: str, form: ContextForm) -> tuple[str, str, str]:
    """What an item, the first of its section and the first of its frame add to a text, about."""
    frame = frame_of(section)
    if form is ContextForm.MESSAGES:
        line, title, around = pieces(section, item, ContextForm.MARKDOWN)
        return _inner(line), _inner(title), f",{_message(around)}"
    if form is ContextForm.JSON:
        titled, framed = _json_section(Section(section, ())), _json_frame(frame, [])
        return f",{_quoted(item)}", f",{titled}", f',"volatile":[{framed}]'
    if form is ContextForm.XML:
        titled = "\n".join(_xml_section(Section(section, ())))
        return f"\n<item>{_xml(item)}</item>", f"\n{titled}", f"\n\n{_xml_frame(frame, [])}"
    titled, line = _lines(Section(section, (item,)), form)
    return f"\n{line}", f"\n{titled}", f"\n\n{_lined_frame(frame, [], form)}"


def parse(text: str, form: ContextForm = ContextForm.MARKDOWN) -> tuple[Section, ...]:
    """The sections of a rendered text; those without items are not in it."""
    if not text:
        return ()
    if form is ContextForm.JSON:
        parts = json.loads(text)
        return tuple(
            Section(one["title"], tuple(one["items"]))
            for part in parts.values()
            for frame in part
            for one in frame["sections"]
        )
    if form is ContextForm.MESSAGES:
        return tuple(one for message in json.loads(text) for one in parse(message["content"]))
    if form is ContextForm.XML:
        return _grouped(_xml_read(text.split("\n")))
    return _grouped(_lines_read(text.split("\n"), form))


def boundary_of(body: str) -> str:
    """Letters that follow from a text and do not occur in it.

    They need not be secret: who knows them all the same can write no text that holds them, since
    another text has others.
    """
    said = sha256(body.encode("utf-8", "surrogatepass"))
    held = body.casefold()
    boundary = ""
    for attempt in range(BOUNDARY_ATTEMPTS_MAX):
        tried = said.copy()
        tried.update(attempt.to_bytes(2))
        number = int.from_bytes(tried.digest())
        letters = []
        for _ in range(
            BOUNDARY_LETTERS + attempt
        ):  # the longer, the fewer of them does a text hold
            number, place = divmod(number, len(_ALPHABET))
            letters.append(_ALPHABET[place])
        boundary = "".join(letters)
        if boundary not in held:
            break
    return boundary


def _framed(frame: Frame, sections: Sequence[Section], form: ContextForm) -> str:
    if form is ContextForm.JSON:
        return _json_frame(frame, sections)
    if form is ContextForm.XML:
        return _xml_frame(frame, sections)
    return _lined_frame(frame, sections, form)


def _inner(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _message(content: str) -> str:
    return json.dumps({"role": "user", "content": content}, ensure_ascii=False)


def _lined_frame(frame: Frame, sections: Sequence[Section], form: ContextForm) -> str:
    mark = "" if form is ContextForm.TEXT else "## "
    lines = [line for section in sections for line in _lines(section, form)]
    fence = "=" + boundary_of("\n".join(lines))
    closing = [frame.closing] if frame.closing else []
    return "\n".join([f"{mark}{frame.heading}", fence, *lines, fence, *closing])


def _lines(section: Section, form: ContextForm) -> list[str]:
    mark = "" if form is ContextForm.TEXT else "- "
    return [_title(section.title, form), *(f"{mark}{_quoted(item)}" for item in section.items)]


def _title(title: str, form: ContextForm) -> str:
    return title if form is ContextForm.TEXT else f"### {title}"


def _lines_read(lines: Iterable[str], form: ContextForm) -> Iterable[tuple[str, str]]:
    """Each item with its title; what stands outside the boundaries is none."""
    item_mark, title_mark = ("", "") if form is ContextForm.TEXT else ("- ", "### ")
    inside, title = False, ""
    for line in lines:
        if line.startswith("="):
            inside = not inside
        elif inside and line.startswith(f'{item_mark}"'):
            yield title, json.loads(line.removeprefix(item_mark))
        elif inside:
            title = line.removeprefix(title_mark)


def _quoted(item: str) -> str:
    return _ESCAPED.sub(_json_escape, json.dumps(item, ensure_ascii=False))


def _json_escape(match: re.Match[str]) -> str:
    raw = match[0].encode("utf-16-be")
    return "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2))


def _json_frame(frame: Frame, sections: Sequence[Section]) -> str:
    note = f',"note":{_quoted(frame.closing)}' if frame.closing else ""
    held = ",".join(map(_json_section, sections))
    return f'{{"about":{_quoted(frame.heading)},"sections":[{held}]{note}}}'


def _json_section(section: Section) -> str:
    items = ",".join(map(_quoted, section.items))
    return f'{{"title":{_quoted(section.title)},"items":[{items}]}}'


def _xml_frame(frame: Frame, sections: Sequence[Section]) -> str:
    lines = [line for section in sections for line in _xml_section(section)]
    boundary = boundary_of("\n".join(lines))
    name = "approved" if frame.is_instruction else "memory"
    tag = f"{name}-{boundary}"
    note = [f"<note>{_xml(frame.closing)}</note>"] if frame.closing else []
    return "\n".join([f'<{tag} about="{_xml(frame.heading)}">', *lines, *note, f"</{tag}>"])


def _xml_section(section: Section) -> list[str]:
    items = [f"<item>{_xml(item)}</item>" for item in section.items]
    return [f'<section title="{_xml(section.title)}">', *items, "</section>"]


def _xml(text: str) -> str:
    return _XML_ESCAPED.sub(_xml_escape, text)


def _xml_escape(match: re.Match[str]) -> str:
    name = _XML_NAMES.get(match[0])
    return f"&{name};" if name else f"&#x{ord(match[0]):x};"


def _xml_text(escaped: str) -> str:
    return _XML_ESCAPE.sub(
        lambda match: _XML_CHARACTERS[match[1]] if match[1] else chr(int(match[2], 16)), escaped
    )


def _xml_read(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    title = ""
    for line in lines:
        if found := _XML_LINE.fullmatch(line):
            if found["title"] is not None:
                title = _xml_text(found["title"])
            else:
                yield title, _xml_text(found["item"])


def _grouped(items: Iterable[tuple[str, str]]) -> tuple[Section, ...]:
    """Items that follow each other under one title are its section."""
    return tuple(
        Section(title, tuple(item for _, item in held))
        for title, held in groupby(items, key=lambda one: one[0])
    )
