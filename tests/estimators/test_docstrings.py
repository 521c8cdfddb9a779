"""Every parameter of every estimator is described once, and no shared description was left unfilled."""

import inspect
import re

import pytest

import multikernel

ESTIMATORS = [
    name for name in multikernel.__all__ if isinstance(getattr(multikernel, name), type) and name != "KernelStack"
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_described_once(name):
    cls = getattr(multikernel, name)
    # the same with the indentation of the source and, since Python 3.13, without
    text = inspect.cleandoc(cls.__doc__)
    assert not re.search(r"^<.*>$", text, re.M)
    section = text.split("Parameters\n----------\n")[1].split("Attributes\n----------\n")[0]
    entries = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", section, re.M)
    described = [each.strip() for entry in entries for each in entry.split(",")]
    parameters = [each for each in inspect.signature(cls.__init__).parameters if each != "self"]
    assert sorted(described) == sorted(parameters)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_description_is_left_unfilled(name):
    cls = getattr(multikernel, name)
    for attribute in dir(cls):
        member = inspect.getattr_static(cls, attribute)
        text = getattr(getattr(member, "fn", member), "__doc__", None) or ""
        assert not re.search(r"^ *<[a-zA-Z_, ]+>$", text, re.M), attribute
