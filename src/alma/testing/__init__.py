"""What an adapter is tested with: the contract suites, builders, and Hypothesis strategies; shipped for third parties.

Needs pytest and hypothesis, which the `dev` extra installs.
"""

import pytest

# So that a failing assertion of a suite explains itself, as those of a test file do.
pytest.register_assert_rewrite(
    "alma.testing.storage_contract",
    "alma.testing.vector_contract",
    "alma.testing.embedding_contract",
    "alma.testing.cache_contract",
    "alma.testing.graph_contract",
)
