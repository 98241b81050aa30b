package tabletest

import "slices"

// checkCombination refuses an UpdateTable with several changes that the service accepts only one at a time. Of several mistakes it
// reports the first in the service's order.
func checkCombination(in *fields) error {
	parts := changes(in)
	has := func(name string) bool { return slices.Contains(parts, name) }
	onlyWith := func(name string, others ...string) bool {
		return !has(name) || !slices.ContainsFunc(parts, func(p string) bool { return p != name && !slices.Contains(others, p) })
	}
	made, indexed := indexChanges(in)
	iops := has("ProvisionedThroughput") || in.text("BillingMode") == billProvisioned
	switch {
	case !onlyWith("SSESpecification"):
		return parameter("Server-Side Encryption modification must be the only operation in the request")
	case !onlyWith("TableClass"):
		return parameter("TableClass modification must be the only operation in the request")
	case !onlyWith("DeletionProtectionEnabled"):
		return parameter("DeletionProtection modification must be the only operation in the request")
	case !onlyWith("OnDemandThroughput", "BillingMode"):
		return parameter("OnDemandThroughput can only be combined with BillingMode in an UpdateTable request")
	case has("WarmThroughput") && made:
		return parameter("Create global secondary index cannot be specified when updating WarmThroughput")
	case !onlyWith("WarmThroughput"):
		return parameter("WarmThroughput must be the only operation in the request")
	case has("StreamSpecification") && iops:
		return parameter("You cannot modify stream status while updating table IOPS")
	case indexed && has("ProvisionedThroughput"):
		return parameter("You cannot create or delete index while updating table IOPS")
	case indexed && has("StreamSpecification"):
		return parameter("You cannot create or delete index while changing stream status")
	}
	return nil
}

// indexChanges reports whether an UpdateTable creates an index, and whether it creates or deletes one.
func indexChanges(in *fields) (made, changed bool) {
	updates := in.items("GlobalSecondaryIndexUpdates")
	for i := range updates {
		f := fields{n: &updates[i]}
		made = made || f.has("Create")
		changed = changed || f.has("Create") || f.has("Delete")
	}
	return made, changed
}

// changes returns the names of the members with which an UpdateTable changes something.
func changes(in *fields) (parts []string) {
	for _, name := range []string{
		"SSESpecification", "TableClass", "DeletionProtectionEnabled", "OnDemandThroughput", "WarmThroughput",
		"BillingMode", "ProvisionedThroughput", "StreamSpecification", "GlobalSecondaryIndexUpdates",
	} {
		// These two count as absent if they have no members.
		empty := name == "OnDemandThroughput" && !in.wantedLimit().any() || name == "WarmThroughput" && !in.wantedWarmth().any()
		if in.has(name) && !empty {
			parts = append(parts, name)
		}
	}
	return parts
}
