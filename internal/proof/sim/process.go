package sim

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mortise-go/mortise/internal/machine"
	"github.com/mortise-go/mortise/lock"
	"github.com/mortise-go/mortise/table"
)

// Process is a simulated process on a machine of its own.
type Process struct {
	Name string

	world   *World
	id      int
	machine *simulated
	table   *table.Table
	workers sync.WaitGroup

	mu      sync.Mutex
	stops   int       // pauses and suspensions that have not ended
	resumed int       // how often Resume has ended all of them
	thawed  bool      // the world has ended: nothing stops the process any more
	crashed bool      // for ever
	died    time.Time // when it has crashed
	cut     bool      // from the network
	joins   time.Time // when it joins the network again; used by run only
	held    []func()  // answers that arrived while it was stopped
	clients []*lock.Client
	again   func() // boots its successor
}

// client is an SDK client that has its machine with it.
type client struct {
	*dynamodb.Client

	machine machine.Machine
}

// Machine implements an interface of package machine.
func (c client) Machine() machine.Machine { return c.machine }

// Boot starts a process. The profile decides its clocks. Its table has the schema of the world's table and the
// default policies.
func (w *World) Boot(name string) *Process { return w.BootWith(name, nil) }

// BootWith starts a process with the given clock.
func (w *World) BootWith(name string, clock *Clock) *Process {
	w.mu.Lock()
	p := &Process{Name: name, world: w, id: len(w.processes) + 1}
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	if clock == nil {
		clock = w.Profile.clock(rand.New(rand.NewPCG(mix(w.Seed, "clock", uint64(p.id)), 0)))
	}
	w.start(p, *clock)
	if p.id == 1 {
		w.climate() // not needed before
	}
	w.weather(p)
	return p
}

// start gives a process its machine and its table.
func (w *World) start(p *Process, clock Clock) {
	p.machine = newMachine(mix(w.Seed, "machine", uint64(p.id)), clock)
	p.machine.call = func(f func()) { w.guarded(p.Name+", a timer", f) }
	sdk := w.engine.Client(Frugal, withInput, func(o *dynamodb.Options) { o.HTTPClient = line{p} })
	var err error
	p.table, err = table.Open(client{sdk, p.machine}, w.table.Schema(), table.WithClock(p.machine.Wall))
	w.must(err)
	p.tell(Event{Kind: Booted}, "boots: %v", clock)
}

// Supervise starts a process. Whenever it has crashed, another one of that name starts within seconds. run starts the
// workers of each.
func (w *World) Supervise(name string, run func(p *Process)) {
	p := w.Boot(name)
	p.again = func() { w.Supervise(name, run) }
	run(p)
}

// Table returns the process's table.
func (p *Process) Table() *table.Table { return p.table }

// Locks returns a new lock client, which is closed at the end of the world.
func (p *Process) Locks(config lock.Config) *lock.Client {
	if config.Owner == "" {
		config.Owner = p.Name
	}
	if p.world.Profile.Settings {
		config = p.differ(config)
	}
	config.Logger = p.world.logger
	c, err := lock.New(p.table, config)
	p.world.must(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = append(p.clients, c)
	return c
}

// differ draws the settings that may differ among the clients of a table, as while a change of them is deployed.
func (p *Process) differ(config lock.Config) lock.Config {
	chance := rand.New(rand.NewPCG(mix(p.world.Seed, "settings", uint64(p.id)), 0))
	for range chance.IntN(4) {
		config.Lease = min(2*config.Lease, lock.MaxLease)
	}
	config.Margin = config.Lease / time.Duration(8<<chance.IntN(8))
	config.Skew = time.Second << chance.IntN(12) // up to 34 minutes
	config.Retention = 24 * time.Hour << chance.IntN(8)
	config.Handoffs = chance.IntN(20) - 1
	if chance.IntN(3) == 0 {
		config.Expiry = lock.ObservedOnly
	}
	return config
}

// Stop stops the whole process until end was called, and the end of each other stop, or Resume. Requests under way
// continue; answers wait. A machine that was suspended stays suspended until the process continues, also if it was
// stopped in another way meanwhile.
func (p *Process) Stop(suspend bool) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed {
		return func() {}
	}
	p.stops++
	of, ended := p.resumed, false
	p.machine.stop(suspend)
	if suspend {
		p.tell(Event{Kind: Suspended}, "suspended")
	} else {
		p.tell(Event{Kind: Paused}, "paused")
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if ended || of != p.resumed {
			return
		}
		ended = true
		if p.stops--; p.stops == 0 {
			p.goOn()
		}
	}
}

// Resume ends all stops, and the process continues.
func (p *Process) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stops > 0 {
		p.stops = 0
		p.resumed++
		p.goOn()
	}
}

// goOn lets the process continue, unless it has crashed. It is called with p.mu held.
func (p *Process) goOn() {
	if p.crashed || p.thawed {
		return
	}
	held := p.held
	p.held = nil
	p.tell(Event{Kind: Resumed}, "goes on")
	for i, f := range held {
		late := time.Duration(p.machine.chance("held", uint64(i)) % uint64(200*time.Microsecond))
		p.world.network.later(p.id, time.Now().Add(late+1), f)
	}
	p.machine.resume()
}

// Crash ends the process for ever. A request that it has sent may still arrive.
func (p *Process) Crash() {
	p.mu.Lock()
	if p.thawed {
		p.mu.Unlock()
		return
	}
	p.crashed, p.died = true, time.Now()
	p.mu.Unlock()
	p.machine.stop(false)
	p.tell(Event{Kind: Crashed}, "crashed")
	if p.again != nil {
		late := time.Duration(p.machine.chance("reboot", 0) % uint64(5*time.Second))
		p.world.expect(1)
		p.world.network.later(p.id, time.Now().Add(time.Second+late), func() {
			defer p.world.expect(-1)
			p.again()
		})
	}
}

// holds keeps a function until the process continues. It returns false if the process is running.
func (p *Process) holds(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	stopped := p.stops > 0 || p.crashed
	if stopped {
		p.held = append(p.held, f)
	}
	return stopped
}

// thaw lets the process continue at the end of the world.
func (p *Process) thaw() {
	p.mu.Lock()
	p.stops, p.crashed, p.held, p.thawed = 0, false, nil, true
	p.mu.Unlock()
	p.machine.resume()
}

func (p *Process) isCut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// Crashed reports whether the process has crashed.
func (p *Process) Crashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed
}

// crashes returns when processes have crashed.
func (w *World) crashes() map[*Process]time.Time {
	when := map[*Process]time.Time{}
	for _, p := range w.list() {
		p.mu.Lock()
		if p.crashed {
			when[p] = p.died
		}
		p.mu.Unlock()
	}
	return when
}

// Cut cuts the process off from the network, or connects it again. What is under way arrives.
func (p *Process) Cut(cut bool) {
	p.mu.Lock()
	changed := p.cut != cut
	p.cut = cut
	p.mu.Unlock()
	switch {
	case !changed:
	case cut:
		p.tell(Event{Kind: CutOff}, "cut off from the network")
	default:
		p.tell(Event{Kind: Joined}, "on the network again")
	}
}

// Jump sets the process's wall clock forward or back.
func (p *Process) Jump(by time.Duration) {
	p.machine.jump(by)
	p.tell(Event{Kind: Jumped}, "wall clock jumps by %v", by)
}

// tell adds an event about the process to the history.
func (p *Process) tell(e Event, format string, args ...any) {
	e.Process, e.Client = p.id, p.Name
	p.world.tell(e, format, args...)
}
