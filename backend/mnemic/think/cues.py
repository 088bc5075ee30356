"""What the wording of a sentence gives away about a session: aims, decisions, lessons, success.

English wording; a session in another language is told by its words' weights alone.
"""

from __future__ import annotations

import re

__all__ = [
    "is_decision",
    "is_failure",
    "is_greeting",
    "is_lesson",
    "is_partial",
    "is_request",
    "is_signal",
    "is_success",
]


def _any(*wordings: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(wordings)})\b", re.IGNORECASE)


_DECISION = _any(
    r"(?:i|we) (?:have |both |all )?(?:decided|chose|agreed|settled|picked|opted)",
    r"(?:i|we)(?:'ll| will) (?:use|go with|keep|take)",
    r"let's (?:use|go with|keep|take)",
    r"(?:the |our )?decision",
    r"go(?:ing|es)? with",
    r"changed (?:my|our) minds?",
    r"from now on",
)
_LESSON = _any(
    r"lessons? (?:learn(?:ed|t)|is|are|here|for)",
    r"the lessons?",
    r"lessons?(?=:)",
    r"next time",
    r"(?:it )?turn(?:s|ed) out",
    r"(?:i|we) (?:have )?learn(?:ed|t)",
    r"in hindsight",
    r"should(?:n't| not)? have",
    r"root cause",
    r"never again",
    r"note to (?:self|ourselves)",
    r"takeaways?",
)
_SIGNAL = _any(
    r"remember",
    r"don't forget",
    r"do not forget",
    r"important(?:ly)?",
    r"always",
    r"never",
    r"must(?: not)?",
    r"from now on",
    r"keep in mind",
    r"make sure",
    r"(?:i|we) prefer",
    r"critical",
)
_REQUEST = _any(
    r"(?:can|could|would|will) you",
    r"please",
    r"help",
    r"(?:i|we) (?:want|need|would like|plan|have|am trying|are trying|am starting|are starting) to",
    r"(?:i|we)'d like to",
    r"(?:i am|i'm|we are|we're) (?:starting|building|trying|planning|looking|working|going)",
    r"let's",
    r"how (?:do|can|should|would) (?:i|we)",
    r"what (?:should|do) (?:i|we)",
    r"today (?:i|we)",
)
_GREETING = re.compile(
    r"\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening|night)|morning|evening|thanks?"
    r"|thank you|thx|ok|okay|yes|no|yep|sure|great|perfect|cool|nice|bye|goodbye|see you|cheers"
    r"|welcome|agreed|done|noted|understood|gladly|go ahead|sounds good|you(?:'re| are) welcome)"
    r"(?: (?:there|again|all|so much|very much|a lot|everyone|later|tomorrow|too))?\W*){1,4}",
    re.IGNORECASE,
)
_FAILURE = _any(
    r"(?:still|again) (?:broken|fail(?:s|ing)|crash(?:es|ing)|down)",
    r"(?:does|do|did)(?:n't| not) (?:work|help|compile|start|run|build)",
    r"(?:has|have|had) failed",
    r"failed",
    r"not (?:fixed|solved|working|resolved)",
    r"(?:isn't|is not|wasn't|was not) (?:fixed|solved|working|resolved)",
    r"(?:rolled|roll|rolling) (?:it |this |that |everything )?back",
    r"(?:give|giving|gave) up",
    r"no luck",
    r"(?:can't|cannot|could not|couldn't) (?:fix|solve|get|make)",
    r"aborted",
    r"waste of time",
)
_SUCCESS = _any(
    r"thanks?",
    r"thank you",
    r"thx",
    r"\A(?:perfect|great|excellent|awesome|brilliant)",
    r"(?:it |that |this |everything |all )works?",
    r"works? (?:now|again|fine|great|well|as expected)",
    r"(?:is |are |all )?(?:fixed|solved|resolved)",
    r"(?:all|we are|we're|i am|i'm) done",
    r"well done",
    r"succeeded",
    r"success(?:ful|fully)?",
    r"that is all (?:i|we) need",
    r"worth it",
)
_NOT_SUCCESS = _any(
    r"no,? thanks?",
    r"thanks anyway",
    r"no success",
    r"(?:not|\w+n't|never|no longer) (?:\w+ )?(?:works?|fixed|solved|resolved|done)",
    r"would be (?:great|perfect|awesome|excellent)",
)
_PARTIAL = _any(
    r"part(?:ly|ially)",
    r"half (?:done|way|of it)",
    r"for now",
    r"work-?around",
    r"to be continued",
    r"(?:continue|finish|pick (?:it|this) up) (?:\w+ )?(?:tomorrow|later|next)",
    r"not (?:yet|quite|finished|done)",
    r"isn't (?:finished|done)",
    r"still (?:open|missing|to do|needs?)",
)


def is_decision(sentence: str) -> bool:
    """Whether something is decided."""
    return _DECISION.search(sentence) is not None


def is_lesson(sentence: str) -> bool:
    """Whether something is learned for another time."""
    return _LESSON.search(sentence) is not None


def is_signal(sentence: str) -> bool:
    """Whether the speaker wants it kept in mind."""
    return _SIGNAL.search(sentence) is not None


def is_request(sentence: str) -> bool:
    """Whether something is asked for or set out to be done."""
    return _REQUEST.search(sentence) is not None


def is_greeting(sentence: str) -> bool:
    """Whether it is nothing but courtesy."""
    return _GREETING.fullmatch(sentence) is not None


def is_failure(sentence: str) -> bool:
    """Whether it tells of something that went wrong and stayed so."""
    return _FAILURE.search(sentence) is not None


def is_success(sentence: str) -> bool:
    """Whether it tells of success, or gives thanks; "no thanks" and "not fixed" do neither."""
    return _SUCCESS.search(sentence) is not None and _NOT_SUCCESS.search(sentence) is None


def is_partial(sentence: str) -> bool:
    """Whether something was reached and something is left."""
    return _PARTIAL.search(sentence) is not None
