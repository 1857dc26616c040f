import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pu_shift.paper.protocol import (
    CONVENTION,
    FITTED,
    STATED,
    Protocol,
    load_protocol,
)

ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = {item.name: item.default for item in fields(Protocol)}


BAD_VALUES = {
    int: (0, -1, 2.5, "5", None, True),
    float: (-1.0, float("nan"), float("inf"), "fast", None),
    str: ("no such choice", 1, None),
    type(None): ("no such choice", 1),  # where None is a choice
    bool: ("yes", 2, None),
    tuple: ((), (1.0, -1.0), (float("nan"),), (float("inf"),), ((1.0, 2.0),), "x", None),
}


# A number, or one choice.
OTHERWISE = {"ker_centers": BAD_VALUES[int]}


def bad_values():
    """Yield values that every field of a type must refuse."""
    return [
        (name, value)
        for name, default in DEFAULTS.items()
        for value in OTHERWISE.get(name, BAD_VALUES[type(default)])
    ]


@pytest.mark.parametrize(("name", "value"), bad_values())
def test_every_field_refuses_bad_values_in_one_line_that_names_it(name, value):
    with pytest.raises(ValueError, match=f"^{name} ") as caught:
        Protocol(**{name: value})
    assert "\n" not in str(caught.value)


def test_lin_and_ker_have_the_same_number_of_candidates():
    # “For fairness between the kernel model and linear model […] we used the same number of
    # hyperparameter candidates for each algorithm” (Implementation)
    lin, ker = (Protocol().estimator(method, 0.3) for method in ("Sq-Lin", "Sq-Ker"))
    assert len(lin.lams) == len(ker.lams)
    assert ker.width_rule == "ulsif", "its own risk chooses among λ alone"


@given(
    n_u=st.integers(1, 10**6),
    lams=st.lists(st.floats(0, 1e6), min_size=1, max_size=5),
    rate=st.floats(1e-6, 1.0),
    clip=st.booleans(),
)
def test_a_protocol_survives_the_way_through_json(n_u, lams, rate, clip):
    protocol = Protocol(n_u=n_u, ratio_lams=lams, learning_rate=rate, clip_coefficients=clip)
    written = protocol.as_dict()
    assert list(written) == list(DEFAULTS)
    assert load_protocol(json.loads(json.dumps(written))) == protocol


def test_overrides_from_a_file_change_only_what_they_name(tmp_path):
    path = tmp_path / "study.json"
    changed = {"n_folds": DEFAULTS["n_folds"] + 1, "risk_lams": [0.5]}
    path.write_text(json.dumps(changed), encoding="utf-8")
    expected = {**Protocol().as_dict(), **changed}
    assert load_protocol(path).as_dict() == expected
    assert load_protocol(str(path)).as_dict() == expected
    assert load_protocol() == Protocol()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "protocol .*study.json: not JSON"),
        (b"\xff\xfe", "protocol .*study.json: not JSON"),
        (b"[1, 2]", "protocol must be a JSON object"),
        (b"3", "protocol must be a JSON object"),
        (b'{"centres": 5}', "protocol has no field 'centres'"),
        (b'{"n_p": 0}', "n_p must be an integer >= 1, got 0"),
        (b'{"n_p": null}', "n_p must be an integer >= 1, got None"),
        (b'{"ratio_lams": [NaN]}', "ratio_lams must be finite numbers"),
    ],
)
def test_a_bad_file_is_a_one_line_error(tmp_path, content, message):
    path = tmp_path / "study.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_protocol(path)
    assert "\n" not in str(caught.value)


def test_every_field_says_where_it_comes_from_and_why():
    page = (ROOT / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line[:3] == "| `"]
    assert [row[0] for row in rows] == [f"| `{name}`" for name in DEFAULTS]
    for row, item in zip(rows, fields(Protocol)):
        assert len(row) == 4, f"{item.name}: a bar in a cell breaks the table"
        shown = json.loads(row[1].strip("`"))
        if isinstance(item.default, tuple):  # six digits, as the page has them
            assert shown == pytest.approx(item.default, rel=1e-5)
        else:
            assert shown == item.default
        assert item.metadata["origin"] in (STATED, CONVENTION, FITTED)
        assert len(item.metadata["why"]) > 5
