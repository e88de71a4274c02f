"""Test suites for adapters: contracts, builders of records and Hypothesis strategies; third parties can use them.

Needs pytest and hypothesis, which the `dev` extra installs.
"""

import pytest

# Failing assertions of a suite show their values, as those in test files do.
pytest.register_assert_rewrite(
    "alma.testing.storage_contract",
    "alma.testing.vector_contract",
    "alma.testing.embedding_contract",
    "alma.testing.cache_contract",
    "alma.testing.graph_contract",
)
