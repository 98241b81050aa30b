package tabletest

import "github.com/mortise-go/mortise/table/tabletest/internal/attr"

// maxExpiredYears is how far in the past an expiry can be. The service ignores older values, so that a wrong unit does not delete all
// items of a table.
const maxExpiredYears = 5

func updateTimeToLive(c *call) ([]byte, error) {
	t, err := c.tableItself()
	if err != nil {
		return nil, err
	}
	f := c.in.sub("TimeToLiveSpecification")
	name, enable := f.text("AttributeName"), f.flag("Enabled")
	switch {
	case t.ttl != "" && t.ttl != name:
		return nil, invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	case enable && t.ttl == name:
		return nil, invalid("TimeToLive is already enabled")
	case !enable && t.ttl == "":
		return nil, invalid("TimeToLive is already disabled")
	}
	t.ttl = ""
	if enable {
		t.ttl = name
	}
	o := newObject()
	o.object("TimeToLiveSpecification", func(o *object) {
		o.bool("Enabled", enable)
		o.text("AttributeName", name)
	})
	return o.end(), nil
}

func describeTimeToLive(c *call) ([]byte, error) {
	t, err := c.tableItself()
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.object("TimeToLiveDescription", func(o *object) {
		if t.ttl == "" {
			o.text("TimeToLiveStatus", "DISABLED")
			return
		}
		o.text("TimeToLiveStatus", "ENABLED")
		o.text("AttributeName", t.ttl)
	})
	return o.end(), nil
}

// Sweep deletes the expired items, by the engine's clock, of all tables with time to live, and returns their number.
// Until then expired items stay visible, as in DynamoDB, which deletes them within days.
func (e *Engine) Sweep() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliver()
	now := e.now()
	latest := now.Unix()
	earliest := now.AddDate(-maxExpiredYears, 0, 0).Unix()
	deleted := 0
	for _, t := range e.tables {
		if t.ttl == "" {
			continue
		}
		var expired []*row
		t.rows.ascend(position{}, func(r *row) bool {
			v, ok := r.item[t.ttl]
			if !ok || v.Kind != attr.N {
				return true
			}
			if at, ok := v.Num.Floor(); ok && at < latest && at >= earliest {
				expired = append(expired, r)
			}
			return true
		})
		for _, r := range expired {
			w := &write{t: t, place: r.rowKey, change: deleting{}, before: r}
			w.commit()
		}
		deleted += len(expired)
	}
	return deleted
}
