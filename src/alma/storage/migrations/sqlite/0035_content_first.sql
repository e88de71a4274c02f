-- The first column of a full-text table costs two bytes less for every word, and content has the most words.
-- then: index_words
DROP TABLE memories_fts;

CREATE VIRTUAL TABLE memories_fts USING fts5(content, title, summary, scope, content='', tokenize='ascii');

INSERT INTO memories_fts (memories_fts, rank) VALUES ('hashsize', 4000000);
