package temporalserver

import (
	"fmt"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active"
	storeName   = sqlite.PluginName
	disabled    = "disabled"
)

func (c Config) address(port int) string { return fmt.Sprintf("%s:%d", loopback, port) }

// sql is the store's configuration. A file gets the write-ahead journal with
// one connection: the default journal is three times slower, and a second
// connection only meets locks.
func (c Config) sql() *config.SQL {
	if c.Database == "" {
		return &config.SQL{
			PluginName:        storeName,
			DatabaseName:      "devstack",
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}
	}
	return &config.SQL{
		PluginName:   storeName,
		DatabaseName: c.Database,
		MaxConns:     1,
		MaxIdleConns: 1,
		ConnectAttributes: map[string]string{
			"mode":         "rwc",
			"journal_mode": "wal",
			"synchronous":  "normal",
			"busy_timeout": "10000",
		},
	}
}

func (c Config) server() *config.Config {
	service := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: loopback}}
	}
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback},
		},
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  storeName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{storeName: {SQL: c.sql()}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: c.address(c.Port)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			"frontend": service(c.Port),
			"history":  service(c.Inner[0]),
			"matching": service(c.Inner[1]),
			"worker":   service(c.Inner[2]),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: disabled},
			Visibility: config.VisibilityArchival{State: disabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: disabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
		PublicClient: config.PublicClient{HostPort: c.address(c.Port)},
	}
}

// hosts names each service's only member, so that no membership protocol runs
// and a server that was killed leaves no dead member behind.
func (c Config) hosts() map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(c.address(c.Port)),
		primitives.HistoryService:  static.SingleLocalHost(c.address(c.Inner[0])),
		primitives.MatchingService: static.SingleLocalHost(c.address(c.Inner[1])),
		primitives.WorkerService:   static.SingleLocalHost(c.address(c.Inner[2])),
	}
}
