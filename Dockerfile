# Headway with the engine 'spark'. Build:  docker build -t headway .
# Run:  docker run --rm -v "$PWD:/data" headway run network.yaml --state state
# For 'local' and 'sim' alone, a tenth of the size:  docker build --build-arg EXTRAS= --build-arg PACKAGES= -t headway:local .
FROM python:3.12-slim-bookworm

# Java for Spark; ps, because Spark's scripts call it.
ARG PACKAGES="openjdk-17-jre-headless procps"
RUN if [ -n "$PACKAGES" ]; then \
      apt-get update && apt-get install -y --no-install-recommends $PACKAGES && rm -rf /var/lib/apt/lists/*; \
    fi

ARG EXTRAS=spark
WORKDIR /src
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY headway headway
RUN pip install --no-cache-dir --constraint requirements.lock ".[${EXTRAS}]"
# Spark starts in half the time from an archive of its classes.
RUN if [ "$EXTRAS" = spark ]; then headway prepare; fi

# Nothing here needs root, and nothing listens on a public interface.
RUN useradd --create-home --uid 1000 headway
USER headway
WORKDIR /data
# `docker stop` sends SIGTERM: the run ends its inputs, publishes what it has, and keeps its state.
STOPSIGNAL SIGTERM
ENTRYPOINT ["headway"]
CMD ["--help"]
