"""What is said: editions, issues and their texts."""
