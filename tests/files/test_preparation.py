import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from pu_shift.files.preparation import TablePreparation

rng = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": np.where(rng.random(60) < 0.2, np.nan, rng.normal(50.0, 10.0, 60)),
        "town": rng.choice(["Kyoto", "Tokyo", "Nara"], 60),
        "n": rng.integers(0, 9, 60),
        "kind": rng.choice(["x", "y"], 60),
    }
)


def test_it_does_what_scikit_learn_does():
    theirs = make_column_transformer(
        (SimpleImputer(strategy="median"), ["age"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]),
        ("passthrough", ["n"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["kind"]),
    )
    new = TABLE.assign(town=["Osaka"] * 30 + ["Nara"] * 30)
    ours = TablePreparation().fit(TABLE)
    np.testing.assert_allclose(ours.transform(TABLE), theirs.fit_transform(TABLE))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new))
    assert ours.feature_names_in_.tolist() == list(TABLE)


def test_data_frames_arrays_and_lists_are_the_same_table():
    expected = TablePreparation().fit_transform(TABLE)
    cells = TABLE.to_numpy(dtype=object)
    for table in (cells, cells.tolist(), TABLE.astype({"town": "category", "n": "Int64"})):
        np.testing.assert_array_equal(TablePreparation().fit_transform(table), expected)
    assert not hasattr(TablePreparation().fit(TABLE).fit(cells), "feature_names_in_")


def test_a_gap_among_words_is_a_value_of_its_own_if_it_was_one_in_fit():
    fitted = TablePreparation().fit([["a"], [None], ["b"], [2.0]])
    assert fitted.categories_ == [["", "2", "a", "b"]]
    assert fitted.transform([[np.nan], ["2"], ["c"]]).tolist() == [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
    assert TablePreparation().fit([["a"], ["b"]]).transform([[None]]).tolist() == [[0.0, 0.0]]


def test_numbers_alone_stay_as_they_are():
    X = rng.normal(size=(7, 3)).astype(np.float32)
    np.testing.assert_array_equal(TablePreparation().fit_transform(X), X.astype(np.float64))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([["a"], ["b"], ["c"], ["d"]], "X: column 1 has 4 different categories, more than 3"),
        ([[1.0, None], [2.0, np.nan]], "X: column 2 has no values, leave it out"),
        ([], "X must have rows and columns, got shape (0,)"),
        ([1.0, 2.0], "X must have rows and columns, got shape (2,)"),
    ],
)
def test_what_cannot_be_prepared_is_named(table, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TablePreparation(max_categories=3).fit(table)


def test_tables_that_do_not_fit_are_refused():
    fitted = TablePreparation().fit(TABLE)
    with pytest.raises(ValueError, match="X has 3 features, but TablePreparation is expecting 4"):
        fitted.transform(TABLE[["age", "town", "n"]])
    new = TABLE.astype({"n": object})
    new.loc[2, "n"] = "many"
    with pytest.raises(ValueError, match="column 'n' held numbers in fit, found 'many' in row 3"):
        fitted.transform(new)
    with pytest.raises(NotFittedError):
        clone(fitted).transform(TABLE)
    with pytest.raises(ValueError, match="max_categories must be an integer >= 1, got 0"):
        TablePreparation(max_categories=0).fit(TABLE)
