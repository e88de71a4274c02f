-- Where the text of a memory comes from; unknown for those stored before.
ALTER TABLE memories ADD COLUMN provenance TEXT COLLATE "C";
