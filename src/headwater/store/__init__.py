"""The only code with SQL. Functions take a connection and run in the caller's transaction (`db.read`, `db.write`)."""
