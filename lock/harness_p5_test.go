package lock_test

// Copies of helpers of contract_test.go, data_test.go and time_test.go of the first edition, for tests that
// are ported apart from those.
