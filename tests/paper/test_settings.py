import pytest

from pu_shift.paper.settings import TABLES, TableSetting


def test_tables_have_the_papers_priors():
    pairs = {
        number: {(block.prior, block.test_prior) for block in setting.blocks}
        for number, setting in TABLES.items()
    }
    assert pairs == {
        1: {(0.3, 0.5)},
        2: {(0.7, 0.3)},
        3: {(0.3, 0.3), (0.4, 0.4), (0.5, 0.5), (0.7, 0.7)},
        4: {(0.5, 0.3)},
        5: {(0.3, 0.7)},
        6: {(0.4, 0.8)},
        7: {(0.8, 0.4)},
    }


@pytest.mark.parametrize("number", [1, 2, 4, 5, 6, 7])
def test_given_priors_go_from_the_right_one_to_the_training_prior(number):
    blocks = TABLES[number].blocks
    given = [block.given_prior for block in blocks]
    assert given[0] == blocks[0].test_prior
    assert given[-1] == blocks[0].prior
    assert min(given) < given[1] < max(given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0.3, 0.5, []), "blocks must be distinct"),
        ((1, 0.3, 0.5, [0.5, 0.5]), "blocks must be distinct"),
        ((1, 0.3, 1.5, [0.5]), "test_prior must lie strictly between 0 and 1"),
        ((-1, 0.3, 0.5, [0.5]), "number must be an integer >= 0"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TableSetting.shift(*arguments)
