package lake

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// chain gives the credentials of AWS' default chain, and walks the chain again
// after the store has refused them. The SDK reads the shared files once in a
// process' life, and keeps what a role or a process gave until it expires: keys
// that were replaced before would be used for good.
type chain struct {
	// walk reads the configuration and finds the provider.
	walk func(context.Context) (aws.CredentialsProvider, error)

	mu sync.Mutex
	// now is the provider in use; nil if the chain is to be walked.
	now aws.CredentialsProvider
}

// Retrieve implements aws.CredentialsProvider.
func (c *chain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	p, err := c.provider(ctx)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("read the AWS configuration again: %w", err)
	}
	return p.Retrieve(ctx)
}

func (c *chain) provider(ctx context.Context) (aws.CredentialsProvider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		return c.now, nil
	}
	p, err := c.walk(ctx)
	if err == nil {
		c.now = p
	}
	return p, err
}

// refused has the chain walked again by the next request. Whoever was refused
// pauses before that one.
func (c *chain) refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = nil
}
