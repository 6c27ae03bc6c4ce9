package lake

import (
	"context"
	"encoding/json"
	"fmt"
)

// readRecord reads a small JSON record into v, and returns its ETag.
func (l *Lake) readRecord(ctx context.Context, key string, v any) (string, error) {
	body, etag, err := l.store.Get(ctx, key)
	if err != nil {
		return "", err
	}
	if err := decodeRecord(body, v); err != nil {
		return "", fmt.Errorf("%s/%s: %w: it is damaged or not Tidemark's; do not delete it before you know why", l.url, key, err)
	}
	return etag, nil
}

// decodeRecord passes over fields that v does not know: a newer Tidemark may
// write more.
func decodeRecord(body []byte, v any) error { return json.Unmarshal(body, v) }

func encodeRecord(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
