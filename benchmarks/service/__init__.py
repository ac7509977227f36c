"""How fast the ranking service is, against a bare ASGI echo and the same logic in FastAPI on the same machine: `make bench-service`."""
