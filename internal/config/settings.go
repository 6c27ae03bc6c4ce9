package config

import (
	"strings"
)

// setting binds a key to a field of a Config.
type setting struct {
	key   string
	value value
	// def is the default as text; empty leaves the field's zero value.
	def string
	// usage is one line of help. Words in back quotes name the value.
	usage string
	// url says that the text can carry a password, which is masked wherever
	// it is shown and refused as a flag.
	url bool
	// choices, if any, are all the texts that are valid; an empty text is valid
	// besides, if it is the default.
	choices []string
}

// envName is the setting's name in the environment.
func (s setting) envName() string {
	return "TIDEMARK_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// flagName is the setting's name as a flag.
func (s setting) flagName() string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(s.key)
}

// settingsOf lists every setting there is, bound to c.
func settingsOf(c *Config) []setting {
	return []setting{
		{key: "pipeline", value: stringValue{&c.Pipeline}, usage: "`name` of the pipeline: one slot, one publication, one lake prefix"},

		{key: "postgres.url", value: stringValue{&c.Postgres.URL}, url: true, usage: "connection `URL` of the database; what it leaves out comes from PGHOST, PGPASSWORD, PGPASSFILE ..."},
		{key: "postgres.password_file", value: stringValue{&c.Postgres.PasswordFile}, usage: "`file` with the password and nothing else, read for each connection"},
		{key: "postgres.password_command", value: listValue{&c.Postgres.PasswordCommand}, usage: "`program` and arguments, run without a shell for each connection, that writes the password to its standard output"},
		{key: "postgres.slot", value: stringValue{&c.Postgres.Slot}, usage: "replication slot's `name` (default tidemark_<pipeline>)"},
		{key: "postgres.publication", value: stringValue{&c.Postgres.Publication}, usage: "publication's `name` (default: the slot's)"},
		{key: "postgres.tables", value: listValue{&c.Postgres.Tables}, usage: "`tables` that setup publishes, as schema.table between commas (default: all)"},
		{key: "postgres.via_partition_root", value: boolValue{&c.Postgres.ViaPartitionRoot}, usage: "setup publishes the rows of partitions as those of their root"},
		{key: "postgres.failover", value: boolValue{&c.Postgres.Failover}, usage: "setup makes a failover slot (Postgres 17 and later)"},
		{key: "postgres.allow_missing_identity", value: boolValue{&c.Postgres.AllowMissingIdentity}, usage: "allow published tables without a usable replica identity, on which Postgres refuses UPDATE and DELETE"},
		{key: "postgres.messages", value: boolValue{&c.Postgres.Messages}, usage: "keep logical messages (pg_logical_emit_message) as rows"},
		{key: "postgres.origin", value: stringValue{&c.Postgres.Origin}, def: "any", choices: []string{"any", "none"}, usage: "`origin`: any, or none to leave out what was replicated into the server from elsewhere"},
		{key: "postgres.wal_warn_left", value: durationValue{&c.Postgres.WALWarnLeft}, def: "24h", usage: "warn when at the present rate the slot can be lost within this `duration` (with max_slot_wal_keep_size; 0s: never)"},
		{key: "postgres.wal_alarm_left", value: durationValue{&c.Postgres.WALAlarmLeft}, def: "4h", usage: "the `duration` for an alarm"},
		{key: "postgres.wal_warn_retained", value: sizeValue{&c.Postgres.WALWarnRetained}, def: "16GiB", usage: "warn when Postgres keeps WAL of this `size` for the slot (without max_slot_wal_keep_size; 0B: never)"},
		{key: "postgres.wal_alarm_retained", value: sizeValue{&c.Postgres.WALAlarmRetained}, def: "64GiB", usage: "the `size` for an alarm"},

		{key: "lake.url", value: stringValue{&c.Lake.URL}, url: true, usage: "`URL` of the lake: s3://bucket/prefix or file:///folder"},
		{key: "lake.endpoint", value: stringValue{&c.Lake.Endpoint}, url: true, usage: "`URL` of an S3 store other than AWS"},
		{key: "lake.region", value: stringValue{&c.Lake.Region}, usage: "`region` of the bucket"},
		{key: "lake.path_style", value: optBoolValue{&c.Lake.PathStyle}, usage: "bucket in the path, not in the host name (default: true with an endpoint)"},
		{key: "lake.checksum", value: stringValue{&c.Lake.Checksum}, choices: []string{"when_required", "when_supported"}, usage: "checksum `mode`: when_required (default with an endpoint) or when_supported"},
		{key: "lake.sse", value: stringValue{&c.Lake.SSE}, choices: []string{"AES256", "aws:kms"}, usage: "server-side encryption `mode`: AES256 or aws:kms"},
		{key: "lake.kms_key_id", value: stringValue{&c.Lake.KMSKeyID}, usage: "`key` for aws:kms"},
		{key: "lake.storage_class", value: stringValue{&c.Lake.StorageClass}, usage: "storage `class` of the objects"},
		{key: "lake.timeout", value: durationValue{&c.Lake.Timeout}, def: "30s", usage: "`duration` that one request may take, beyond what its bytes need"},
		{key: "lake.conditional_writes", value: boolValue{&c.Lake.ConditionalWrites}, def: "true", usage: "use If-None-Match and If-Match; false only for stores that lack them"},

		{key: "temporal.address", value: stringValue{&c.Temporal.Address}, usage: "`host:port` of Temporal (default: TEMPORAL_ADDRESS or the profile's)"},
		{key: "temporal.namespace", value: stringValue{&c.Temporal.Namespace}, usage: "Temporal `namespace` (default: TEMPORAL_NAMESPACE or the profile's)"},
		{key: "temporal.profile", value: stringValue{&c.Temporal.Profile}, usage: "`profile` of the Temporal configuration file (default: TEMPORAL_PROFILE)"},
		{key: "temporal.task_queue", value: stringValue{&c.Temporal.TaskQueue}, usage: "task queue's `name` (default tidemark-<pipeline>)"},
		{key: "temporal.ui", value: stringValue{&c.Temporal.UI}, url: true, usage: "`URL` of Temporal's UI, for links that tidemark segments and the status page show"},

		{key: "segment.max_rows", value: intValue{&c.Segment.MaxRows}, def: "10000", usage: "a segment is cut at this `number` of rows"},
		{key: "segment.max_bytes", value: sizeValue{&c.Segment.MaxBytes}, def: "16MiB", usage: "a segment is cut at this `size`"},
		{key: "segment.max_age", value: durationValue{&c.Segment.MaxAge}, def: "10s", usage: "a segment is cut this `duration` after its oldest change"},

		{key: "ring.max_bytes", value: sizeValue{&c.Ring.MaxBytes}, def: "256MiB", usage: "the ring's `size`, which bounds the streamer's memory"},

		{key: "streamer.max_in_flight", value: intValue{&c.Streamer.MaxInFlight}, def: "64", usage: "`number` of segments that may wait for their upload"},
		{key: "streamer.shutdown_timeout", value: durationValue{&c.Streamer.ShutdownTimeout}, def: "60s", usage: "`duration` to wait for running uploads after SIGTERM; those cut off are handed back to Temporal"},

		{key: "worker.concurrency", value: intValue{&c.Worker.Concurrency}, def: "8", usage: "`number` of segments uploaded at once"},
		{key: "worker.toast", value: stringValue{&c.Worker.Toast}, def: "unchanged", choices: []string{"unchanged", "lookup"}, usage: "`mode` for TOASTed values that an update did not change and no image holds: unchanged (they are named as that) or lookup (the worker asks postgres.url)"},
		{key: "worker.drain_timeout", value: durationValue{&c.Worker.DrainTimeout}, def: "60s", usage: "`duration` to wait for running uploads after SIGTERM; those cut off are handed back to Temporal"},

		{key: "data.listen", value: stringValue{&c.Data.Listen}, def: "127.0.0.1:0", usage: "`host:port` where the streamer serves rows to workers; port 0 is a free one"},
		{key: "data.advertise", value: stringValue{&c.Data.Advertise}, usage: "`host` or host:port that workers are told (default: what data.listen was bound to)"},
		{key: "data.tls_cert", value: stringValue{&c.Data.TLSCert}, usage: "PEM `file` of the streamer's certificate"},
		{key: "data.tls_key", value: stringValue{&c.Data.TLSKey}, usage: "PEM `file` of its key"},
		{key: "data.tls_client_ca", value: stringValue{&c.Data.TLSClientCA}, usage: "PEM `file` of authorities; workers must show a certificate of one"},
		{key: "data.tls_ca", value: stringValue{&c.Data.TLSCA}, usage: "PEM `file` of authorities that a worker trusts (default: the system's)"},
		{key: "data.token_file", value: stringValue{&c.Data.TokenFile}, usage: "`file` with the token that workers must show"},
		{key: "data.insecure", value: boolValue{&c.Data.Insecure}, usage: "allow rows to cross the network without TLS and token"},

		{key: "ops.listen", value: stringValue{&c.Ops.Listen}, usage: "`host:port` of health, status and metrics, or off (default 127.0.0.1:7171, a worker's 127.0.0.1:7172)"},
		{key: "ops.token_file", value: stringValue{&c.Ops.TokenFile}, usage: "`file` with the token that callers of that page must show, as a bearer token or as a password of any user"},
		{key: "ops.insecure", value: boolValue{&c.Ops.Insecure}, usage: "allow that page on an address other than loopback without a token"},
		{key: "ops.pprof", value: boolValue{&c.Ops.Pprof}, usage: "serve the Go runtime's profiles below /debug/pprof/ of that page"},

		{key: "tracing.exporter", value: stringValue{&c.Tracing.Exporter}, def: "off", choices: []string{"off", TracingOTLP}, usage: "`exporter` of OpenTelemetry traces: otlp, to where the variables OTEL_EXPORTER_OTLP_... say, or off"},

		{key: "log.level", value: stringValue{&c.Log.Level}, def: "info", choices: []string{"debug", "info", "warn", "error"}, usage: "`level`: debug, info, warn or error"},
		{key: "log.format", value: stringValue{&c.Log.Format}, def: "auto", choices: []string{"auto", "text", "json"}, usage: "`format`: text, json, or auto: text on a terminal"},
	}
}
