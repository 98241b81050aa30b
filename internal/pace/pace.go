// Package pace lets a caller hold back the requests that are sent under a context: those of package table, and of all
// packages above it. A program that reads in the background keeps to a rate with it, whatever it calls, and however many
// requests a call sends.
package pace

import "context"

type key struct{}

// With returns a context under which every request, repeated ones included, first waits for wait. An error of wait is
// that of the request, which is not sent.
func With(ctx context.Context, wait func(ctx context.Context) error) context.Context {
	return context.WithValue(ctx, key{}, wait)
}

// Wait waits as the context demands.
func Wait(ctx context.Context) error {
	if wait, ok := ctx.Value(key{}).(func(context.Context) error); ok {
		return wait(ctx)
	}
	return nil
}
