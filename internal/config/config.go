package config

import "time"

// Config is what a Tidemark process was told to do. The comments give the
// meaning of each field, its unit and its default; the tidemark config verb
// prints the values in force.
type Config struct {
	// Pipeline names the pipeline: 1 to 41 of a-z, 0-9 and '-', not beginning
	// with '-'. It is part of every workflow ID. No default.
	Pipeline string
	Postgres Postgres
	Lake     Lake
	Temporal Temporal
	Segment  Segment
	Ring     Ring
	Streamer Streamer
	Worker   Worker
	Data     Data
	Ops      Ops
	Tracing  Tracing
	Log      Log

	settings []setting
	origins  map[string]Origin
	// file is the configuration file's path, open whether others than its owner
	// can read it.
	file string
	open bool
}

// Postgres says which database is read, through which slot and publication.
type Postgres struct {
	// URL is a connection URL or a keyword/value string as libpq takes it.
	// What it leaves out comes from PGHOST, PGPASSWORD, PGPASSFILE and so on.
	URL string
	// PasswordFile holds the password and nothing else; it is read for each
	// connection. Default: none.
	PasswordFile string
	// PasswordCommand is a program with its arguments, run without a shell for
	// each connection, that writes the password to its standard output. Default:
	// none.
	PasswordCommand []string
	// Slot is the replication slot's name. Default tidemark_<pipeline>, with
	// '_' for '-'.
	Slot string
	// Publication is the publication's name. Default: the slot's.
	Publication string
	// Tables are the tables, as schema.table, that setup publishes. Empty, the
	// default, is all tables, those of the future too.
	Tables []string
	// ViaPartitionRoot makes setup's publication one that publishes the rows of
	// partitions as those of their root.
	ViaPartitionRoot bool
	// Failover makes setup create a failover slot, which a standby can carry
	// on (Postgres 17 and later). Default false.
	Failover bool
	// AllowMissingIdentity lets tables be published on which Postgres then
	// refuses UPDATE and DELETE. Default false.
	AllowMissingIdentity bool
	// Messages keeps logical messages as rows.
	Messages bool
	// Origin is "any", or "none" to leave out transactions that were replicated
	// into the server from elsewhere.
	Origin string
	// WALWarnLeft and WALAlarmLeft are how long, at the present rate, until the
	// slot can be lost; they hold with max_slot_wal_keep_size. 0 is never. Default
	// 24h and 4h.
	WALWarnLeft, WALAlarmLeft time.Duration
	// WALWarnRetained and WALAlarmRetained are what Postgres keeps for the slot;
	// they hold without max_slot_wal_keep_size. 0 is never. Default 16GiB and
	// 64GiB.
	WALWarnRetained, WALAlarmRetained Size
}

// Lake says where objects go.
type Lake struct {
	// URL is s3://bucket/prefix or file:///folder. No default.
	URL string
	// Endpoint is the URL of an S3 store other than AWS. Default: AWS.
	Endpoint string
	// Region of the bucket. Default: what the AWS configuration says.
	Region string
	// PathStyle puts the bucket into the path rather than the host name. nil,
	// the default, is true if Endpoint is set and false otherwise.
	PathStyle *bool
	// Checksum is when_required, when_supported, or empty, the default:
	// when_required if Endpoint is set, when_supported otherwise.
	Checksum string
	// SSE is AES256, aws:kms, or empty: the bucket's own default.
	SSE string
	// KMSKeyID is the key for aws:kms. Default: the account's.
	KMSKeyID string
	// StorageClass of the objects. Default: the bucket's.
	StorageClass string
	// Timeout bounds one request, beyond what its bytes need. Default 30s.
	Timeout time.Duration
	// ConditionalWrites uses If-None-Match and If-Match; false only for stores
	// that lack them. Default true.
	ConditionalWrites bool
}

// Temporal overrides what the SDK's own environment configuration
// (TEMPORAL_ADDRESS, TEMPORAL_PROFILE, TLS, API key) says. Empty fields
// override nothing.
type Temporal struct {
	Address   string
	Namespace string
	Profile   string
	// TaskQueue is where segments are dispatched to and workers listen.
	// Default tidemark-<pipeline>.
	TaskQueue string
	// UI is the address of Temporal's UI, for links.
	UI string
}

// Segment says when a segment is cut: at whichever comes first.
type Segment struct {
	// MaxRows is 1 or more. Default 10000.
	MaxRows int64
	// MaxBytes counts raw message bytes. Default 16MiB.
	MaxBytes Size
	// MaxAge counts from the segment's oldest change. Default 10s.
	MaxAge time.Duration
}

// Ring bounds the streamer's memory.
type Ring struct {
	// MaxBytes counts raw message bytes, at least Segment.MaxBytes. Default
	// 256MiB.
	MaxBytes Size
}

// Streamer holds what only a streamer needs.
type Streamer struct {
	// MaxInFlight bounds the segments that wait for their upload, 1 to 1000.
	// Default 64.
	MaxInFlight int64
	// ShutdownTimeout bounds the wait for running uploads after SIGTERM.
	// Default 60s.
	ShutdownTimeout time.Duration
}

// Worker holds what only a worker needs.
type Worker struct {
	// Toast is "unchanged", or "lookup" to ask the database for TOASTed values
	// that an update did not change.
	Toast string
	// Concurrency is how many segments are uploaded at once, 1 to 1000.
	// Default 4.
	Concurrency int64
	// DrainTimeout bounds the wait for running uploads after SIGTERM. Default
	// 60s.
	DrainTimeout time.Duration
}

// Data is the data plane: how workers fetch rows from the streamer.
type Data struct {
	// Listen is where the streamer serves rows. Default 127.0.0.1:0, a free
	// port of this machine: workers are told which.
	Listen string
	// Advertise is the host or host:port that workers are told. Default: the
	// address that Listen was bound to, or this host's name.
	Advertise string
	// TLSCert and TLSKey are PEM files of the streamer's certificate.
	TLSCert string
	TLSKey  string
	// TLSClientCA is a PEM file; when set, workers must show a certificate of
	// one of these authorities.
	TLSClientCA string
	// TLSCA is a PEM file with which a worker checks the streamer's
	// certificate. Default: the system's authorities.
	TLSCA string
	// TokenFile holds the token that a worker must show.
	TokenFile string
	// Insecure allows an address other than loopback without TLS and token.
	// Rows then cross the network for everyone to read. Default false.
	Insecure bool
}

// Ops is the process' own page: health, status and metrics.
type Ops struct {
	// Listen is a host:port, or "off". Default: 127.0.0.1:7171, and
	// 127.0.0.1:7172 for a worker that is a process of its own.
	Listen string
	// TokenFile holds the tokens, one a line, of which a caller must show one.
	// Default: none is asked for, which an address other than loopback is
	// refused with.
	TokenFile string
	// Insecure allows an address other than loopback without a token. Default
	// false.
	Insecure bool
	// Pprof serves the Go runtime's profiles below /debug/pprof/. Default false.
	Pprof bool
}

// Tracing says whether segments are traced. Where traces go the variables of
// OpenTelemetry say, which are no settings.
type Tracing struct {
	// Exporter is TracingOTLP, or "off", the default.
	Exporter string
}

// TracingOTLP is the Tracing.Exporter that sends traces by OTLP.
const TracingOTLP = "otlp"

// Log says what is logged and how.
type Log struct {
	// Level is debug, info, warn or error. Default info.
	Level string
	// Format is text, json, or auto, the default: text on a terminal.
	Format string
}
