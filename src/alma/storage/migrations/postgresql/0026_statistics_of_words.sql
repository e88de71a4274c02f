-- How common a word is, is told from the server's statistics: of five thousand words instead of one thousand, so that hardly any
-- has to be counted while somebody waits. They are gathered the next time that a table is analysed.
ALTER TABLE alma_heuristics ALTER COLUMN search SET STATISTICS 500;

ALTER TABLE alma_outcomes ALTER COLUMN search SET STATISTICS 500;

ALTER TABLE alma_preferences ALTER COLUMN search SET STATISTICS 500;

ALTER TABLE alma_domain_knowledge ALTER COLUMN search SET STATISTICS 500;

ALTER TABLE alma_anti_patterns ALTER COLUMN search SET STATISTICS 500;

ALTER TABLE memories ALTER COLUMN search SET STATISTICS 500;

ALTER TABLE project_patterns ALTER COLUMN search SET STATISTICS 500;
