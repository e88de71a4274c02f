"""The storage contract as tests: subclass the suite and add a `storage` fixture.

class TestMyStore(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path):
        with MyStore(tmp_path, embedding_dim=DIMS) as store:
            yield store
"""

from __future__ import annotations

from alma.testing.builders import DIMS
from alma.testing.storage_contract.changing import ChangingContract, ConstraintContract
from alma.testing.storage_contract.finding import ChainContract, FindingContract, RelatingContract
from alma.testing.storage_contract.keeping import HistoryContract, OutboxContract, TellingContract, TransactionContract
from alma.testing.storage_contract.moving import LeavingContract, MovingContract
from alma.testing.storage_contract.saving import NamedMethodsContract, SavingContract, ScopeContract
from alma.testing.storage_contract.sharing import FeedCapabilityContract, FeedContract, SharedContract
from alma.testing.storage_contract.values import (
    GenerationContract,
    ValuesContract,
    WordCountContract,
    WordScoreContract,
)
from alma.testing.storage_contract.vectors import PassageContract, VectorSearchContract, WordSearchContract

__all__ = ["DIMS", "FeedContract", "SharedContract", "StorageContract"]


class StorageContract(
    SavingContract,
    ScopeContract,
    FindingContract,
    WordSearchContract,
    VectorSearchContract,
    ValuesContract,
    WordCountContract,
    WordScoreContract,
    GenerationContract,
    PassageContract,
    FeedCapabilityContract,
    ChangingContract,
    ConstraintContract,
    TransactionContract,
    HistoryContract,
    OutboxContract,
    TellingContract,
    LeavingContract,
    MovingContract,
    RelatingContract,
    ChainContract,
    NamedMethodsContract,
):
    """The contract of every store."""
