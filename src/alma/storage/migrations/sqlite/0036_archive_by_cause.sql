-- The archive is asked for what was put aside for one cause, newest first.
CREATE INDEX idx_archived_records_cause ON archived_records (project_id, cause, archived_at, kind);
