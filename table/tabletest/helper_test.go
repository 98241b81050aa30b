package tabletest

import "github.com/mortise-go/mortise/table/tabletest/internal/attr"

func itemOf(name, value string) attr.Item { return attr.Item{name: attr.String(value)} }
