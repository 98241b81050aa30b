package peers

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mortise-go/mortise/internal/engines"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

func TestCandidates_AreLocks(t *testing.T) {
	engines.Run(t, func(t *testing.T, e *engines.Engine) {
		for _, c := range []Candidate{Minimal(), Guregu(), Cirello(), CirelloRefreshing(time.Millisecond), Mortise()} {
			t.Run(c.Name, func(t *testing.T) {
				client, table := e.Client(), e.TableName(t)
				require.NoError(t, c.Create(t.Context(), client, table))
				var lockers [2]Locker
				for i := range lockers {
					locker, err := c.Open(client, table, 20*time.Second)
					require.NoError(t, err)
					defer func() { assert.NoError(t, locker.Close(t.Context())) }()
					lockers[i] = locker
				}

				held, err := lockers[0].Acquire(t.Context(), "a")
				require.NoError(t, err)
				assert.False(t, lockers[0].Lost(held))
				_, err = lockers[1].Try(t.Context(), "a")
				require.ErrorIs(t, err, errHeld)
				other, err := lockers[1].Try(t.Context(), "b")
				require.NoError(t, err, "another lock")
				require.NoError(t, lockers[1].Release(t.Context(), other))

				require.NoError(t, lockers[0].Release(t.Context(), held))
				held, err = lockers[1].Try(t.Context(), "a")
				require.NoError(t, err, "it was released")
				require.NoError(t, lockers[1].Release(t.Context(), held))
			})
		}
	})
}
