-- What Debezium reads: inserts into the outbox, and nothing else. Run it as the owner of the table, after
-- `headwater db upgrade`. The server needs wal_level = logical.
CREATE PUBLICATION headwater_outbox FOR TABLE event_outbox WITH (publish = 'insert');

-- An account for the connector alone, where Headwater's own shall not have REPLICATION:
--   CREATE ROLE debezium LOGIN REPLICATION PASSWORD '…';
--   GRANT SELECT ON event_outbox TO debezium;
-- The slot keeps the write-ahead log while the connector is away. A limit protects the disk; beyond it the slot is lost,
-- and the connector begins again with what is in the table:
--   ALTER SYSTEM SET max_slot_wal_keep_size = '20GB';
