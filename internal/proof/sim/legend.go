package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// signs are the signs of pictures, and what they mean.
func signs() [][2]string {
	return [][2]string{
		{"[17==]", "holds the lock with fence 17, until it is released"},
		{"....", "waits for it"},
		{"!", "its lease is lost, and the holder knows"},
		{")", "left without knowing whether the row is free"},
		{"+ # ?", "a write acknowledged, refused, unanswered"},
		{"----", "does something else"},
		{"zzz ZZZ", "paused; Z while it believes it is the holder"},
		{"sss SSS", "suspended, likewise"},
		{"~ : %", "cut off: doing something else, waiting, holding"},
		{"X  ^", "crashes; boots"},
		{"*", "its wall clock jumps"},
		{"", "(blank) is crashed, or has nothing more to do"},
		{"ttt", "throttling storm; d: deletion by time to live"},
		{"V  V3", "VIOLATION; three at once"},
		{"|1.50", "| is where it is 1.50 s"},
		{"…", "time was cut out here: the axis is not to scale"},
	}
}

// Legend explains the signs, in the width of the picture. It ends with an empty line. It is empty if nothing is
// drawn.
func (p Picture) Legend() string {
	const column, all = 63, 116 // of the second sign; and the width that both need
	s := newScene(p.Events)
	if p.nothing(s) != "" {
		return ""
	}
	var b strings.Builder
	list := signs()
	if p.width() < all {
		for _, sign := range list {
			p.line(&b, fmt.Sprintf("  %-7s ", sign[0]), sign[1])
		}
	} else {
		for pair := range slices.Chunk(list, 2) {
			left := []rune(fmt.Sprintf("  %-7s %s", pair[0][0], pair[0][1]))
			p.line(&b, string(left)+strings.Repeat(" ", column-len(left))+fmt.Sprintf("%-7s ", pair[1][0]), pair[1][1])
		}
	}
	if len(s.letters) == 0 {
		p.line(&b, "  ", "This workload tells of no locks. What is drawn of it is writes, and what happens to processes and to the world.")
	}
	p.fences(&b, s)
	b.WriteByte('\n')
	return b.String()
}

// fences explains how locks and their fences are written.
func (p Picture) fences(b *strings.Builder, s *scene) {
	first, same := int64(-1), true
	for _, base := range s.bases {
		same = same && (first < 0 || first == base)
		first = base
	}
	if same && first > 0 {
		p.line(b, "  ", fmt.Sprintf("Fences are counted from %d.", first))
	}
	if len(s.letters) < 2 {
		return
	}
	names := make([]string, 0, len(s.letters))
	for _, name := range slices.Sorted(maps.Keys(s.letters)) {
		text := s.letters[name] + " " + name
		if base, held := s.bases[name]; held && !same {
			text += fmt.Sprint(", fences from ", base)
		}
		names = append(names, text)
	}
	p.line(b, "  ", fmt.Sprintf("Locks, [a17==]: %s.", strings.Join(names, "; ")))
}

// line writes a head and words. If they are wider than the picture, the words continue below, under where the words
// begin.
func (p Picture) line(b *strings.Builder, head, words string) {
	indent := len([]rune(head))
	at := indent
	b.WriteString(head)
	for i, word := range strings.Fields(words) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > p.width():
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}
