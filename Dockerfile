# Image of the program `savedsearch`; docs/deploy.md shows how to run it.
ARG RUST=1.95
ARG DEBIAN=trixie

FROM rust:${RUST}-slim-${DEBIAN} AS build
WORKDIR /build
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/build/target \
    cargo build --profile dist --locked --bin savedsearch \
    && install -D target/dist/savedsearch /out/savedsearch

FROM debian:${DEBIAN}-slim
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="savedsearch" \
    org.opencontainers.image.description="SQL shell and Arrow Flight SQL server over a saved-search API" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
# The fonts are for PNG charts: Arabic, Hebrew, Indic and other scripts; Chinese, Japanese and Korean; emoji.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates fonts-noto-core fonts-droid-fallback fonts-symbola \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 65532 --user-group --home-dir /var/lib/savedsearch --shell /usr/sbin/nologin savedsearch \
    && install --directory --owner=savedsearch --group=savedsearch --mode=0700 /var/lib/savedsearch
COPY LICENSE /usr/share/doc/savedsearch/LICENSE
COPY --from=build /out/savedsearch /usr/local/bin/savedsearch

# The API key comes from a mounted file (--api-key-file) or from the environment of the container.
ENV SAVEDSEARCH_LISTEN=0.0.0.0:50051 \
    SAVEDSEARCH_OPERATIONS=0.0.0.0:9090 \
    XDG_STATE_HOME=/var/lib
EXPOSE 50051 9090
VOLUME /var/lib/savedsearch
# A numeric user, so that an orchestrator can verify that it is not root.
USER 65532:65532
# bash opens the connection: the image contains no HTTP client.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9090 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '^HTTP/1.. 200' <&3"]
ENTRYPOINT ["savedsearch"]
CMD ["serve"]
