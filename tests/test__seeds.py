"""Child seeds depend on their key alone."""

import numpy as np
import pytest

from pu_shift._seeds import child, renamed_seed


def state(seed):
    return tuple(seed.generate_state(4))


def test_same_key_same_seed_whatever_was_asked_before():
    root = np.random.SeedSequence(5)
    first = state(child(root, 1, 2))
    root.spawn(3)
    child(root, 7)
    assert (
        state(child(root, 1, 2)) == first == state(child(5, 1, 2)) == state(child(child(5, 1), 2))
    )


def test_different_keys_differ():
    seeds = [child(0), child(0, 0), child(0, 1), child(0, 0, 0), child(1, 0), child(1)]
    assert len({state(seed) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_bad_seed(seed):
    with pytest.raises(ValueError, match="random_state must be an integer >= 0 or a SeedSequence"):
        child(seed)


def test_a_seed_by_its_old_name_is_the_random_state_and_warns():
    @renamed_seed
    def draw(n, random_state=0):
        return n, random_state

    with pytest.warns(DeprecationWarning, match="random_state"):
        assert draw(2, seed=7) == (2, 7)
    assert draw(2, random_state=7) == (2, 7)
