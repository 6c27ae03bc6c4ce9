package temporalserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Config is a server's. All ports are on 127.0.0.1; a server that is to come
// back at the same addresses is given the same Config.
type Config struct {
	// Database is the SQLite file, made when it is not there. Empty means in
	// memory: what the server knows ends with it.
	Database string `json:"database"`
	// Namespace is registered with Retention.
	Namespace string        `json:"namespace"`
	Retention time.Duration `json:"retention"`
	// Port is the frontend's gRPC port, UIPort the UI's; no UI when it is 0.
	Port   int `json:"port"`
	UIPort int `json:"ui_port"`
	// Inner are the ports of the history, matching and worker services.
	Inner [3]int `json:"inner"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `json:"log_level"`
}

// Run serves until ctx ends, and then stops in order. It logs to standard
// output and standard error.
func Run(ctx context.Context, cfg Config) error {
	server, err := newServer(cfg)
	if err != nil {
		return fmt.Errorf("make the Temporal server: %w", err)
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the Temporal server: %w", err)
	}
	var ui *uiserver.Server
	uiDone := make(chan error, 1)
	if cfg.UIPort != 0 {
		ui = newUI(cfg)
		go func() { uiDone <- ui.Start() }()
	}
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-uiDone:
		failed = fmt.Errorf("the Temporal UI ended by itself: %w", failed)
	}
	if ui != nil && failed == nil {
		ui.Stop()
		<-uiDone
	}
	if err := server.Stop(); err != nil {
		return errors.Join(failed, fmt.Errorf("stop the Temporal server: %w", err))
	}
	return failed
}

func newServer(cfg Config) (temporal.Server, error) {
	sc := cfg.server()
	sql := sc.Persistence.DataStores[storeName].SQL
	if cfg.Database != "" {
		if _, err := os.Stat(cfg.Database); errors.Is(err, os.ErrNotExist) {
			if err := sqlite.SetupSchema(sql); err != nil {
				return nil, fmt.Errorf("set up the schema in %s: %w", cfg.Database, err)
			}
		}
	}
	ns, err := sqlite.NewNamespaceConfig(clusterName, cfg.Namespace, false, nil)
	if err != nil {
		return nil, fmt.Errorf("make namespace %s: %w", cfg.Namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(cfg.Retention)
	if err := sqlite.CreateNamespaces(sql, ns); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", cfg.Namespace, err)
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Stdout: true, Level: cfg.LogLevel}))
	authorizer, err := authorization.GetAuthorizerFromConfig(&sc.Global.Authorization)
	if err != nil {
		return nil, err
	}
	claims, err := authorization.GetClaimMapperFromConfig(&sc.Global.Authorization, logger)
	if err != nil {
		return nil, err
	}
	return temporal.NewServer(
		temporal.WithConfig(sc),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(cfg.hosts()),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			// A search attribute can be used as soon as it is registered.
			dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): true,
			// What the CLI's development server sets: less memory, and a UI that
			// can be clicked through without meeting the rate limit.
			dynamicconfig.HistoryCacheHostLevelMaxSize.Key():                 8096,
			dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 100,
		}),
	)
}

func newUI(cfg Config) *uiserver.Server {
	return uiserver.NewServer(uioptions.WithConfigProvider(&uiProvider{uiconfig.Config{
		TemporalGRPCAddress: cfg.address(cfg.Port),
		Host:                loopback,
		Port:                cfg.UIPort,
		EnableUI:            true,
		DefaultNamespace:    cfg.Namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		// Plain HTTP on loopback.
		CORS: uiconfig.CORS{CookieInsecure: true},
	}}))
}

// uiProvider hands a fixed configuration to the UI server.
type uiProvider struct{ cfg uiconfig.Config }

// GetConfig implements the UI's ConfigProvider.
func (p *uiProvider) GetConfig() (*uiconfig.Config, error) { return &p.cfg, nil }
