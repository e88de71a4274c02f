"""Wiring: the one place that knows which class keeps which store, makes the vectors or remembers answers."""

from __future__ import annotations

from alma.bootstrap.makers import create_cache as create_cache
from alma.bootstrap.makers import create_embedder as create_embedder
from alma.bootstrap.makers import local_model as local_model
from alma.bootstrap.models import create_language_model as create_language_model
from alma.bootstrap.parts import Parts as Parts
from alma.bootstrap.parts import embedding_of_file as embedding_of_file
from alma.bootstrap.parts import judge_of_file as judge_of_file
from alma.bootstrap.parts import parts_at as parts_at
from alma.bootstrap.parts import parts_chosen as parts_chosen
from alma.bootstrap.parts import parts_of_file as parts_of_file
from alma.bootstrap.parts import place_of_file as place_of_file
from alma.bootstrap.parts import redactor_of_file as redactor_of_file
from alma.bootstrap.parts import store_of_file as store_of_file
from alma.bootstrap.stores import IN_MEMORY as IN_MEMORY
from alma.bootstrap.stores import is_same_store as is_same_store
from alma.bootstrap.stores import open_as_it_is as open_as_it_is
from alma.bootstrap.stores import open_existing as open_existing
from alma.bootstrap.stores import open_storage as open_storage
from alma.bootstrap.stores import open_target as open_target
from alma.bootstrap.stores import open_vector_index as open_vector_index
from alma.bootstrap.stores import store_exists as store_exists
from alma.bootstrap.upkeep import migrate_storage as migrate_storage
from alma.bootstrap.upkeep import open_migrator as open_migrator
from alma.bootstrap.upkeep import partition_tables as partition_tables
from alma.bootstrap.upkeep import reembed_storage as reembed_storage
from alma.bootstrap.upkeep import require_sound_store as require_sound_store
from alma.bootstrap.upkeep import restore_storage as restore_storage
