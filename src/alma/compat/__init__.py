"""Names that programs written for alma-memory 0.4 import and call, each a thin form of another part of ALMA.

`alma.compat.names` says which module answers to each earlier module name. Nothing here stores, searches or learns: it
translates the earlier names, arguments and results.
"""
