// Package temporalserver runs a Temporal server with its UI in this process, as
// the Temporal CLI's development server does: all services, one history shard,
// SQLite in a file or in memory, loopback addresses only.
package temporalserver
