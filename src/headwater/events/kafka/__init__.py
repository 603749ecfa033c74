"""Kafka as the log: `follow` runs the consumers; `connector` sets up topics and Debezium, and checks them."""
