"""Settings, database, errors: what every floor stands on; knows nothing of mail."""
