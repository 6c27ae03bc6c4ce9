package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// operatorFaults are what a person can do to running segments.
func operatorFaults() []Fault {
	return []Fault{
		{Kind: "workflows terminated", Lasts: lasts(100, 1000), on: "store", inject: toRunning(func(ctx context.Context, r *Run, id string) error {
			return r.world.client.TerminateWorkflow(ctx, id, "", "terminated by the chaos campaign")
		})},
		{Kind: "workflows cancelled", Lasts: lasts(100, 1000), on: "store", inject: toRunning(func(ctx context.Context, r *Run, id string) error {
			return r.world.client.CancelWorkflow(ctx, id, "")
		})},
	}
}

// toRunning holds uploads, so that segments are running, does something to some
// of them, and lets the uploads go when it is healed. What fails because
// Temporal is away, or because the workflow has just ended, is no error.
func toRunning(do func(ctx context.Context, r *Run, id string) error) func(context.Context, *Run, *rand.Rand) (func(context.Context) error, error) {
	return func(ctx context.Context, r *Run, rng *rand.Rand) (func(context.Context) error, error) {
		hold := r.world.stack.Faults.Hold(stack.PutsOfSegments, 0)
		ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
		defer cancel()
		_ = hold.WaitHits(ctx, 1+rng.IntN(3))
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		list, err := r.world.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId STARTS_WITH 'tidemark/%s/' AND ExecutionStatus = 'Running'", r.name), PageSize: 20,
		})
		if err == nil {
			for i, e := range list.GetExecutions() {
				if i > 0 && rng.IntN(2) == 0 {
					continue
				}
				_ = do(ctx, r, e.GetExecution().GetWorkflowId())
			}
		}
		return plain(hold.Remove), nil
	}
}
