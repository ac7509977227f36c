"""Errors of the library in the words of the command line: options instead of Python."""

from __future__ import annotations

import re

# Advice for Python users, as the library writes it, and what someone at the command line can do.
ADVICE = {
    "Raise num_features, or leave it out.": "The model was trained without these features: leave them out of the file.",
    "Skip such rows with lenient=True.": "Skip such rows with --lenient.",
    "Pass conventions=Conventions(gain='linear').": "Use --gain linear.",
    "Pass the same columns; sparse files: read_letor(path, num_features=": "Give a file with the same columns (num_features=",
    " Name a file in it, or use read_folds for Fold1, Fold2, ...": " Name a file in it.",
    "Give the labels with the data, such as from_arrays(X, y, qid=qid).": "Give a file with labels.",
    "Train without resume, or with the settings": "Leave --resume out, or use the settings",
    "or train without resume.": "or leave --resume out.",
    "For data still to be ranked pass label=None.": "Data still to be ranked may come without labels in 'rankpolicy predict'.",
    "Leave checkpoint out.": "Leave --checkpoint out.",
    "Name some, as in space={'name': Between(low, high)}.": "Name some: --space NAME=LOW:HIGH.",
}
_SETTING = re.compile(
    r"\b(estimator|scaling|model|control|fairness|relevance|merit|exploration|random_state|num_samples|epochs|learning_rate)=('?)([\w.-]+)\2"
)


def for_command_line(message: str) -> str:
    """An error message with its advice put as options.

    Parameters
    ----------
    message
        The message of an error of the library.

    >>> for_command_line("only sums have it. Estimate its gradient by sampling: estimator='reinforce'.")
    'only sums have it. Estimate its gradient by sampling: --set estimator=reinforce.'
    """
    for python, options in ADVICE.items():
        message = message.replace(python, options)
    advice = message.rfind(". ", 0, len(message) - 1)
    return message[: advice + 1] + _SETTING.sub(_as_option, message[advice + 1 :])


def _as_option(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - 6) : found.start()]
    return (
        found.group()
        if before.endswith("--set ")
        else f"--set {found[1]}={found[3].rstrip('.')}{'.' * found[3].endswith('.')}"
    )
