"""Time expressions in natural language, resolved to spans of time; usable without the rest of the package.

`find` lists the times that a statement may mean, `resolve` says which time a question asks about. Languages and rules
are data: `locales.toml` and `english.toml`.
"""

from alma.text.timeexpr.extract import TimeExpression, TimeWindow, find, resolve

__all__ = ["TimeExpression", "TimeWindow", "find", "resolve"]
