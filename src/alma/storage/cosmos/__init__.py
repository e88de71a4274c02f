"""The parts of the Azure Cosmos DB store: connection, documents, queries, commit log and backend."""
