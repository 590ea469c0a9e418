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
    && python3 -m venv --without-pip /millrace \
    && grep -v -e '--hash=' /locked/dev.txt | sed 's/ \\$//' > /locked/constraints.txt \
    && /tools/bin/pip install --constraint /locked/constraints.txt hatchling \
    && /tools/bin/pip --python /millrace/bin/python install --require-hashes -r /locked/image.txt
COPY . /source
RUN /tools/bin/pip wheel --no-deps --no-build-isolation -w /wheel /source \
    && /tools/bin/pip --python /millrace/bin/python install --no-deps --no-index /wheel/*.whl

FROM ${BASE}
RUN groupadd --gid 10001 millrace \
    && useradd --uid 10001 --gid millrace --no-create-home --shell /usr/sbin/nologin millrace \
    && install -d -o millrace -g millrace /data
COPY --from=build /millrace /millrace
COPY deploy/docker/is-ready deploy/docker/put-catalogue /usr/local/bin/
COPY deploy/docker/connect.properties /etc/millrace/
ENV PATH=/millrace/bin:$PATH \
    KAFKA_LISTENERS=PLAINTEXT://:9092 \
    KAFKA_LOG_DIRS=/data \
    KAFKA_HTTP_LISTENER=0.0.0.0:9644 \
    MILLRACE_HTTP_HOST=0.0.0.0 \
    MILLRACE_HTTP_PORT=8080
# By number, so that Kubernetes can see that it is not root.
USER 10001:10001
EXPOSE 8080 9092 9644
# `millrace` becomes the program by exec: process 1 is the program and gets SIGTERM itself.
ENTRYPOINT ["millrace"]
CMD ["broker", "start"]
