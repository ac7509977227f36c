import numpy as np
import pytest
import torch

from rankpolicy.off_policy import targets as off_policy_target
from rankpolicy.off_policy.estimates import estimate_policy_value
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.members import OFF_POLICY_ESTIMATORS
from rankpolicy.off_policy.targets import target_of
from rankpolicy.policies import PlackettLuce


class TestKernels:
    def log(self, seed=0, num_items=7, num_positions=4):
        """Contexts of 3 to 7 items, so that some lists end early."""
        generator = np.random.default_rng(seed)
        sizes = np.array([3, 5, 7])
        contexts = generator.integers(0, 3, 60)
        items = np.full((60, num_positions), -1)
        for row, context in enumerate(contexts):
            shown = generator.permutation(sizes[context])[:num_positions]
            items[row, : len(shown)] = shown
        rewards = np.where(items >= 0, generator.random(items.shape), 0)
        propensities = generator.uniform(0.1, 1, items.shape)
        mask = torch.from_numpy(np.arange(num_items) < sizes[:, None])
        return OffPolicyLog(
            items=items,
            rewards=rewards,
            contexts=contexts,
            propensities=propensities,
            marginal_propensities=propensities,
        ), mask

    @pytest.mark.parametrize("scale", [1.0, 300.0, 1e4])
    def test_equal_their_references(self, scale):
        log, mask = self.log()
        scores = scale * torch.randn(3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        policy = PlackettLuce(scores, mask)
        target = target_of(policy, log)
        steps = off_policy_target.plackett_luce_steps(target.policy, log)
        wanted = off_policy_target.running_products(steps, log.propensities, log)
        np.testing.assert_allclose(target.prefix_products(log, log.propensities), wanted, rtol=1e-9, atol=1e-300)
        values = np.random.default_rng(1).random((3, 7))
        for position in range(4):
            wanted = off_policy_target.plackett_luce_expected_next(target.policy, log, values, position=position)
            got = target.expected_next(log, values, position=position)
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-300)

    @pytest.mark.parametrize("name", OFF_POLICY_ESTIMATORS)
    def test_without_numba(self, name, monkeypatch):
        log, mask = self.log()
        policy = PlackettLuce(torch.randn(3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), mask)
        wanted = estimate_policy_value(log, policy, estimator=name)
        monkeypatch.setattr("rankpolicy.off_policy.targets.HAS_NUMBA", False)
        assert estimate_policy_value(log, policy, estimator=name).value == pytest.approx(wanted.value, abs=1e-12)

    def test_where_nothing_was_shown_nothing_counts(self):
        log, mask = self.log()
        equal = target_of(PlackettLuce(torch.zeros(3, 7), mask), log)
        lengths = (log.items >= 0).sum(1)
        left = mask.sum(1).numpy()[log.contexts, None] - np.arange(4)
        products = equal.prefix_products(log, np.where(log.items >= 0, 1 / (2 * left.clip(min=1)), 1.0))
        np.testing.assert_allclose(products[:, -1], 2.0**lengths)

    def test_threads_change_nothing(self, monkeypatch):
        log, mask = self.log()
        policy = PlackettLuce(torch.randn(3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), mask)
        alone = estimate_policy_value(log, policy, estimator="cascade-dr")
        monkeypatch.setattr("rankpolicy.kernels.compile._ENOUGH_NANOSECONDS", 0)
        assert estimate_policy_value(log, policy, estimator="cascade-dr") == alone
