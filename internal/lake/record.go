package lake

import (
	"context"
	"encoding/json"
	"fmt"
)

// readRecord reads a small JSON record into v, and returns its ETag. Fields
// that v does not know are passed over: a newer Tidemark may write more.
func (l *Lake) readRecord(ctx context.Context, key string, v any) (string, error) {
	body, etag, err := l.store.Get(ctx, key)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return "", fmt.Errorf("%s/%s: %w: it is damaged or not Tidemark's; do not delete it before you know why", l.url, key, err)
	}
	return etag, nil
}

func encodeRecord(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
