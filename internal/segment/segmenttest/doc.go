// Package segmenttest supports tests of what makes and uses segments: the
// contract test suite of segment.Source (Run), a Source in memory (Memory), and
// makers of changes and references that a streamer could have made.
//
// Only tests import it.
package segmenttest
