package tabletest

import "time"

// throughput is a number of units per second, for reads and for writes.
type throughput struct{ read, write int64 }

func (u *throughput) members() [2]*int64 { return [2]*int64{&u.read, &u.write} }

// Initial capacity of an on-demand table or index, in units per second.
const (
	initialReads  = 12000
	initialWrites = 4000
)

// provision is the capacity of a table or a global index.
type provision struct {
	throughput throughput // provisioned units; zero if on demand
	limit      throughput // limit of an on-demand table or index; zero if there is none, unlimited if it was just removed
	warm       throughput // capacity that is available immediately; it never falls

	increased time.Time // time of the last increase; zero if there was none
	decreased time.Time // time of the last decrease
	decreases int       // number of decreases on the UTC day of decreased
}

// unlimited is the value with which a request removes a limit.
const unlimited = -1

// wanted is OnDemandThroughput or WarmThroughput in a request: two optional numbers.
type wanted struct {
	names  [2]string // names of the numbers for reads and writes
	values [2]int64
	given  [2]bool
}

func (w wanted) any() bool { return w.given[0] || w.given[1] }

func (f *fields) wanted(name string, names [2]string) wanted {
	w := wanted{names: names}
	in := f.sub(name)
	for i, member := range names {
		w.values[i], w.given[i] = in.long(member)
	}
	return w
}

func (f *fields) wantedLimit() wanted {
	return f.wanted("OnDemandThroughput", [2]string{"MaxReadRequestUnits", "MaxWriteRequestUnits"})
}

func (f *fields) wantedWarmth() wanted {
	return f.wanted("WarmThroughput", [2]string{"ReadUnitsPerSecond", "WriteUnitsPerSecond"})
}

// target is the table or index whose capacity a request sets.
type target struct {
	index    string // empty for the table
	onDemand bool
	fresh    bool // the target is being created
	updating bool // the request is an UpdateTable
}

// read applies OnDemandThroughput and WarmThroughput. Absent members leave the settings as they are.
func (p *provision) read(in *fields, at target) error {
	if at.fresh {
		p.warmUp(at.onDemand)
	}
	if err := p.readLimit(in.wantedLimit(), at); err != nil {
		return err
	}
	return p.readWarmth(in.wantedWarmth(), at)
}

func (p *provision) readLimit(w wanted, at target) error {
	next := p.limit
	for i, to := range next.members() {
		switch v := w.values[i]; {
		case !w.given[i]:
		case !at.onDemand && at.updating:
			return parameter("%s for OnDemandThroughput%s cannot be specified when the table BillingMode is PROVISIONED", w.names[i], at.suffix(" for index : "))
		case !at.onDemand:
			return parameter("%s for OnDemandThroughput%s cannot be specified when table BillingMode is PROVISIONED.", w.names[i], at.suffix(" for index: "))
		case v < 1 && (at.fresh || v != unlimited):
			where := "table"
			if at.index != "" {
				where = "index : " + at.index
			}
			return parameter("Requested %s for OnDemandThroughput for %s is outside of valid range", w.names[i], where)
		default:
			*to = v
		}
	}
	p.limit = next
	return nil
}

func (p *provision) readWarmth(w wanted, at target) error {
	next := p.warm
	for i, to := range next.members() {
		switch v := w.values[i]; {
		case !w.given[i]:
		case v < *to:
			where := "table"
			if at.index != "" {
				where = "index " + at.index
			}
			return parameter("Requested %s for WarmThroughput for %s is lower than %s", w.names[i], where, at.warmth(i))
		default:
			*to = v
		}
	}
	p.warm = next
	return nil
}

func (at target) suffix(before string) string {
	if at.index == "" {
		return ""
	}
	return before + at.index
}

// warmth describes the minimum of WarmThroughput in an error text.
func (at target) warmth(member int) string {
	switch {
	case !at.fresh:
		return "current WarmThroughput, decreasing WarmThroughput is not supported"
	case at.onDemand:
		return "initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
	}
	return [2]string{"ReadCapacityUnits", "WriteCapacityUnits"}[member] + " of ProvisionedThroughput"
}

// warmUp raises the warm throughput to at least the provisioned throughput, or the initial capacity if it is on demand.
func (p *provision) warmUp(onDemand bool) {
	least := p.throughput
	if onDemand {
		least = throughput{initialReads, initialWrites}
	}
	p.warm.read = max(p.warm.read, least.read)
	p.warm.write = max(p.warm.write, least.write)
}

// compare records how the provisioned throughput changed. A change that lowers one number and raises the other is both
// an increase and a decrease.
func (p *provision) compare(old throughput, now time.Time) {
	if p.throughput.read > old.read || p.throughput.write > old.write {
		p.increased = now
	}
	if p.throughput.read < old.read || p.throughput.write < old.write {
		p.decreases = p.decreasesToday(now) + 1
		p.decreased = now
	}
}

// decreasesToday returns the number of decreases since midnight UTC.
func (p *provision) decreasesToday(now time.Time) int {
	if p.decreased.UTC().Truncate(24*time.Hour) != now.UTC().Truncate(24*time.Hour) {
		return 0
	}
	return p.decreases
}

func (p *provision) describeThroughput(o *object, v view) {
	o.object("ProvisionedThroughput", func(o *object) {
		if !p.increased.IsZero() {
			o.time("LastIncreaseDateTime", p.increased)
		}
		if !p.decreased.IsZero() {
			o.time("LastDecreaseDateTime", p.decreased)
		}
		o.int("NumberOfDecreasesToday", p.decreasesToday(v.now))
		o.long("ReadCapacityUnits", p.throughput.read)
		o.long("WriteCapacityUnits", p.throughput.write)
	})
}

// describeCapacity writes OnDemandThroughput and WarmThroughput. The answer to a CreateTable has the latter only if the request set it.
func (p *provision) describeCapacity(o *object, v view, index string) {
	if p.limit != (throughput{}) {
		o.object("OnDemandThroughput", func(o *object) {
			if p.limit.read != 0 {
				o.long("MaxReadRequestUnits", p.limit.read)
			}
			if p.limit.write != 0 {
				o.long("MaxWriteRequestUnits", p.limit.write)
			}
		})
	}
	if v.created && !v.warmed {
		return
	}
	status := statusActive
	if v.created || v.warming[index] {
		status = statusUpdating
	}
	o.object("WarmThroughput", func(o *object) {
		o.long("ReadUnitsPerSecond", p.warm.read)
		o.long("WriteUnitsPerSecond", p.warm.write)
		o.text("Status", status)
	})
}

// leave replaces what the service only changes after it has answered by its old value: the warm throughput, and, unless the billing
// mode changes, the units and the number of decreases. The times of changes are new.
func (p *provision) leave(old *provision, billedAsBefore bool, now time.Time) {
	p.warm = old.warm
	if billedAsBefore {
		p.throughput, p.decreases = old.throughput, old.decreasesToday(now)
	}
}

// settle replaces unlimited by 0. Only the answer to the request that removes a limit contains unlimited.
func (p *provision) settle() {
	for _, m := range p.limit.members() {
		*m = max(*m, 0)
	}
}

// readCapacity reads the capacity of a new index from a request.
func (x *index) readCapacity(f *fields, at target) error {
	at.index = x.name
	given := f.has("ProvisionedThroughput")
	switch {
	case at.onDemand && given && at.updating:
		return parameter("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: %s when BillingMode is PAY_PER_REQUEST", x.name)
	case at.onDemand && given:
		return parameter("ProvisionedThroughput should not be specified for index: %s when BillingMode is PAY_PER_REQUEST", x.name)
	case !at.onDemand && !given && at.updating:
		return parameter("Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: %s", x.name)
	case !at.onDemand && !given:
		return parameter("ProvisionedThroughput is not specified for index: %s", x.name)
	}
	return x.read(f, at)
}

// changeCapacity applies one Update of an index.
func (x *index) changeCapacity(f *fields, onDemand bool) error {
	given := f.has("ProvisionedThroughput")
	limit, warmth := f.wantedLimit().any(), f.wantedWarmth().any()
	switch {
	case onDemand && (given || !limit && !warmth):
		return parameter("The only Updates for index: %s when TableThroughputMode is PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput", x.name)
	case !given && !limit && !warmth:
		return parameter("Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: %s", x.name)
	}
	if given {
		p := readThroughput(f)
		if p == x.throughput {
			return invalid("The provisioned throughput for the index %s will not change. The requested value equals the current value. "+
				"Current ReadCapacityUnits provisioned for the index: %d. Requested ReadCapacityUnits: %d. "+
				"Current WriteCapacityUnits provisioned for the index: %d. Requested WriteCapacityUnits: %d. "+
				"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
				x.name, p.read, p.read, p.write, p.write)
		}
		x.throughput = p
	}
	return x.read(f, target{index: x.name, onDemand: onDemand, updating: true})
}

// changed completes an UpdateTable that turns old into t: it checks throughputs, and records what follows from the new settings.
func (t *table) changed(old *table, now time.Time) error {
	for _, x := range t.indexes {
		before := old.index(x.name)
		switch {
		case !x.global:
			continue
		case !t.onDemand && x.throughput == (throughput{}):
			return parameter("ProvisionedThroughput must be specified for index: %s", x.name)
		case before != nil && (t.onDemand || !old.onDemand):
			x.compare(before.throughput, now)
		}
	}
	if !t.onDemand && !old.onDemand {
		t.compare(old.throughput, now)
	}
	for _, p := range t.provisions() {
		if !t.onDemand {
			p.limit = throughput{}
		}
		p.warmUp(t.onDemand)
	}
	switch {
	case old.class == "" && t.class == classStandard:
		t.class = "" // a table whose class was never set keeps none, since STANDARD is the default
	case old.class != t.class:
		t.classAt = now
	}
	return nil
}

// provisions returns the capacities of the table and its global indexes.
func (t *table) provisions() []*provision {
	all := []*provision{&t.provision}
	for _, x := range t.indexes {
		if x.global {
			all = append(all, &x.provision)
		}
	}
	return all
}
