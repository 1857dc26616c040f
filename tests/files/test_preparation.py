import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from pu_shift.files.preparation import ColumnsError, TablePreparation

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
    assert fitted.columns_[0].categories == ["", "2", "a", "b"]
    assert fitted.transform([[np.nan], ["2"], ["c"]]).tolist() == [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
    assert TablePreparation().fit([["a"], ["b"]]).transform([[None]]).tolist() == [[0.0, 0.0]]


def test_numbers_alone_stay_as_they_are():
    X = rng.normal(size=(7, 3)).astype(np.float32)
    np.testing.assert_array_equal(TablePreparation().fit_transform(X), X.astype(np.float64))


DATES = {
    "YYYY-MM-DD": "%Y-%m-%d",
    "YYYY/MM/DD": "%Y/%m/%d",
    "DD.MM.YYYY": "%d.%m.%Y",
    "DD/MM/YYYY": "%d/%m/%Y",
    "MM/DD/YYYY": "%m/%d/%Y",
}


@pytest.mark.parametrize("time", ["", " %H:%M", " %H:%M:%S"])
@pytest.mark.parametrize("name", DATES)
def test_dates_are_days(name, time):
    moments = pd.date_range("1969-12-20 06:30", periods=40, freq="31h")
    texts = moments.strftime(DATES[name] + time).tolist()
    days = (moments if time else moments.normalize()) - pd.Timestamp("1970-01-01")
    fitted = TablePreparation()
    found = fitted.fit_transform(pd.DataFrame({"day": texts}))
    np.testing.assert_allclose(found[:, 0], days / pd.Timedelta(days=1))
    typed = pd.DataFrame({"day": pd.to_datetime(texts, format=DATES[name] + time)})
    np.testing.assert_allclose(fitted.transform(typed), found)
    np.testing.assert_allclose(TablePreparation().fit_transform(typed), found)
    with pytest.raises(ValueError, match=f"needs a date written {name} in row 1 of column 'day'"):
        fitted.transform(pd.DataFrame({"day": ["yesterday"]}))


def test_a_date_that_may_be_two_is_refused():
    with pytest.raises(ValueError, match="'03/04/2024', whose first number may be the day or"):
        TablePreparation().fit([["03/04/2024"], ["05/06/2024"]])


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["4,3", "5", "-0,25"], [4.3, 5.0, -0.25]),
        (["1.234,5", ",5", "2.000"], [1234.5, 0.5, 2000.0]),
    ],
)
def test_decimal_commas(texts, numbers):
    table = [[text] for text in texts]
    fitted = TablePreparation().fit(table)
    assert fitted.transform(table)[:, 0].tolist() == numbers
    assert fitted.described() == ["1: number, decimal commas"]
    assert TablePreparation(decimal=",").fit_transform(table)[:, 0].tolist() == numbers
    with pytest.raises(ValueError, match="leave it out"):
        TablePreparation(decimal=".").fit(table)
    with pytest.raises(
        ValueError, match="number with decimal commas in row 1 of column 1, found '1.5'"
    ):
        fitted.transform([["1.5"]])


def test_columns_are_described_and_what_is_new_is_counted():
    fitted = TablePreparation().fit(TABLE.assign(day="2024-05-01", n=1))
    share = f"{100 * TABLE['age'].isna().mean():.2g}"
    assert fitted.described() == [
        f"age: number, {share} % missing, filled with {TABLE['age'].median():.4g}",
        "town: category, 3 values",
        "kind: category, 2 values",
        "day: date, days since 1970-01-01, 2024-05-01 to 2024-05-01",
    ]
    new = TABLE.assign(day=["2024-05-01"] * 20 + ["2025-01-01"] * 40, n=1.0)
    new["town"] = ["Osaka"] * 7 + ["Nara"] * 50 + [None] * 3
    new.loc[:3, "n"] = np.nan
    _, unseen = fitted.convert(new)
    assert unseen.tolist() == [[0, 0], [7, 3], [0, 4], [0, 0], [40, 0]]
    assert not fitted.convert(TABLE.assign(day="2024-05-01", n=1))[1].any()


def test_all_columns_that_are_no_features_are_named():
    table = {"id": [f"case {k}" for k in range(60)], "none": None, "ok": 1.0}
    table["n"] = ["x", *map(str, range(59))]
    with pytest.raises(ColumnsError) as caught:
        TablePreparation().fit(pd.DataFrame(table))
    told = [str(problem) for problem in caught.value.problems]
    assert [message.split("'")[1] for message in told] == ["id", "none", "n"]
    assert all("leave it out" in message for message in told)


@pytest.mark.parametrize(
    "state", [None, {"medians": [2.0, None], "categories": [None, ["a", "b"]]}]
)
def test_a_state_is_the_preparation(state):
    """Also one of a release before, which had other fields."""
    table = [[1.0, "b"], [np.nan, "a"], [2.0, "c"], [3.0, None]]
    fitted = TablePreparation().fit([[1.0, "a"], [None, "b"], [3.0, "a"]])
    other = TablePreparation.from_state(state or fitted.to_state())
    np.testing.assert_array_equal(other.transform(table), fitted.transform(table))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([["a"], ["b"], ["c"], ["d"]], "X: column 1 has 4 different categories, more than 3"),
        ([[1.0, None], [2.0, np.nan]], "X: column 2 has no values: leave it out"),
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
    with pytest.raises(
        ValueError, match="needs a finite number in row 3 of column 'n', found 'many'"
    ):
        fitted.transform(new)
    with pytest.raises(NotFittedError):
        clone(fitted).transform(TABLE)
    with pytest.raises(ValueError, match="max_categories must be an integer >= 1, got 0"):
        TablePreparation(max_categories=0).fit(TABLE)
