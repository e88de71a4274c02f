"""What programs written for alma-memory 0.4 import and call, each a thin form of what ALMA does elsewhere.

`alma.compat.names` says which module answers to each earlier module name. Nothing here stores, searches or learns: it
translates the earlier names, arguments and results.
"""
