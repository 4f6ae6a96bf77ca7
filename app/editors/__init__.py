"""Who may: API keys and their scopes."""
