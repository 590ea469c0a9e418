# One image for every program: broker, registry, services. docker-compose.yml says which is which.
# deploy/README.md has ports, volumes and commands, and how to build with no network.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
# 1: use only the wheels in build/wheelhouse, never a package index.
ARG PIP_NO_INDEX
ENV PIP_FIND_LINKS=/locked PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements/image.txt requirements/dev.txt build/wheelhous[e] /locked/
# pip and the build backend live in an environment of their own and stay behind in this stage.
RUN python3 -m venv /tools \
    && python3 -m venv --without-pip /millstream \
    && grep -v -e '--hash=' /locked/dev.txt | sed 's/ \\$//' > /locked/constraints.txt \
    && /tools/bin/pip install --constraint /locked/constraints.txt hatchling \
    && /tools/bin/pip --python /millstream/bin/python install --require-hashes -r /locked/image.txt
COPY . /source
RUN /tools/bin/pip wheel --no-deps --no-build-isolation -w /wheel /source \
    && /tools/bin/pip --python /millstream/bin/python install --no-deps --no-index /wheel/*.whl

FROM ${BASE}
RUN groupadd --gid 10001 millstream \
    && useradd --uid 10001 --gid millstream --no-create-home --shell /usr/sbin/nologin millstream \
    && install -d -o millstream -g millstream /data
COPY --from=build /millstream /millstream
COPY deploy/docker/is-ready deploy/docker/put-catalogue /usr/local/bin/
COPY deploy/docker/connect.properties /etc/millstream/
ENV PATH=/millstream/bin:$PATH \
    KAFKA_LISTENERS=PLAINTEXT://:9092 \
    KAFKA_LOG_DIRS=/data \
    KAFKA_HTTP_LISTENER=0.0.0.0:9644 \
    MILLSTREAM_HTTP_HOST=0.0.0.0 \
    MILLSTREAM_HTTP_PORT=8080
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8080 9092 9644
# `millstream` becomes the program by exec: process 1 is the program and gets SIGTERM itself.
ENTRYPOINT ["millstream"]
CMD ["broker", "start"]
