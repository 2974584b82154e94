"""Knowledge store for all learners: the schema of the SQLite file, the store itself, and features as data."""
