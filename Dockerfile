# Two images from one file: `operator` decides and holds no framework, `runner` measures and holds both.
#
#   buildah build --target operator --tag accelbench-operator .        (or docker build, or podman build)
#   buildah build --target runner --tag accelbench-runner .
#   buildah build --target runner --build-arg EXTRAS=cuda --tag accelbench-runner .
#
# EXTRAS: which of accelbench's extras the runner has beside both frameworks. `targets-tpu` brings libtpu, with which JAX
# compiles for TPUs and runs on them; it exists for x86-64 alone. `scientific`, `keras` and `quantization` bring libraries
# that some workloads compare.
#
# Python 3.11: the oldest that is supported, the one that constraints.txt is resolved for and that every test runs on,
# so that what is measured in a pod is what is measured on a laptop, version for version.
ARG BASE=docker.io/library/python:3.11-slim-bookworm

FROM ${BASE} AS base
ENV LANG=C.UTF-8 PATH=/opt/accelbench/bin:${PATH}
# kopf and torch ask the passwd database who they are, so a bare number will not do.
RUN groupadd --gid 10001 accelbench \
    && useradd --uid 10001 --gid accelbench --create-home --shell /usr/sbin/nologin accelbench

# uv at its pinned hash, for the stages that build.
FROM ${BASE} AS uv
COPY constraints.txt /build/
RUN awk '/^[^ #]/ {uv = /^uv==/} uv' /build/constraints.txt > /build/uv.txt \
    && python3 -m venv /uv \
    && /uv/bin/pip install --quiet --no-cache-dir --require-hashes --requirement /build/uv.txt

# Each image's packages, pinned with hashes. The large layers below are rebuilt when these lists change, and not
# whenever pyproject.toml does. Starting from the constraints keeps their hashes, not those of the moment.
FROM uv AS requirements
COPY pyproject.toml /build/
WORKDIR /build
ARG EXTRAS="cuda targets-gpu targets-tpu"
RUN compile() { \
        file=$1; shift; cp constraints.txt "$file" \
        && /uv/bin/uv pip compile pyproject.toml "$@" --constraint constraints.txt --generate-hashes \
            --no-annotate --no-header --no-emit-index-url --quiet --output-file "$file"; \
    } \
    && compile operator.txt --extra operator \
    && compile runner.txt --extra jax --extra torch $(for extra in ${EXTRAS}; do echo "--extra ${extra}"; done)

FROM uv AS code
COPY pyproject.toml README.md LICENSE /build/
COPY accelbench /build/accelbench
COPY operator /build/operator
COPY runner /build/runner
COPY examples/claims /build/examples/claims
WORKDIR /build
RUN /uv/bin/uv build --quiet --wheel --build-constraint constraints.txt --require-hashes --out-dir dist \
    && /uv/bin/uv venv --quiet /opt/accelbench \
    && /uv/bin/uv pip install --quiet --python /opt/accelbench --prefix /code --no-deps --compile-bytecode dist/*.whl \
    && rm /code/.lock


# uv comes and goes within the layer that it fills: a stage to copy from would take as much disk again, and builders
# copy the frameworks' 6 GB more slowly than uv installs them.
FROM base AS operator
COPY --from=requirements /build/uv.txt /opt/accelbench/
COPY --from=requirements /build/operator.txt /opt/accelbench/requirements.txt
RUN python3 -m venv /uv \
    && /uv/bin/pip install --quiet --no-cache-dir --require-hashes --requirement /opt/accelbench/uv.txt \
    && /uv/bin/uv venv --quiet --allow-existing /opt/accelbench \
    && /uv/bin/uv pip install --quiet --no-cache --python /opt/accelbench --require-hashes --compile-bytecode \
        --requirement /opt/accelbench/requirements.txt \
    && rm -r /uv /opt/accelbench/.lock
USER 10001:10001
WORKDIR /home/accelbench
ENTRYPOINT ["python", "-m", "accelbench_operator"]
COPY --from=code /code /opt/accelbench
ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="accelbench operator" \
      org.opencontainers.image.description="Turns BenchmarkRuns into Jobs and Jobs into BenchmarkResults" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"


FROM base AS runner
# torch.compile and Triton write C and C++ and have it compiled on the spot.
RUN apt-get update --quiet=2 \
    && apt-get install --quiet=2 --yes --no-install-recommends g++ > /dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log
COPY --from=requirements /build/uv.txt /opt/accelbench/
COPY --from=requirements /build/runner.txt /opt/accelbench/requirements.txt
RUN python3 -m venv /uv \
    && /uv/bin/pip install --quiet --no-cache-dir --require-hashes --requirement /opt/accelbench/uv.txt \
    && /uv/bin/uv venv --quiet --allow-existing /opt/accelbench \
    && /uv/bin/uv pip install --quiet --no-cache --python /opt/accelbench --require-hashes --compile-bytecode \
        --requirement /opt/accelbench/requirements.txt \
    && rm -r /uv /opt/accelbench/.lock
# Where NVIDIA's container runtime and GKE's driver installer put the driver, and which parts of it are asked for.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64
USER 10001:10001
WORKDIR /home/accelbench
ENTRYPOINT ["python", "-m", "accelbench_runner"]
COPY --from=code /code /opt/accelbench
ARG VERSION=unknown
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="accelbench runner" \
      org.opencontainers.image.description="Measures one case of a BenchmarkRun: JAX and PyTorch on one device" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
