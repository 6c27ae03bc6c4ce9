package rowfile

import (
	"github.com/tidemark-cdc/tidemark/internal/change"
)

// names keeps the texts that come again and again as bytes, made once per file.
type names struct {
	tables     map[*change.Relation][]byte
	operations [change.Message + 1][]byte
}

func newNames() names {
	n := names{tables: make(map[*change.Relation][]byte)}
	for op := change.Insert; op <= change.Message; op++ {
		n.operations[op] = []byte(op.String())
	}
	return n
}

// table is the relation's qualified name, nil for no relation.
func (n *names) table(r *change.Relation) []byte {
	if r == nil {
		return nil
	}
	name := n.tables[r]
	if name == nil {
		name = []byte(r.QualifiedName())
		n.tables[r] = name
	}
	return name
}

func (n *names) operation(op change.Operation) []byte {
	if int(op) >= len(n.operations) {
		return []byte(op.String())
	}
	return n.operations[op]
}
