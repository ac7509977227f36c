# The ranking service, without torch:
#   docker build --tag rankpolicy .
#   docker run --volume rankpolicy:/data rankpolicy service key new --db /data/service.db --scopes rank,events
#   docker run --volume rankpolicy:/data --publish 127.0.0.1:8080:8080 rankpolicy
# Another configuration: --volume ./service.toml:/etc/rankpolicy/service.toml:ro rankpolicy serve --config /etc/rankpolicy/service.toml --host 0.0.0.0
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN python -m venv /opt/rankpolicy \
    && /opt/rankpolicy/bin/python -m pip install --no-cache-dir --constraint constraints.txt '.[serve]'

FROM python:3.13-slim
COPY --from=build /opt/rankpolicy /opt/rankpolicy
# /data holds the database, its write-ahead log and what is compiled; only the user of the service reads it.
RUN useradd --system --no-create-home --uid 10001 rankpolicy \
    && install --directory --owner=rankpolicy --group=rankpolicy --mode=0700 /data
ENV PATH=/opt/rankpolicy/bin:$PATH OMP_NUM_THREADS=1 NUMBA_CACHE_DIR=/data/cache PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
# Not ready means that lists are not logged: the disk is full or does not answer.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
ENTRYPOINT ["rankpolicy"]
# Other hosts are served only once a key was made; without one the container ends with a line that says so.
CMD ["serve", "--db", "/data/service.db", "--host", "0.0.0.0", "--port", "8080"]
