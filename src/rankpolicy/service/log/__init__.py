"""The log: everything that is stored, in a file of SQLite or in PostgreSQL, and what is read from it."""
