"""The configuration that users know from the documentation."""

from __future__ import annotations

CONFIGURATION = """\
alma:
  project_id: "my-project"
  storage: {storage}
  embedding_provider: {provider}
  storage_dir: .alma
  db_name: alma.db
  embedding_dim: 384

  agents:
    helena:
      domain: coding
      can_learn:
        - testing_strategies
        - selector_patterns
      cannot_learn:
        - backend_logic
      min_occurrences_for_heuristic: 3

    victor:
      domain: coding
      can_learn:
        - api_patterns
        - database_queries
      cannot_learn:
        - frontend_selectors
"""
