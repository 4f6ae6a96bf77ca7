"""Who reads: subscribers, their choices, their consent, and whom we must not mail."""
