"""What is owed: mailings, the ledger of deliveries, and letters."""
