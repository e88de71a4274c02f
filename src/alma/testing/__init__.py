"""What an adapter is tested with: the contract suites, builders, and Hypothesis strategies; shipped for third parties.

Needs pytest and hypothesis, which the `dev` extra installs.
"""
