"""Wiring: the only package that knows the concrete classes of stores, embedders, caches, models and indexes."""

from __future__ import annotations

from alma.bootstrap.providers import create_cache as create_cache
from alma.bootstrap.providers import create_embedder as create_embedder
from alma.bootstrap.providers import create_language_model as create_language_model
from alma.bootstrap.providers import local_model as local_model
from alma.bootstrap.stores import IN_MEMORY as IN_MEMORY
from alma.bootstrap.stores import is_same_store as is_same_store
from alma.bootstrap.stores import migrate_storage as migrate_storage
from alma.bootstrap.stores import open_existing as open_existing
from alma.bootstrap.stores import open_for_own_model as open_for_own_model
from alma.bootstrap.stores import open_migrator as open_migrator
from alma.bootstrap.stores import open_storage as open_storage
from alma.bootstrap.stores import open_target as open_target
from alma.bootstrap.stores import open_vector_index as open_vector_index
from alma.bootstrap.stores import partition_tables as partition_tables
from alma.bootstrap.stores import reembed_storage as reembed_storage
from alma.bootstrap.stores import require_sound_store as require_sound_store
from alma.bootstrap.stores import restore_storage as restore_storage
from alma.bootstrap.stores import store_exists as store_exists
from alma.bootstrap.wiring import Parts as Parts
from alma.bootstrap.wiring import embedding_of_file as embedding_of_file
from alma.bootstrap.wiring import judge_of_file as judge_of_file
from alma.bootstrap.wiring import parts_at as parts_at
from alma.bootstrap.wiring import parts_chosen as parts_chosen
from alma.bootstrap.wiring import parts_of_file as parts_of_file
from alma.bootstrap.wiring import place_of_file as place_of_file
from alma.bootstrap.wiring import redactor_of_file as redactor_of_file
from alma.bootstrap.wiring import store_of_file as store_of_file
