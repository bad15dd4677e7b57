-- What began with an entry of a history, as JSON: a provision state or a step. Entries of earlier versions have none.
ALTER TABLE node_history ADD COLUMN beginning TEXT;
