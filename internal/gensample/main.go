// Command gensample writes the sample orders of the example: a year and a half
// of a small wholesaler of ship's stores. They are invented from a fixed seed, so
// the program always writes the same bytes.
//
//	gensample [-o FILE]
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

const (
	orderCount = 360
	firstOrder = 20001
	maxLines   = 5
)

// customers returns the customers in the order of their number of orders. The
// first ones have many orders, so there is contention for their balances.
func customers() []string {
	return []string{
		"HAVEN", "NORDK", "TIDEW", "BRIGG", "CAPST", "ANKER", "MERID", "OCTAN", "SALTY", "WHARF", "GANGW", "QUAYS",
		"KETCH", "SLOOP", "YAWLS", "BOSUN", "PURSR", "COXWN", "DREDG", "LIGHT", "BUOYS", "FERRY", "TRAWL", "WINCH",
		"HAWSE", "KEELS", "SPARS", "TILLR", "RUDDR", "BALST", "COMPS", "SEXTN", "CHART", "LOGBK", "PILOT", "STEVE",
	}
}

// prices returns the catalogue: product n costs prices()[n-1] cents.
func prices() []int {
	return []int{
		1250, 340, 1899, 760, 4500, 215, 990, 12800, 655, 3310, 1475, 89, 2640, 530, 1720, 7425,
		410, 2185, 1360, 299, 5890, 845, 1610, 3075, 1125, 18350, 480, 2260, 695, 1540, 935, 8190,
		175, 2790, 1015, 620, 3645, 1330, 2450, 560, 9975, 380, 1865, 725, 4215, 1090, 250, 2035,
	}
}

// discounts repeats common values, so that they are drawn more often.
func discounts() []string {
	return []string{"0", "0", "0", "0", "0.05", "0.05", "0.1", "0.1", "0.15", "0.2", "0.25"}
}

// The fields' order is the order in the file.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Placed   string `json:"placed"`
	Lines    []line `json:"lines"`
}

type line struct {
	Product  string `json:"product"`
	Price    string `json:"price"`
	Quantity int    `json:"quantity"`
	Discount string `json:"discount"`
}

// generate writes the sample to w.
func generate(w io.Writer) error {
	rnd := rand.New(rand.NewPCG(1852, 11)) // a fixed seed: the sample is part of the source
	who, cost, off := customers(), prices(), discounts()
	enc := json.NewEncoder(w)
	day := time.Date(2023, time.January, 2, 0, 0, 0, 0, time.UTC)
	for i := range orderCount {
		o := order{
			ID: strconv.Itoa(firstOrder + i),
			// The product of two random numbers favours the front of the list.
			Customer: who[int(float64(len(who))*rnd.Float64()*rnd.Float64())],
			Placed:   day.Format(time.DateOnly),
		}
		for _, p := range rnd.Perm(len(cost))[:1+rnd.IntN(maxLines)] {
			quantity := 1 + rnd.IntN(24)
			if rnd.IntN(6) == 0 {
				quantity *= 5
			}
			o.Lines = append(o.Lines, line{
				Product:  strconv.Itoa(p + 1),
				Price:    fmt.Sprintf("%d.%02d", cost[p]/100, cost[p]%100),
				Quantity: quantity,
				Discount: off[rnd.IntN(len(off))],
			})
		}
		if err := enc.Encode(o); err != nil {
			return err
		}
		if day = day.AddDate(0, 0, rnd.IntN(3)); day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			day = day.AddDate(0, 0, 2)
		}
	}
	return nil
}

func main() {
	out := flag.String("o", "", "`FILE` to write; standard output if empty")
	flag.Parse()
	var b bytes.Buffer
	err := generate(&b)
	if err == nil {
		if *out == "" {
			_, err = b.WriteTo(os.Stdout)
		} else {
			err = os.WriteFile(*out, b.Bytes(), 0o644) //nolint:gosec // a source file like the others
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gensample:", err)
		os.Exit(1)
	}
}
