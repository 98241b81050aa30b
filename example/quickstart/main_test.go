package main

func Example() {
	main()
	// Output:
	// created: 10000 at ACCOUNT#42
	// after the guarded write: 7000
	// the late write was refused: true
	// nothing was overwritten: 6500
}
