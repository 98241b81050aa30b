// Package pace lets a caller delay the requests that package table, and all packages that use it, send with a context. So a program that
// reads in the background can keep to a rate of requests, whatever functions it calls and however many requests each of them
// sends.
package pace

import "context"

type key struct{}

// With returns a context with which every request, also a repeated one, calls wait before it is sent. If wait returns an error, the request
// is not sent, and fails with this error.
func With(ctx context.Context, wait func(ctx context.Context) error) context.Context {
	return context.WithValue(ctx, key{}, wait)
}

// Wait calls the function that With has put into the context, if any.
func Wait(ctx context.Context) error {
	if wait, ok := ctx.Value(key{}).(func(context.Context) error); ok {
		return wait(ctx)
	}
	return nil
}
