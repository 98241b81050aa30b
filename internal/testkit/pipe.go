package testkit

import "net"

// Pipe returns a connection, and a listener that accepts its other end and no more. It has no buffer: what the reader does not take
// blocks the writer.
func Pipe() (net.Conn, net.Listener) {
	near, far := net.Pipe()
	l := &pipe{make(chan net.Conn, 1)}
	l.accepted <- far
	return near, l
}

type pipe struct{ accepted chan net.Conn }

func (p *pipe) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipe) Close() error   { close(p.accepted); return nil }
func (p *pipe) Accept() (net.Conn, error) {
	if c, ok := <-p.accepted; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
