//go:build !unix

package soak

import (
	"errors"
	"fmt"
)

var errNoPauses = fmt.Errorf("soak: worker: pause: %w", errors.ErrUnsupported)

func (*process) stop() error   { return errNoPauses }
func (*process) resume() error { return errNoPauses }
func (*process) dump() error   { return errNoPauses }
