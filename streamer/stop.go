package streamer

import (
	"errors"
	"fmt"
)

// StopError is a finding on which a streamer stops rather than guess: going on
// could lose or double rows. Starting it again without doing what Do says leads
// to the same stop.
type StopError struct {
	// What happened, with pipeline, segment or LSN.
	What string
	// Do says what to do next.
	Do string
}

func (e *StopError) Error() string { return e.What + " — " + e.Do }

func stop(do, what string, args ...any) error {
	return &StopError{What: fmt.Sprintf(what, args...), Do: do}
}

// errNewLife ends a life whose knowledge is out of date; the next one begins
// with the lake's record.
var errNewLife = errors.New("begin again from the lake's record")

func newLife(why string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(why, args...), errNewLife)
}
