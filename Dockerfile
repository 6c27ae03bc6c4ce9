# The tidemark binary, and nothing else but the certificate authorities.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The version that tidemark version prints; empty for a development build.
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X main.version=${VERSION}" -o /out/tidemark ./cmd/tidemark

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/tidemark /tidemark
# Nobody in particular; the process writes no file.
USER 65532:65532
ENTRYPOINT ["/tidemark"]
CMD ["run"]
