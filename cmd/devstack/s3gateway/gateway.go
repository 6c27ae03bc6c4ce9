package s3gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// HealthPath answers 200 to an unsigned GET when the gateway serves.
const HealthPath = "/-/health"

// Config is a gateway's.
type Config struct {
	// Root is the folder that is served; it exists. Object metadata goes into
	// extended attributes or, where the file system has none, into the folder
	// .meta-<name> beside Root.
	Root string `json:"root"`
	// Address is the host:port to listen on.
	Address string `json:"address"`
	Region  string `json:"region"`
	// AccessKey and SecretKey are the only account's. They are secrets of the
	// development stack alone.
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
}

// Run serves until ctx ends. It changes the process's working directory to
// Root, because the gateway's file backend does.
func Run(ctx context.Context, cfg Config) error {
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return fmt.Errorf("serve %s as S3: %w", cfg.Root, err)
	}
	store, opts, err := metadataStore(root)
	if err != nil {
		return fmt.Errorf("serve %s as S3: %w", root, err)
	}
	backend, err := posix.New(root, store, opts)
	if err != nil {
		return fmt.Errorf("serve %s as S3: %w", root, err)
	}
	err = embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess:    cfg.AccessKey,
		RootUserSecret:    cfg.SecretKey,
		Region:            cfg.Region,
		Ports:             []string{cfg.Address},
		MaxConnections:    4096,
		MaxRequests:       2048,
		MultipartMaxParts: 10000,
		KeepAlive:         true,
		Quiet:             true,
		HealthPath:        HealthPath,
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve %s as S3 on %s: %w", root, cfg.Address, err)
	}
	return nil
}

func metadataStore(root string) (meta.MetadataStorer, posix.PosixOpts, error) {
	if (meta.XattrMeta{}).Test(root) == nil {
		return meta.XattrMeta{}, posix.PosixOpts{}, nil
	}
	side := filepath.Join(filepath.Dir(root), ".meta-"+filepath.Base(root))
	if err := os.MkdirAll(side, 0o755); err != nil {
		return nil, posix.PosixOpts{}, err
	}
	store, err := meta.NewSideCar(side)
	return store, posix.PosixOpts{SideCarDir: side}, err
}
