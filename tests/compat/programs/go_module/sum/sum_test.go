package sum

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	if Of(20, 22) != 42 {
		t.Fatal("wrong")
	}
}
