# benchsand with both delegates. Running it takes the host's root: --privileged, --cgroupns=host, /sys/fs/cgroup.
FROM debian:12-slim AS build
RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends \
      g++ cmake ninja-build pkg-config libyaml-cpp-dev nlohmann-json3-dev libseccomp-dev libssl-dev libarchive-dev \
      libacl1-dev libzstd-dev liblzma-dev zlib1g-dev libcli11-dev doctest-dev
COPY . /source
RUN cmake -G Ninja -S /source -B /build && cmake --build /build --target benchsand && \
    DESTDIR=/installed cmake --install /build --prefix /usr/local

FROM debian:12-slim
RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends crun runc && rm -rf /var/lib/apt/lists/*
COPY --from=build /installed/usr/local /usr/local
ENTRYPOINT ["benchsand"]
