"""Words that carry no topic of their own, and the form in which two words are one term."""

from __future__ import annotations

from mnemic.model.words import words_in

__all__ = ["EMPTY_WORDS", "WEAK_WORDS", "term_of", "terms_of"]

_EMPTY = """
    a about above actually after again against all almost also although always am an and another
    any anybody anyone anything are around as at away back be because been before being below
    between both but by can cannot could did do does doing done down during each either else
    ever every everybody everyone everything few for from further get gets getting go goes going
    gone got had has have having he hello her here hers herself hey hi him himself his how
    however i if in indeed instead into is it its itself just let lets like may maybe me might
    mine more most much must my myself neither never no nobody none nor not nothing now of off
    oh ok okay on once one only onto or other others ought our ours ourselves out over own
    perhaps please quite rather really s same shall she should since so some somebody someone
    something still such t than thank thanks that the their theirs them themselves then there
    therefore these they this those though through thus to today together tomorrow tonight too
    under until up upon us very via was we well were what whatever when where whether which
    while who whom whose why will with within without would yes yesterday yet you your yours
    yourself yourselves
"""
_WEAK = """
    able add added adding agree agreed allow amazing april ask asked asking august awesome bad
    become began begin best better big bit bring brought build built busy call called came care
    careful cause certain chance change changed check clear close come comes coming common
    complete consider cool correct couple create created cut day days deal december decide
    decided deep depend different difficult due easy end enough evening exactly example excited
    exciting expect explain extra fact fair fantastic fast february feel fill final finally find
    fine finish first fit five fix fixed follow forget found four free friday full fun general
    gets give given glad good great guess haha half happen happened happens happy hard hear
    heard help helped helps high hmm hold holds hope hour hours huh idea important incredible
    inspiring january july june keep keeping keeps kept kind knew know known knows large last
    late later lead learn learned least leave left less life little live long longer look looked
    looking looks lose lot lots love lovely low made main make makes making many march matter
    mean means meant mention middle mind minute minutes moment monday month months morning move
    moved name near need needed needs new next nice night note noted notice november number
    october old open order part past pay people person pick place plain plan planning plus point
    possible prefer pretty probably problem promise put question quick quickly quite ran read
    ready real reason recent remember remind right run running runs said saturday saw say saying
    says second seconds see seem seems seen send sense sent september set several short show
    simple simply single six small soon sort sound sounds speak special spend start started
    starting stay step stop stuff sunday sure take takes taking talk tell ten thanks thing
    things think thinking third thought three thursday time times tired told took total tried
    true try trying tuesday turn two understand understood use used useful uses using usual
    usually utc wait waits want wanted wants watch way wednesday week weekend weeks went whole
    wish wonder wonderful word words work worked working works worry worth wow write wrong yeah
    year years yep
"""
EMPTY_WORDS = frozenset(_EMPTY.split())
WEAK_WORDS = EMPTY_WORDS | frozenset(_WEAK.split())
_PLURAL_CHARS_MIN = 4


def term_of(word: str) -> str:
    """The singular of an English plural, by Harman's rule; any other folded word as it is."""
    if len(word) < _PLURAL_CHARS_MIN or not word.endswith("s") or not word.isascii():
        return word
    if word.endswith("ies") and not word.endswith(("aies", "eies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]


def terms_of(text: str) -> list[str]:
    """The content words of a text as terms, in order, repeats included."""
    return [
        term_of(word)
        for word in words_in(text)
        if word not in EMPTY_WORDS and (len(word) > 1 or not word.isascii())
    ]
