# Broadsheet in a container: pages, API, worker and, until RELAYS says otherwise, the embedded mailbox.
#   docker build -t broadsheet .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL -p 127.0.0.1:8000:8000 -v broadsheet:/data broadsheet
# All it ever writes is under /data: the database, and the keys it makes for itself.

FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-build.lock \
 && python -m venv /opt/broadsheet \
 && /opt/broadsheet/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY alembic alembic
COPY templates templates
COPY app app
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/broadsheet/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin broadsheet \
 && install --directory --owner broadsheet --mode 0750 /data
COPY --from=build /opt/broadsheet /opt/broadsheet
ENV PATH=/opt/broadsheet/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    BROADSHEET_DATABASE_URL=sqlite:////data/broadsheet.db
USER broadsheet
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["broadsheet"]
CMD ["run", "--host", "0.0.0.0", "--port", "8000"]
