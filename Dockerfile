# benchsand with both delegates, from its Debian package. BASE is a Debian 12 or an Ubuntu 24.04.
# Running tasks in it takes the host's root: docker run --privileged --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup
ARG BASE=debian:12-slim

FROM ${BASE} AS build
COPY tests/setup/packages.sh /
RUN /packages.sh build
ARG BUILD_TYPE=Release
COPY . /source
RUN cmake -G Ninja -S /source -B /build -DCMAKE_BUILD_TYPE=${BUILD_TYPE} && cmake --build /build --target deb

FROM ${BASE}
COPY tests/setup/packages.sh /
COPY --from=build /build/benchsand_*.deb /
# apt and not dpkg: benchsand-engines wants libcurl and others.
RUN /packages.sh run && apt-get install -y --no-install-recommends /benchsand_*.deb && rm -rf /packages.sh /benchsand_*.deb /var/lib/apt/lists/*
ENTRYPOINT ["benchsand"]
