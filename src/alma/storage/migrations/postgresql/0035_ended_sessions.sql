-- A session that SQL has ended is not active any more.
-- then: keep_sql_writes
UPDATE alma_sessions SET is_active = false WHERE ended_at IS NOT NULL AND is_active;
