package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/mortise-go/mortise/entity"
	"github.com/mortise-go/mortise/keys"
	"github.com/mortise-go/mortise/migrations"
	"github.com/mortise-go/mortise/table"
)

// CatalogueEntry says how one kind of row is found in the table, for people
// who look at it without this program. The entries follow from the entities'
// definitions, and a repeatable migration writes them.
type CatalogueEntry struct {
	Row       string   `dynamo:"row"` // the entity's type
	Partition string   `dynamo:"partition_template"`
	Sort      string   `dynamo:"sort_template"`
	Indexes   []string `dynamo:"indexes,omitempty"`
}

// revision changes whenever the catalogue would.
func (s *store) revision() (string, error) {
	text, err := json.Marshal(s.contents)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	const enough = 8 // bytes, to tell revisions apart
	return hex.EncodeToString(sum[:enough]), nil
}

// writeCatalogue writes all entries and deletes those of rows that there are no
// more, in one transaction.
func (s *store) writeCatalogue(ctx context.Context, run *migrations.Run) error {
	known := map[string]bool{}
	var ops []table.Op
	for _, entry := range s.contents {
		known[entry.Row] = true
		ops = append(ops, s.catalogue.PutOp(entry))
	}
	for entry, err := range s.catalogue.Query(ctx, keys.Values{}, entity.Consistent()) {
		if err != nil {
			return err
		}
		if !known[entry.Row] {
			ops = append(ops, s.catalogue.DeleteOp(entry))
		}
	}
	return run.Atomic(ctx, ops...)
}
