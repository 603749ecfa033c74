"""Which posts say again what another said, and which tell of one event: pure decisions over an index in memory."""
