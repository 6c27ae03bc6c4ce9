// Package workflows holds the workflows of Tidemark: Segment, with its signals,
// updates, inputs and results, and the way it is shown in Temporal's UI (search
// attributes, summary, details); and Replay, which brings a quarantined segment
// into the lake after all, and holds nothing up.
//
//	                      source, retry
//	                     ┌──────────────┐
//	                     ▼              │
//	   start ───▶ uploading ────────────┘
//	                │    ▲
//	permanent error │    │ retry
//	                ▼    │
//	              waiting ──quarantine──▶ (raw messages) ───▶ quarantined
//	                                                            done ◀── uploading
//
// A Segment never fails of its own accord: the upload is retried without end,
// and what no retry can mend waits for an operator. Its ID and memo are the
// durable record of the segment's boundary (see package tracker).
//
// Workflow code is deterministic; recorded histories in testdata are replayed by
// the tests. A change that adds, removes or reorders commands needs
// workflow.GetVersion and a newly recorded history.
package workflows
