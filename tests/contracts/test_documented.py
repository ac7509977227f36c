"""What is public is documented: every parameter of every public class, function and method, where ``help()`` shows it."""

import inspect

import pytest

import rankpolicy
from tests.undocumented import public_packages, undocumented

PUBLIC = {f"{module.__name__}.{name}": getattr(module, name) for module in public_packages() for name in module.__all__}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_explained(name):
    assert list(undocumented(PUBLIC[name], name)) == []


def test_the_check_notices_a_missing_parameter():
    def documented_in_part(first, second):
        """Add.

        Parameters
        ----------
        first
            A number.
        """

    documented_in_part.__module__ = "rankpolicy.example"
    assert list(undocumented(documented_in_part, "example")) == ["example: second"]


def test_the_first_names_are_few():
    assert 40 <= len(rankpolicy.__all__) <= 56
    assert not [name for name in rankpolicy.__all__ if inspect.getdoc(getattr(rankpolicy, name)) is None]
