package main

import (
	"context"
	"os"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/flight"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/internal/login"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// The functions below turn settings into each package's own Config.

// openLake opens the lake; nothing is sent to the store.
func openLake(ctx context.Context, c *config.Config) (*lake.Lake, error) {
	l, err := lake.Open(ctx, lake.Config{
		URL:          c.Lake.URL,
		Endpoint:     c.Lake.Endpoint,
		Region:       c.Lake.Region,
		PathStyle:    c.Lake.PathStyle,
		Checksum:     c.Lake.Checksum,
		SSE:          c.Lake.SSE,
		KMSKeyID:     c.Lake.KMSKeyID,
		StorageClass: c.Lake.StorageClass,
		Timeout:      c.Lake.Timeout,
		Conditional:  &c.Lake.ConditionalWrites,
	})
	if err != nil {
		return nil, refused(err)
	}
	return l, nil
}

func replicationConfig(c *config.Config) replication.Config {
	url := c.Postgres.URL
	if url == "" {
		// Leaves everything to PGHOST, PGSERVICE and so on.
		url = "postgres:///"
	}
	var password login.Password
	switch {
	case c.Postgres.PasswordFile != "":
		password = login.FromFile(c.Postgres.PasswordFile)
	case len(c.Postgres.PasswordCommand) > 0:
		password = login.FromCommand(c.Postgres.PasswordCommand, os.Environ())
	}
	return replication.Config{
		ConnString:   url,
		Password:     password,
		Pipeline:     c.Pipeline,
		Slot:         c.Postgres.Slot,
		Publications: []string{c.Postgres.Publication},
	}
}

// published is what setup has the publication be of.
func published(c *config.Config) replication.Published {
	return replication.Published{Tables: c.Postgres.Tables, ViaRoot: c.Postgres.ViaPartitionRoot}
}

func dataServerConfig(c *config.Config) flight.ServerConfig {
	return flight.ServerConfig{
		Listen:       c.Data.Listen,
		Advertise:    c.Data.Advertise,
		CertFile:     c.Data.TLSCert,
		KeyFile:      c.Data.TLSKey,
		ClientCAFile: c.Data.TLSClientCA,
		TokenFile:    c.Data.TokenFile,
		Insecure:     c.Data.Insecure,
	}
}

func dataClientConfig(c *config.Config) flight.ClientConfig {
	return flight.ClientConfig{
		CAFile:    c.Data.TLSCA,
		CertFile:  c.Data.TLSCert,
		KeyFile:   c.Data.TLSKey,
		TokenFile: c.Data.TokenFile,
		Insecure:  c.Data.Insecure,
	}
}
