# The service: ALMA with the drivers of PostgreSQL, Qdrant, Neo4j and Redis, and the models on board.
FROM python:3.12-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/alma
ENV PATH=/opt/alma/bin:$PATH
WORKDIR /src
COPY requirements/hybrid.txt requirements/hybrid.txt
RUN pip install --require-hashes -r requirements/hybrid.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-deps --no-build-isolation .

FROM python:3.12-slim-bookworm
RUN useradd --uid 10001 --create-home alma && install -d -o alma -g alma /var/lib/alma
COPY --from=build /opt/alma /opt/alma
ENV PATH=/opt/alma/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /var/lib/alma
VOLUME /var/lib/alma
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --retries=6 CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=4)"]
ENTRYPOINT ["alma"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080"]
