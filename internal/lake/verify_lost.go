package lake

import "context"

// divergence sorts a recorded divergence in.
func (v *verifier) divergence(ctx context.Context, key string) error {
	var d Divergence
	err := patiently(ctx, func() (err error) {
		d, err = v.lake.readDivergence(ctx, key)
		return err
	})
	if err != nil && !damaged(err) {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.find(Finding{Kind: KindUnreadable, Key: key, Text: err.Error()})
	} else if !v.foreign(key, owner{d.Pipeline, d.SystemID}) {
		v.report.Divergences = append(v.report.Divergences, DivergenceReport{Divergence: d})
	}
	return nil
}

// setAside counts the rows that the database has lost, and takes the objects
// that hold nothing else out of the chain.
func (v *verifier) setAside(links []link) []link {
	var kept []link
	for _, l := range links {
		lost := false
		for i := range v.report.Divergences {
			d := &v.report.Divergences[i]
			switch {
			case l.gap || !d.Covers(l.last()):
				continue
			case d.Covers(l.first()):
				lost = true
				d.LostObjects++
				d.LostRows += l.rows
			default:
				d.Straddling = append(d.Straddling, l.key())
			}
		}
		if !lost {
			kept = append(kept, l)
		}
	}
	return kept
}
