// Package laketest tests stores and makes lakes for tests: Run is the contract
// that every lake.Store keeps, Parquet and Fill make objects, Faulty damages a
// store on purpose.
//
// It is imported by tests only. A store that needs a server is tested where the
// server is, also from another module of this repository:
//
//	func TestGateway(t *testing.T) {
//		endpoint := startGateway(t)
//		laketest.Run(t, func(t *testing.T) lake.Store {
//			l, err := lake.Open(t.Context(), lake.Config{
//				URL:      "s3://" + newBucket(t, endpoint) + "/some/prefix",
//				Endpoint: endpoint,
//			})
//			if err != nil {
//				t.Fatal(err)
//			}
//			return l.Store()
//		})
//	}
//
// Every call of the function must give an empty store: a new bucket, or a new
// prefix. Credentials come from the environment (t.Setenv with
// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY). For a store whose conditional
// writes hold only one after the other, RunUncontended leaves out the tests in
// which writers race.
package laketest
