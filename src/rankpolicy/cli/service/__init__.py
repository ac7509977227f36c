"""rankpolicy service: the verbs about the database of a service."""
