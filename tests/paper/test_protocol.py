import json
from dataclasses import FrozenInstanceError, fields
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


def kind(*types):
    return [name for name, default in DEFAULTS.items() if type(default) in types]


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


def test_the_bad_values_above_cover_every_field():
    assert {name for name, _ in bad_values()} == set(DEFAULTS)


def test_zero_is_a_penalty_but_no_width():
    for name in kind(tuple):
        if name.endswith("lams"):
            assert getattr(Protocol(**{name: [0, 1]}), name) == (0.0, 1.0)
        else:
            with pytest.raises(ValueError, match=f"{name} must be finite numbers > 0, got 0.0"):
                Protocol(**{name: [0, 1]})


def test_lin_and_ker_have_the_same_number_of_candidates():
    # “For fairness between the kernel model and linear model […] we used the same number of
    # hyperparameter candidates for each algorithm” (Implementation)
    lin, ker = (Protocol().estimator(method, 0.3) for method in ("Sq-Lin", "Sq-Ker"))
    assert len(lin.lams) == len(ker.lams)
    assert ker.width_rule == "ulsif", "its own risk chooses among λ alone"


def test_one_fold_leaves_nothing_to_train_on():
    with pytest.raises(ValueError, match="n_folds must be an integer >= 2, got 1"):
        Protocol(n_folds=1)


def test_it_is_frozen_hashable_and_compares_by_value():
    with pytest.raises(FrozenInstanceError):
        Protocol().n_p = 1
    assert Protocol(risk_lams=[1]) == Protocol(risk_lams=(1.0,))
    assert hash(Protocol(risk_lams=[1])) == hash(Protocol(risk_lams=(1.0,)))
    assert Protocol(n_p=7) != Protocol(n_p=8)


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


def test_numbers_come_back_as_numbers():
    assert Protocol(learning_rate="1e-2").as_dict()["learning_rate"] == 0.01
    assert Protocol(ratio_lams=1).as_dict()["ratio_lams"] == [1.0]


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


def test_a_missing_file_and_a_folder_are_one_line_errors(tmp_path):
    with pytest.raises(ValueError, match="protocol .*none.json: No such file or directory$"):
        load_protocol(tmp_path / "none.json")
    with pytest.raises(ValueError, match=f"protocol {tmp_path}: Is a directory$"):
        load_protocol(tmp_path)


def test_every_field_says_where_it_comes_from_and_why():
    page = (ROOT / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line[:3] == "| `"]
    assert [row[0] for row in rows] == [f"| `{name}`" for name in DEFAULTS]
    for row, item in zip(rows, fields(Protocol)):
        assert len(row) == 4, f"{item.name}: a bar in a cell breaks the table"
        assert json.loads(row[1].strip("`")) == json.loads(json.dumps(item.default))
        assert item.metadata["origin"] in (STATED, CONVENTION, FITTED)
        assert len(item.metadata["why"]) > 5


def test_what_is_called_stated_is_what_the_paper_states():
    stated = {item.name: item for item in fields(Protocol) if item.metadata["origin"] == STATED}
    for name, item in stated.items():
        if isinstance(item.default, int):
            assert f"{item.default:,}" in item.metadata["why"], name
